"""What stays of a submitted job: nothing of rows in its folder, and no process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ingestion.launchers import LauncherConfig, spark_submit
from ingestion.launchers.spark_submit import ProcessEnd, SparkSubmitLauncher
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import DeleteSpec, JobSpec, PipelineSpec, ReplaySpec, SourceSpec, TableSpec
from tests.polling import scaled

TABLE = TableSpec("orders", "file:///lake/orders", "file:///lake/_errors/orders", record_key=("id",))
ROW_JOBS: dict[str, dict[str, Any]] = {
    "replay": {"replay": ReplaySpec(("k",), "ana", {"k": '{"mail": "alice@example.com"}'})},
    "delete": {"delete": DeleteSpec(keys=(("alice@example.com",),))},
}


class EndedJob(SparkSubmitLauncher):
    """Its process ends at once, in `problem` or without a report. `spec`: what it could read."""

    problem: Exception | None = None
    timed_out = False

    def _submit(self, spec: JobSpec, spec_path: Path, report_path: Path, log_path: Path, *_: object) -> ProcessEnd:  # type: ignore[override]
        self.spec = spec_path.read_text()
        log_path.write_text("what Spark said")
        if self.problem:
            raise self.problem
        return ProcessEnd("The job's process ended", timed_out=self.timed_out)


@pytest.mark.parametrize("problem", [None, OSError("no such program")])
@pytest.mark.parametrize("kind", ROW_JOBS)
def test_keys_and_values_of_rows_do_not_stay(tmp_path: Path, kind: str, problem: Exception | None) -> None:
    job = EndedJob(LauncherConfig(tmp_path))
    job.problem = problem
    try:
        assert job.run(JobSpec("r", kind, TABLE, **ROW_JOBS[kind]), {}).status == "failed"
    except OSError:
        assert problem is not None
    assert "alice" in job.spec
    assert [path for path in tmp_path.rglob("*") if path.is_file() and "alice" in path.read_text()] == []


def test_the_spec_of_another_job_stays_to_be_looked_into(tmp_path: Path) -> None:
    source = SourceSpec(plugin="sql", url_ref="env:SHOP_URL", object="orders")
    EndedJob(LauncherConfig(tmp_path)).run(JobSpec("r", "bootstrap", TABLE, source), {})
    assert (tmp_path / "r" / "spec.json").is_file()


@pytest.mark.parametrize("timed_out", [False, True])
def test_of_a_job_that_left_no_report_it_is_known_whether_its_time_was_up(tmp_path: Path, timed_out: bool) -> None:
    job = EndedJob(LauncherConfig(tmp_path))
    job.timed_out = timed_out
    source = SourceSpec(plugin="sql", url_ref="env:SHOP_URL", object="orders")
    report = job.run(JobSpec("r", "bootstrap", TABLE, source), {})
    assert (report.status, report.timed_out) == ("failed", timed_out)


def test_of_a_pipelines_job_that_left_no_report_its_log_is_named_and_not_shown(tmp_path: Path) -> None:
    """It may have values of rows; that of any other job has none."""
    job, pipeline = EndedJob(LauncherConfig(tmp_path)), PipelineSpec((), "SELECT 1", {"id": "long"})
    report = job.run(JobSpec("made", "bootstrap", TABLE, pipeline=pipeline), {})
    assert report.error == (
        f"The job's process ended. Its log is {tmp_path}/made/log.txt on the machine of the worker; it may contain values of rows, so nothing of it is shown here."
    )
    source = SourceSpec(plugin="sql", url_ref="env:SHOP_URL", object="orders")
    assert str(job.run(JobSpec("loaded", "bootstrap", TABLE, source), {}).error).endswith("\nwhat Spark said")


class LingeringJob(SparkSubmitLauncher):
    """Its process reports and stays, as a JVM does in which foreign code has left a thread."""

    def _command(self, spec: JobSpec, scratch: Path) -> list[str]:
        report = JobReport(spec.run_id, SUCCEEDED)
        report.write(scratch / "report.json")
        return ["sh", "-c", f'cp "{scratch}/report.json" "$2"; sleep 98765']


def test_a_process_that_stays_after_its_report_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_submit, "EXIT_TIMEOUT_S", 0.2)
    source = SourceSpec(plugin="sql", url_ref="env:SHOP_URL", object="orders")
    launcher = LingeringJob(LauncherConfig(tmp_path, java_home="none"))
    began = time.monotonic()
    report = launcher.run(JobSpec("r", "bootstrap", TABLE, source, deadline_s=scaled(30)), {})
    assert (report.status, report.timed_out) == ("succeeded", False)
    assert time.monotonic() - began < scaled(15), "long before its deadline"
