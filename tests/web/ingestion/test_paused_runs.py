"""Ingestion that a person has paused: nothing reads the source, what was at work keeps its position, and all of it goes on when it is resumed."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ingestion.models import Finding, JobKind, JobRun, JobState
from ingestion.runs import feed_schedule, job_runs, run_worker
from ingestion.runs.run_worker import Worker
from ingestion.runs.source_use import paused_runs
from ingestion.spark.contract.report import FAILED, PAUSED, UNFINISHED, JobReport
from ingestion.wakeups import WAKEUPS
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.datasets import changes, pausing
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, Refused
from tests import factories as given
from tests.factories import HOUR, NOW
from tests.web.ingestion.conftest import FakeLauncher, worker_at

WHY = "the database moves"


def pause(copy: DatasetCopy, why: str = WHY) -> None:
    copy.dataset.refresh_from_db()
    pausing.pause_ingestion(copy.dataset, why=why, actor="ana", now=NOW)
    paused_runs.apply_pauses(now=NOW)


def resume(copy: DatasetCopy) -> None:
    pausing.resume_ingestion(copy.dataset, actor="bo", now=NOW + HOUR)
    paused_runs.apply_pauses(now=NOW + HOUR)


def queued(copy: DatasetCopy, kind: str = JobKind.BOOTSTRAP, **fields: object) -> JobRun:
    fields = {"state": JobState.QUEUED, "due_at": NOW, "started_at": None, "ended_at": None, **fields}
    return given.run(copy, kind, **fields)


def state_of(run: JobRun) -> JobState:
    run.refresh_from_db()
    return JobState(run.state)


def test_who_when_and_why_are_kept_until_it_is_resumed(copy: DatasetCopy) -> None:
    pause(copy)
    feed = copy.dataset.feed
    assert (feed.paused, feed.paused_by, feed.paused_at, feed.paused_why) == (True, "ana", NOW, WHY)
    assert feed.pause_text == f"paused by ana since 2026-11-17 19:32 UTC: {WHY}"
    assert AuditEntry.objects.get(action="change", actor="ana").detail["becomes"] == {"paused": True, "paused_why": WHY}
    resume(copy)
    feed = copy.dataset.feed
    assert (feed.paused, feed.paused_by, feed.paused_at, feed.paused_why) == (False, "", None, "")
    assert AuditEntry.objects.get(action="change", actor="bo").detail["was"] == {"paused": True}


def test_the_settings_of_a_dataset_keep_who_paused_it_too(copy: DatasetCopy) -> None:
    changes.update_dataset(copy.dataset, {"paused": True}, actor="ana", now=NOW)
    changes.update_dataset(copy.dataset, {"paused": True, "every": HOUR}, actor="bo", now=NOW + HOUR)
    assert (copy.dataset.feed.paused_by, copy.dataset.feed.paused_at) == ("ana", NOW)


@pytest.mark.parametrize("why", ["", "  ", "x" * 2001])
def test_a_pause_needs_a_reason(copy: DatasetCopy, why: str) -> None:
    with pytest.raises(Refused):
        pause(copy, why)
    with pytest.raises(Refused):
        changes.update_dataset(copy.dataset, {"paused_why": "for nothing"}, actor="ana", now=NOW)


def test_it_is_paused_and_resumed_once(copy: DatasetCopy) -> None:
    with pytest.raises(Conflict, match="not paused"):
        resume(copy)
    pause(copy)
    with pytest.raises(Conflict, match=f"paused by ana.*{WHY}"):
        pause(copy)


def test_nothing_that_waits_is_begun_while_it_is_paused(copy: DatasetCopy, worker: Worker) -> None:
    run = queued(copy)
    pause(copy)
    assert (state_of(run), run.attempt, run.error) == (JobState.PAUSED, 0, "")
    assert run_worker.run_next(worker) is None
    assert feed_schedule.request_due_runs(now=NOW) == []
    due = next(each for each in WAKEUPS if each.task.endswith("start_due_runs")).next_due
    assert due is not None
    assert due(NOW + HOUR) is None, "an idle instance stays idle"
    resume(copy)
    assert (state_of(run), run.due_at) == (JobState.QUEUED, NOW + HOUR)
    done = run_worker.run_next(worker_at(NOW + HOUR, worker.launcher))  # type: ignore[arg-type]  # a fake
    assert done == run


def test_a_run_is_not_begun_before_the_pause_has_reached_it(copy: DatasetCopy, worker: Worker) -> None:
    queued(copy)
    pausing.pause_ingestion(copy.dataset, why=WHY, actor="ana", now=NOW)
    assert run_worker.run_next(worker) is None


def test_what_reads_no_source_is_not_paused(copy: DatasetCopy, worker: Worker) -> None:
    drop = queued(copy, JobKind.DROP)
    pause(copy)
    assert state_of(drop) == JobState.QUEUED
    assert run_worker.run_next(worker) == drop


def test_another_dataset_goes_on(copy: DatasetCopy, worker: Worker) -> None:
    other = given.dataset("planes")
    given.feed(other)
    run = queued(given.copy_of(other))
    pause(copy)
    assert run_worker.run_next(worker) == run


@pytest.mark.parametrize("kind", ["bootstrap", "incremental"])
def test_a_person_is_told_that_it_is_paused(copy: DatasetCopy, kind: str) -> None:
    pause(copy)
    with pytest.raises(Refused, match=f"paused by ana since .*: {WHY}. Resume it first"):
        job_runs.request_run(copy, kind, asked_by="bo", now=NOW)


def test_a_load_that_was_paused_between_two_commits_fails_nothing(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    run = queued(copy, attempt=3)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=PAUSED, has_more=True)
    run_worker.run_next(worker_at(NOW, launcher))
    assert (state_of(run), run.attempt, run.leased_by, run.ended_at) == (JobState.PAUSED, 0, "", None)
    assert not Finding.objects.exists()
    paused_runs.apply_pauses(now=NOW)
    assert state_of(run) == JobState.QUEUED, "it was resumed in the meantime"


def test_a_job_is_asked_to_stop_as_soon_as_it_is_paused(copy: DatasetCopy) -> None:
    assert not paused_runs.is_paused(copy)
    pause(copy)
    assert paused_runs.is_paused(copy)


@pytest.mark.parametrize("status", [UNFINISHED, FAILED])
def test_a_load_that_ends_in_any_other_way_meanwhile_is_paused_then(
    copy: DatasetCopy, launcher: FakeLauncher, status: str
) -> None:
    run = queued(copy)

    def answer(spec: object) -> JobReport:
        pausing.pause_ingestion(copy.dataset, why=WHY, actor="ana", now=NOW)
        return JobReport(run_id=str(run.key), status=status)

    launcher.answer = answer
    run_worker.run_next(worker_at(NOW, launcher))
    assert state_of(run) == JobState.QUEUED
    paused_runs.apply_pauses(now=NOW)
    assert state_of(run) == JobState.PAUSED


def test_the_run_of_a_worker_that_died_is_paused(copy: DatasetCopy, worker: Worker) -> None:
    run = queued(copy)
    assert job_runs.claim_next_run("host:9:dead", now=NOW, lease=timedelta(seconds=-1)) == run
    pause(copy)
    assert (state_of(run), run.leased_by) == (JobState.PAUSED, "")


def test_a_run_that_is_at_work_is_left_to_its_worker(copy: DatasetCopy) -> None:
    run = queued(copy)
    job_runs.claim_next_run("host:9:a", now=NOW)
    pause(copy)
    assert (state_of(run), run.leased_by) == (JobState.RUNNING, "host:9:a")


def test_a_paused_run_can_be_cancelled(copy: DatasetCopy) -> None:
    run = queued(copy)
    pause(copy)
    job_runs.cancel_run(run, actor="ana", now=NOW)
    resume(copy)
    assert state_of(run) == JobState.CANCELLED


def test_the_commands(copy: DatasetCopy) -> None:
    run, out = queued(copy), StringIO()
    call_command("pause", "flights", "--why", WHY, stdout=out)
    paused_runs.apply_pauses(now=NOW)
    call_command("runs", "flights", stdout=out)
    assert "paused    paused by manage.py since" in out.getvalue()
    assert WHY in out.getvalue()
    with pytest.raises(CommandError, match="is paused by manage"):
        call_command("pause", "flights", "--why", WHY)
    call_command("resume", "flights", stdout=out)
    assert "Ingestion of flights goes on." in out.getvalue()
    with pytest.raises(CommandError, match="no dataset `flight`"):
        call_command("resume", "flight")
    paused_runs.apply_pauses(now=NOW)
    assert state_of(run) == JobState.QUEUED
