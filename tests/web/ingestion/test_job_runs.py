"""Runs: asked for, claimed by one, ended by a report, tried again, given up with a finding."""

from __future__ import annotations

import logging
import os
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from django.db import connection
from django.db.models.functions import Now

from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.lake import findings
from ingestion.models import CopyLease, Finding, JobKind, JobRun, JobState
from ingestion.runs import copy_lag, feed_schedule, job_runs, leases, run_worker
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import FAILED, NOTHING_TO_DO, SUCCEEDED, UNFINISHED, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.interval import Interval
from tests import factories as given
from tests.factories import NOW
from tests.json_log import json_log
from tests.web.ingestion import hudi_timeline
from tests.web.ingestion.conftest import FakeLauncher, worker_at


def ask(copy: DatasetCopy, kind: str = "incremental", **params: object) -> JobRun:
    return job_runs.request_run(given.with_table(copy), kind, params, asked_by="ana", now=NOW)


def test_a_run_is_claimed_by_one_worker_only(copy: DatasetCopy) -> None:
    run = ask(copy)
    assert job_runs.claim_next_run("one", now=NOW) == run
    assert job_runs.claim_next_run("two", now=NOW) is None


def test_a_copy_has_one_running_job_at_most(copy: DatasetCopy) -> None:
    ask(copy, "bootstrap")
    ask(copy)
    assert job_runs.claim_next_run("one", now=NOW) is not None
    assert job_runs.claim_next_run("two", now=NOW) is None


def test_a_run_whose_worker_has_died_is_claimed_again_and_counts_a_second_attempt(copy: DatasetCopy) -> None:
    run = ask(copy)
    job_runs.claim_next_run("one", now=NOW, lease=timedelta(seconds=-1))
    again = job_runs.claim_next_run("two", now=NOW)
    assert again == run
    assert again is not None
    assert (again.attempt, again.leased_by, again.key) == (2, "two", run.key)


def test_a_killed_process_of_this_host_is_succeeded_at_once(copy: DatasetCopy) -> None:
    ask(copy)
    gone = leases.holder_name("here", 2**22 + 1, "x")
    assert job_runs.claim_next_run(gone, now=NOW) is not None
    assert leases.acquire(copy, gone)
    assert job_runs.claim_next_run("two", now=NOW) is None
    assert leases.release_leases_of_dead_processes("here") == 2
    assert job_runs.claim_next_run("two", now=NOW) is not None
    assert leases.acquire(copy, "two")


def test_a_process_that_lives_keeps_its_lease(copy: DatasetCopy) -> None:
    ask(copy)
    job_runs.claim_next_run(leases.holder_name("here", os.getpid(), "x"), now=NOW)
    assert leases.release_leases_of_dead_processes("here") == 0


def test_a_lease_is_renewed_by_its_holder_only(copy: DatasetCopy) -> None:
    run = ask(copy)
    job_runs.claim_next_run("one", now=NOW)
    assert job_runs.renew_lease(run, "one")
    assert not job_runs.renew_lease(run, "two")


def test_the_lease_of_a_copy_has_one_holder_until_it_runs_out(copy: DatasetCopy) -> None:
    assert leases.acquire(copy, "one")
    assert leases.acquire(copy, "one")
    assert not leases.acquire(copy, "two")
    assert leases.acquire(copy, "one", timedelta(seconds=-1))
    assert leases.acquire(copy, "two")
    leases.release(copy, "one")
    assert CopyLease.objects.get(copy=copy).holder == "two"


def test_leases_are_by_the_databases_clock(copy: DatasetCopy) -> None:
    leases.acquire(copy, "one", timedelta(seconds=60))
    assert CopyLease.objects.filter(until__gt=Now()).exists()
    assert connection.vendor in ("sqlite", "postgresql")


