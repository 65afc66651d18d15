"""Rows that audits refuse: what is kept of them, the finding, who may decide, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from ingestion.lake.findings import AUDIT_REFUSED, JOB_FAILING
from ingestion.models import Finding, JobKind, JobRun, JobState, RefusedBatch
from ingestion.runs import job_runs, run_worker
from ingestion.runs.failed_runs import retry_run
from ingestion.runs.modelled_tables.decisions import drop, publish
from ingestion.spark.contract.report import NOTHING_TO_DO, REFUSED, SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Conflict, Refused
from tests import factories as given
from tests.factories import MINUTE, NOW
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE
from tests.web.ingestion.conftest import FakeLauncher, worker_at
from tests.web.ingestion.test_pipelines import inputs as inputs
from tests.web.ingestion.test_pipelines import problems, register

AUDITS = "audits:\n  delays: outside(this.delay, -60, 1440) == 0\n"
ROW = ["2013-01-01", "United", "9999"]
POSITION = {"flights": "20260101000000000", "airlines": "20260101000000000"}
pytestmark = pytest.mark.django_db


def refusal(*partitions: str) -> dict[str, Any]:
    audit = {"audit": "delays", "test": "outside(this.delay, -60, 1440) == 0", "partitions": [*partitions], "observed": "1", "threshold": "== 0", "cause": ""}  # fmt: skip
    sample = {"columns": ["day", "airline", "delay"], "rows": [ROW]}
    return {"refused": {"audits": [audit | sample], "kept_at": "file:///lake/.lakehub/refused/t", "position": POSITION}}


def refusing(*partitions: str) -> Callable[[JobSpec], JobReport]:
    return lambda spec: JobReport(
        spec.run_id, REFUSED, output=refusal(*partitions), error="The rows made for `t` do not pass"
    )


def passing(spec: JobSpec) -> JobReport:
    return JobReport(spec.run_id, SUCCEEDED)


@pytest.fixture
def dataset(inputs: dict[str, Dataset]) -> Dataset:
    return register(**{"pipeline.yaml": PIPELINE + AUDITS})


@pytest.fixture
def copy(dataset: Dataset) -> DatasetCopy:
    """Of which a bootstrap has succeeded."""
    copy = given.copy_of(dataset)
    given.run(copy, kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED)
    return given.with_table(copy)


def play(copy: DatasetCopy, answer: Callable[[JobSpec], JobReport], *, minutes: int = 0, **params: Any) -> JobRun:
    """An incremental that ends so."""
    now = NOW + minutes * MINUTE
    if not JobRun.objects.filter(copy=copy, state=JobState.QUEUED).exists():
        job_runs.request_run(copy, "incremental", params, asked_by=job_runs.SCHEDULE, now=now)
    run = run_worker.run_next(worker_at(now, FakeLauncher(answer)))
    assert run is not None
    return run


def open_findings(copy: DatasetCopy) -> list[tuple[str, str]]:
    return [(each.start.isoformat()[:10], each.detail["message"]) for each in Finding.objects.filter(copy=copy, kind=AUDIT_REFUSED, cleared_at=None)]  # fmt: skip


def test_an_audit_that_cannot_be_asked_is_refused_with_its_line(inputs: dict[str, Dataset]) -> None:
    bad = "audits:\n  fresh: freshness(this) < 2h\n  misspelt: nulls(this.dela) == 0\n"
    first, second = problems(**{"pipeline.yaml": PIPELINE + bad})
    assert first.startswith("pipeline.yaml:12: The audit `fresh`: `freshness` cannot be asked here")
    assert second == "pipeline.yaml:13: The audit `misspelt`: This dataset has no column `dela`. Did you mean `delay`?"  # fmt: skip


def test_its_jobs_are_told_the_audits_and_who_judges_them(copy: DatasetCopy) -> None:
    launcher = FakeLauncher(passing)
    job_runs.request_run(copy, "incremental", asked_by=job_runs.SCHEDULE, now=NOW)
    run_worker.run_next(worker_at(NOW, launcher))
    ((spec, _),) = launcher.asked
    assert spec.pipeline is not None
    assert spec.pipeline.audits == {"delays": "outside(this.delay, -60, 1440) == 0"}
    assert spec.pipeline.auditor == "quality.audits.judging:refusals"


def test_what_is_refused_is_told_once_and_by_partition_without_rows(copy: DatasetCopy) -> None:
    run = play(copy, refusing("2013-01-01", "2013-01-03"))
    assert (run.state, run.ended_at) == (JobState.FAILED, NOW)
    assert "9999" not in str(run.report), "rows of data are for members of the team"
    batch = RefusedBatch.objects.get()
    assert (batch.run, batch.position, batch.samples[0]["rows"]) == (run, POSITION, [ROW])
    assert [start for start, _ in open_findings(copy)] == ["2013-01-01", "2013-01-03"]
    assert "`delays` (outside(this.delay, -60, 1440) == 0)" in open_findings(copy)[0][1]
    assert not Finding.objects.filter(kind=JOB_FAILING).exists(), "one cause, one finding"
    again = play(copy, refusing("2013-01-03"), minutes=30)
    batch.refresh_from_db()
    assert (RefusedBatch.objects.count(), batch.run, batch.refused_at) == (1, again, NOW)
    assert [start for start, _ in open_findings(copy)] == ["2013-01-03"]
    play(copy, passing, minutes=60)
    batch.refresh_from_db()
    assert (batch.outcome, batch.ended_at, open_findings(copy)) == ("passed", NOW + 60 * MINUTE, [])


def test_more_partitions_than_are_named_are_one_finding(copy: DatasetCopy) -> None:
    play(copy, refusing(*(f"2013-01-{n:03}" for n in range(101))))
    assert len(open_findings(copy)) == 1


@pytest.mark.parametrize(("decide", "params", "outcome"), [(publish, {"unaudited": True}, "published"), (drop, {"skip_to": POSITION}, "dropped")])  # fmt: skip
def test_a_person_decides_with_a_reason_and_a_run_does_it(
    copy: DatasetCopy, decide: Callable[..., JobRun], params: dict[str, Any], outcome: str
) -> None:
    play(copy, refusing("2013-01-01"))
    batch = RefusedBatch.objects.get()
    with pytest.raises(Refused, match="Say why"):
        decide(batch, seen=batch.run_id, reason=" ", actor="ana", now=NOW)
    assert not JobRun.objects.filter(state=JobState.QUEUED).exists()
    with pytest.raises(Conflict, match=f"Run {batch.run_id} was refused since"):
        decide(batch, seen=batch.run_id - 1, reason="A storm", actor="ana", now=NOW)
    run = decide(batch, seen=batch.run_id, reason="A storm", actor="ana", now=NOW)
    with pytest.raises(Conflict, match=f"ana has decided, and run {run.pk} does it"):
        decide(batch, seen=batch.run_id, reason="Me too", actor="bob", now=NOW)
    assert (run.params, run.asked_by) == (params, "ana")
    specs: list[JobSpec] = []
    ended = play(copy, lambda spec: specs.append(spec) or passing(spec))  # type: ignore[func-returns-value]
    assert ended == run
    (spec,) = specs
    assert spec.pipeline is not None
    assert (bool(spec.pipeline.audits), spec.pipeline.skip_to) == (
        (False, {}) if decide is publish else (True, POSITION)
    )
    batch.refresh_from_db()
    assert (batch.outcome, batch.decided_by, batch.reason, open_findings(copy)) == (outcome, "ana", "A storm", [])
    assert AuditEntry.objects.filter(actor="ana", detail__reason="A storm").exists()
    with pytest.raises(Conflict, match="is over"):
        decide(batch, seen=batch.run_id, reason="Again", actor="ana", now=NOW)


@pytest.mark.parametrize("params", [{"unaudited": True}, {"skip_to": POSITION}])
def test_nobody_goes_round_the_audits_by_asking_for_a_run(copy: DatasetCopy, params: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="Only the decision over a refused batch"):
        job_runs.request_run(copy, "incremental", params, asked_by="ana", now=NOW)


def test_the_api_shows_samples_to_the_team_and_takes_its_decisions(client: Client, copy: DatasetCopy) -> None:
    play(copy, refusing("2013-01-01"))
    batch = RefusedBatch.objects.get()
    address = f"/api/v1/datasets/{copy.dataset.name}/refused-batches"
    client.force_login(given.user("stranger"))
    (shown,) = client.get(address).json()["results"]
    assert (shown["audits"][0]["partitions"], shown["samples"]) == (["2013-01-01"], [])
    body = {"decision": "drop", "reason": "A storm", "run": batch.run_id}
    assert client.post(f"{address}/{batch.pk}/decision", body, "application/json").status_code == 403
    ines = given.user("ines")
    given.member(ines, copy.dataset.team, Role.ON_CALL)
    client.force_login(ines)
    (shown,) = client.get(address).json()["results"]
    assert shown["samples"][0]["rows"] == [ROW]
    assert client.post(f"{address}/{batch.pk}/decision", body | {"reason": ""}, "application/json").status_code == 422
    answer = client.post(f"{address}/{batch.pk}/decision", body, "application/json")
    assert (answer.status_code, answer.json()["decided_by"]) == (200, "ines")
    assert client.post(f"{address}/{batch.pk + 1}/decision", body, "application/json").status_code == 404


def test_a_backfill_says_something_of_its_own_partitions_only(copy: DatasetCopy) -> None:
    def backfill(day: str, answer: Callable[[JobSpec], JobReport]) -> None:
        job_runs.request_run(copy, "backfill", {"partitions": [day]}, asked_by="ana", now=NOW)
        play(copy, answer)

    backfill("2013-01-01", refusing("2013-01-01"))
    backfill("2013-01-02", refusing("2013-01-02"))
    assert [start for start, _ in open_findings(copy)] == ["2013-01-01", "2013-01-02"]
    backfill("2013-01-02", passing)
    assert [start for start, _ in open_findings(copy)] == ["2013-01-01"]
    play(copy, passing)
    assert [start for start, _ in open_findings(copy)] == ["2013-01-01"], "what follows changes has not made it anew"
    job_runs.request_run(copy, "bootstrap", asked_by="ana", now=NOW)
    play(copy, lambda spec: JobReport(spec.run_id, NOTHING_TO_DO))
    assert open_findings(copy), "nothing was made"
    job_runs.request_run(copy, "bootstrap", {"replace": True}, asked_by="ana", now=NOW)
    play(copy, passing)
    assert not open_findings(copy)


def test_a_decision_whose_run_failed_is_decided_again_and_not_tried_again(copy: DatasetCopy) -> None:
    play(copy, refusing("2013-01-01"))
    batch = RefusedBatch.objects.get()
    run = publish(batch, seen=batch.run_id, reason="A storm", actor="ana", now=NOW)
    JobRun.objects.filter(pk=run.pk).update(state=JobState.FAILED, ended_at=NOW)
    with pytest.raises(Refused, match="decide again"):
        retry_run(JobRun.objects.get(pk=run.pk), actor="ines", now=NOW)
    again = drop(batch, seen=batch.run_id, reason="It goes on", actor="bob", now=NOW)
    assert again is not None
    assert again.params == {"skip_to": POSITION}