def test_a_second_incremental_waits_for_nothing(copy: DatasetCopy) -> None:
    ask(copy)
    with pytest.raises(Conflict, match=r"The incremental of flights@dc1 waits or runs already"):
        ask(copy)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("backfil", {}, "no job of the kind `backfil`. Did you mean `backfill`?"),
        ("backfill", {}, "names `partitions` where the dataset has them"),
        ("backfill", {"partitions": ["yesterday"]}, "'yesterday' is not the name of a partition by day"),
        ("incremental", {"partitons": []}, "`incremental` has no parameter `partitons`"),
        ("delete", {}, "needs `keys` or `share`"),
        ("bootstrap", {"replce": True}, "Did you mean `replace`?"),
    ],
)
def test_what_makes_no_sense_is_refused(copy: DatasetCopy, kind: str, params: dict[str, object], message: str) -> None:
    with pytest.raises(Refused) as refused:
        ask(copy, kind, **params)
    assert message in str(refused.value)
    assert not JobRun.objects.exists()


def test_an_off_boarded_dataset_can_only_be_dropped(copy: DatasetCopy) -> None:
    copy.dataset.offboarded_at = NOW
    with pytest.raises(Refused, match="its copies can only be dropped"):
        ask(copy)
    assert ask(copy, "drop").kind == "drop"


def test_a_copy_is_found_by_its_data_center(copy: DatasetCopy) -> None:
    assert job_runs.find_copy(copy.dataset, "") == copy
    with pytest.raises(NotFound, match="Did you mean `dc1`"):
        job_runs.find_copy(copy.dataset, "dc")


def test_a_run_that_fails_is_queued_again_later(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    run = ask(copy)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=FAILED, error="no such table")
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert (run.state, run.error, run.due_at) == (JobState.QUEUED, "no such table", NOW + timedelta(seconds=5))
    assert not Finding.objects.exists()


def test_a_load_that_is_unfinished_goes_on_at_once_and_counts_its_attempts_anew(
    copy: DatasetCopy, launcher: FakeLauncher
) -> None:
    run = ask(copy, "bootstrap")
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=FAILED, error="gone")
    run_worker.run_next(worker_at(NOW, launcher))
    JobRun.objects.filter(pk=run.pk).update(due_at=NOW)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=UNFINISHED, has_more=True)
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert (run.state, run.due_at, run.attempt, run.ended_at, run.error) == ("queued", NOW, 0, None, "")
    assert feed_schedule.request_due_runs(now=NOW) == []  # it is at work on it
    assert not copy_lag.is_loaded(copy)


def test_a_run_that_goes_on_failing_is_given_up_with_a_finding_that_success_clears(
    copy: DatasetCopy, launcher: FakeLauncher
) -> None:
    run = ask(copy)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=FAILED, error="no such table")
    for attempt in range(MAX_ATTEMPTS):
        run_worker.run_next(worker_at(NOW + attempt * given.HOUR, launcher))
    run.refresh_from_db()
    assert (run.state, run.attempt) == (JobState.FAILED, MAX_ATTEMPTS)
    finding = Finding.objects.get(kind="job_failing", cleared_at=None)
    assert "the last time: no such table" in finding.detail["message"]
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=SUCCEEDED)
    job_runs.request_run(copy, "incremental", asked_by="ana", now=NOW + given.DAY)
    run_worker.run_next(worker_at(NOW + given.DAY, launcher))
    finding.refresh_from_db()
    assert finding.cleared_at == NOW + given.DAY


def test_a_job_that_was_asked_for_behind_a_drop_is_cancelled(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=SUCCEEDED)
    drop, delete = ask(copy, "drop"), ask(copy, "delete", keys=[["1"]])
    for _ in (drop, delete):
        run_worker.run_next(worker_at(NOW, launcher))
    delete.refresh_from_db()
    assert delete.state == JobState.CANCELLED
    assert "table was dropped before it began: bootstrap the copy, then ask for the delete again" in delete.error
    assert [spec.kind for spec, _ in launcher.asked] == ["drop"]


def test_a_bootstrap_shows_that_loading_works_again(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    finding = given_up(copy, "incremental", launcher)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=SUCCEEDED)
    job_runs.request_run(copy, "bootstrap", asked_by="ana", now=NOW + given.DAY)
    run_worker.run_next(worker_at(NOW + given.DAY, launcher))
    finding.refresh_from_db()
    assert finding.cleared_at == NOW + given.DAY


def test_the_lines_of_a_run_carry_its_ids(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    run = ask(copy)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=FAILED, error="no table\n`flights`")
    with json_log() as lines:
        run_worker.run_next(worker_at(NOW, launcher))
        logging.getLogger("lakehub").warning("after it")
    (line,) = (line for line in lines if line["logger"] == "ingestion.runs.run_worker")
    assert (line["run_id"], line["run"], line["copy"]) == (str(run.key), run.pk, "flights@dc1")
    assert line["run_id"] == launcher.asked[0][0].run_id
    assert line["message"].endswith("no table\n`flights`")
    assert "run_id" not in lines[-1]


def given_up(copy: DatasetCopy, kind: str, launcher: FakeLauncher, at: datetime = NOW) -> Finding:
    """A run of this kind that failed until it was given up."""
    job_runs.request_run(
        given.with_table(copy), kind, {"keys": [["1"]]} if kind == "delete" else {}, asked_by="ana", now=at
    )
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=FAILED, error="no")
    for attempt in range(MAX_ATTEMPTS):
        run_worker.run_next(worker_at(at + attempt * given.HOUR, launcher))
    return Finding.objects.get(kind="job_failing", cleared_at=None, detail__job=kind)


def test_only_the_kind_of_job_that_failed_shows_that_it_works_again(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    finding = given_up(copy, "incremental", launcher)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=SUCCEEDED)
    for kind, params in (("delete", {"keys": [["1"]]}), ("incremental", {})):
        finding.refresh_from_db()
        assert finding.cleared_at is None
        job_runs.request_run(copy, kind, params, asked_by="ana", now=NOW + given.DAY)
        run_worker.run_next(worker_at(NOW + given.DAY, launcher))
    finding.refresh_from_db()
    assert finding.cleared_at == NOW + given.DAY


def test_each_kind_of_job_has_one_finding_however_often_it_is_given_up(
    copy: DatasetCopy, launcher: FakeLauncher
) -> None:
    first = given_up(copy, "incremental", launcher)
    assert given_up(copy, "incremental", launcher, NOW + given.DAY) == first
    assert given_up(copy, "delete", launcher, NOW + 2 * given.DAY) != first


@pytest.mark.parametrize(("status", "heals"), [(NOTHING_TO_DO, False), (SUCCEEDED, True)])
def test_only_a_bootstrap_that_read_everything_again_accounts_for_the_rows(
    copy: DatasetCopy, launcher: FakeLauncher, status: str, heals: bool
) -> None:
    over = Interval(NOW, NOW + given.DAY)
    findings.raise_finding(copy, findings.ROWS_UNACCOUNTED, over, "2 rows are missing", {}, now=NOW)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=status)
    ask(copy, "bootstrap")
    run_worker.run_next(worker_at(NOW, launcher))
    assert (Finding.objects.get().cleared_at is not None) is heals


def test_a_launcher_that_raises_is_a_run_that_failed(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    def no_memory(spec: JobSpec) -> JobReport:
        raise OSError("Cannot allocate memory")

    run = ask(copy)
    launcher.answer = no_memory
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert (run.state, run.leased_by) == (JobState.QUEUED, "")
    assert run.error == "The job could not be launched: OSError: Cannot allocate memory"


def test_a_timeline_that_cannot_be_read_is_a_run_that_failed(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    hudi_timeline.commit(copy, "20261117100000000", {})
    (broken,) = (Path(unquote(urlsplit(copy.uri).path)) / ".hoodie" / "timeline").iterdir()
    broken.write_bytes(b"no Avro")
    run = ask(copy)
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert run.state == JobState.QUEUED
    assert run.error.startswith("The job has ended, but the table's timeline cannot be read: DamagedTable: The file ")
    assert broken.name in run.error


def test_a_run_that_outlives_no_worker_is_given_up_with_a_finding(copy: DatasetCopy) -> None:
    run = ask(copy)
    for _ in range(MAX_ATTEMPTS):
        assert job_runs.claim_next_run("doomed", now=NOW, lease=timedelta(seconds=-1)) == run
    assert job_runs.claim_next_run("spared", now=NOW + given.HOUR) is None
    run.refresh_from_db()
    assert (run.state, run.attempt, run.ended_at) == (JobState.FAILED, MAX_ATTEMPTS, NOW + given.HOUR)
    assert f"its worker ended without a word {MAX_ATTEMPTS} times" in Finding.objects.get().detail["message"]


def test_the_report_of_a_worker_that_lost_its_lease_is_not_written_down(copy: DatasetCopy) -> None:
    run = ask(copy)
    job_runs.claim_next_run("one", now=NOW, lease=timedelta(seconds=-1))
    taken = job_runs.claim_next_run("two", now=NOW)
    assert taken is not None
    with pytest.raises(Conflict, match="is no longer one's"):
        job_runs.finish_run(run, JobReport(str(run.key), SUCCEEDED), "one", now=NOW, jitter=0.0)


def test_a_run_waits_while_another_writer_holds_the_copy(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    run = ask(copy)
    leases.acquire(copy, "a maintenance job")
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert (run.state, run.attempt, launcher.asked) == (JobState.QUEUED, 0, [])
    assert run.due_at > NOW


def test_the_spec_says_what_the_catalog_knows_and_holds_no_secret(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    run = ask(copy, "backfill", partitions=["2026-11-16"])
    run_worker.run_next(worker_at(NOW, launcher))
    ((spec, secrets),) = launcher.asked
    assert (spec.run_id, spec.kind, spec.partitions) == (str(run.key), "backfill", ("2026-11-16",))
    assert spec.table.uri == copy.uri
    assert spec.table.error_uri == f"{copy.data_center.lake_uri}/_errors/flights"
    assert (spec.table.record_key, spec.table.reference_key) == (("id", "flight_date"), "updated_at")
    assert spec.staging_uri == "file:///staging/dc1"
    assert spec.upto == NOW.isoformat()
    assert spec.source is not None
    assert spec.source.overlap_s == 120
    assert "sqlite" not in spec.to_json()
    assert secrets == {"LAKEHUB_SOURCE_URL": "sqlite:///:memory:"}


def test_a_misspelt_option_of_a_feed_is_told_by_the_run(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    copy.dataset.feed.options = {"indx": "simple"}
    copy.dataset.feed.save()
    run = ask(copy)
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert run.error == "A feed has no option `indx`. Did you mean `index`?"


@pytest.mark.parametrize(
    "option",
    [{"overlap_s": 1e300}, {"overlap_s": "nan"}, {"deadline_s": 0}, {"chunk_rows": -1}, {"inputs_back_s": "x"}],
)
def test_an_option_of_a_feed_that_cannot_be_counted_with_is_told_by_the_run(
    copy: DatasetCopy, launcher: FakeLauncher, option: dict[str, object]
) -> None:
    copy.dataset.feed.options = option
    copy.dataset.feed.save()
    run = ask(copy)
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    ((name, value),) = option.items()
    assert f"The feed's option `{name}` is {value!r}: give a number from" in run.error


def test_a_run_that_waits_is_cancelled_and_one_that_runs_is_not(copy: DatasetCopy) -> None:
    run = ask(copy)
    job_runs.cancel_run(run, actor="ana", now=NOW)
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED
    with pytest.raises(Conflict, match="only a run that waits can be cancelled"):
        job_runs.cancel_run(run, actor="ana", now=NOW)


def test_how_far_a_run_is_is_written_while_it_is_the_workers(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    given.run(copy, state=JobState.QUEUED)
    run = job_runs.claim_next_run("host:1:a", now=given.NOW)
    assert run is not None
    launcher.far = JobProgress("read", 3.0, rows_read=10, rows_total=20)
    run_worker._tell_progress(run, worker_at(given.NOW, launcher))
    run.refresh_from_db()
    assert (run.progress["phase"], run.progress["rows_read"], run.progress_at) == ("read", 10, given.NOW)
    launcher.far = JobProgress("write", 1.0)
    run_worker._tell_progress(run, worker_at(given.NOW, launcher, name="host:2:b"))
    run.refresh_from_db()
    assert run.progress["phase"] == "read"


def test_a_launcher_that_cannot_say_how_far_it_is_costs_the_run_nothing(
    copy: DatasetCopy, launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = given.run(copy, state=JobState.RUNNING, leased_by="host:1:a")
    monkeypatch.setattr(FakeLauncher, "progress", lambda *_: 1 / 0)
    run_worker._tell_progress(run, worker_at(given.NOW, launcher))
    run.refresh_from_db()
    assert (run.state, run.progress) == (JobState.RUNNING, {})


def test_the_next_attempt_begins_without_the_last_ones_progress(copy: DatasetCopy) -> None:
    given.run(copy, state=JobState.QUEUED, progress={"phase": "write"}, progress_at=given.NOW)
    run = job_runs.claim_next_run("host:1:a", now=given.NOW)
    assert run is not None
    assert (run.progress, run.progress_at) == ({}, None)


def test_a_job_on_a_copy_without_a_table_is_refused_and_says_what_to_do(copy: DatasetCopy) -> None:
    """Asked for again after a drop too; the schedule asks for what it knows to be loaded."""
    for kind in ("incremental", "backfill", "delete"):
        params = {"share": 1.0} if kind == "delete" else {"partitions": ["2026-11-16"]} if kind == "backfill" else {}
        with pytest.raises(Refused, match=f"no table yet.* `{kind}`. Bootstrap it first: `manage.py ingest bootstrap"):
            job_runs.request_run(copy, kind, params, asked_by="ana", now=NOW)
    loading = job_runs.request_run(copy, "bootstrap", asked_by="ana", now=NOW)
    with pytest.raises(Refused, match=f"run {loading.pk}, is queued: ask again when it has succeeded"):
        job_runs.request_run(copy, "incremental", asked_by="ana", now=NOW)
    JobRun.objects.update(state=JobState.SUCCEEDED, started_at=NOW)
    assert job_runs.request_run(copy, "incremental", asked_by="ana", now=NOW).kind == "incremental"
    given.commit(copy, NOW)
    given.run(copy, JobKind.DROP, started_at=NOW + timedelta(minutes=1))
    with pytest.raises(Refused, match="Bootstrap it first"):
        job_runs.request_run(copy, "backfill", {"partitions": ["2026-11-16"]}, asked_by="ana", now=NOW)


@pytest.mark.parametrize("kind", ["incremental", "backfill", "bootstrap"])
def test_a_bootstrap_that_was_killed_too_often_is_asked_for_at_once_by_whoever_wants_a_job(
    copy: DatasetCopy, kind: str
) -> None:
    job_runs.request_run(copy, "bootstrap", asked_by="schedule", now=NOW)
    for attempt in range(MAX_ATTEMPTS + 1):
        job_runs.claim_next_run(f"killed {attempt}", now=NOW, lease=timedelta(seconds=-1))
    assert JobRun.objects.get().state == JobState.FAILED
    assert feed_schedule.request_due_runs(now=NOW) == []
    params = {"partitions": ["2026-11-16"]} if kind == "backfill" else {}
    run = job_runs.request_run(copy, kind, params, asked_by="ana", now=NOW)
    assert (run.kind, run.params, run.due_at, run.asked_by) == ("bootstrap", {}, NOW, "ana")
    assert job_runs.claim_next_run("alive", now=NOW) == run


def test_a_delete_never_becomes_a_bootstrap(copy: DatasetCopy) -> None:
    given.run(copy, JobKind.BOOTSTRAP, JobState.FAILED, error="it was killed")
    with pytest.raises(Refused, match=r"was given up: it was killed\. Retry that run first"):
        job_runs.request_run(copy, "delete", {"share": 1.0}, asked_by="ana", now=NOW)
