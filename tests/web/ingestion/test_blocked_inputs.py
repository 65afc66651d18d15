"""A run asks the gate about all its inputs before it starts: it waits while one is blocked, and goes on by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from ingestion.models import BlockedInput, JobKind, JobRun, JobState
from ingestion.ports import InputDecision, JobInput
from ingestion.runs import blocked_inputs, job_runs, run_worker
from ingestion.runs.feed_schedule import request_due_runs
from ingestion.runs.run_worker import Worker
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Dataset, DatasetCopy, Feed
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.interval import BEGINNING, EVERYTHING, Interval
from lakehub.processes.celery_app import app
from tests import factories as given
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.web.ingestion.conftest import FakeLauncher, worker_at

YESTERDAY, TODAY = day("2026-11-16"), day("2026-11-17")


@dataclass
class FakeGate:
    """Blocks the datasets in `blocked`, and remembers what it was asked in one go."""

    blocked: dict[str, tuple[int, ...]] = field(default_factory=dict)
    retry_at: datetime | None = None
    asked: list[tuple[list[JobInput], str, str]] = field(default_factory=list)

    def __call__(
        self, inputs: Sequence[JobInput], *, consumer: str, request_id: str, now: datetime
    ) -> list[InputDecision]:
        self.asked.append((list(inputs), consumer, request_id))
        return [self._answer(job_input) for job_input in inputs]

    def _answer(self, job_input: JobInput) -> InputDecision:
        if job_input.dataset not in self.blocked:
            return InputDecision(job_input, True, "pass")
        return InputDecision(
            job_input, False, "fail", "fail: sustained", self.blocked[job_input.dataset], self.retry_at
        )


@pytest.fixture
def gate() -> FakeGate:
    return FakeGate()


@pytest.fixture
def worker(launcher: FakeLauncher, gate: FakeGate) -> Worker:
    return worker_at(NOW, launcher, gate=gate)


@pytest.fixture
def planes(copy: DatasetCopy) -> Dataset:
    """What flights is made from, in the lake too."""
    made = given.dataset("planes", by_day=False)
    given.edge(made, copy.dataset)
    return made


def ask(copy: DatasetCopy, kind: str = "incremental", **params: object) -> JobRun:
    return job_runs.request_run(given.with_table(copy), kind, params, asked_by="ana", now=NOW)


def state(run: JobRun) -> tuple[str, datetime]:
    run.refresh_from_db()
    return run.state, run.due_at


def test_nothing_is_started_while_an_input_is_blocked(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, launcher: FakeLauncher, worker: Worker
) -> None:
    gate.blocked, gate.retry_at = {"planes": (214,)}, NOW + 9 * MINUTE
    run = ask(copy)
    assert run_worker.run_next(worker) == run
    assert launcher.asked == []
    assert state(run) == (JobState.WAITING, NOW + 9 * MINUTE)
    assert (run.waits_since, run.started_at, run.attempt, run.leased_by) == (NOW, None, 0, "")
    assert run.error == "waits for planes@dc1: fail: sustained"
    (held,) = run.blocked_by.all()
    assert (held.copy, held.verdict, held.incidents) == (planes.copies.get(), "fail", [214])
    assert run_worker.run_next(worker) is None


def test_it_goes_on_by_itself_when_the_incident_resolves(
    copy: DatasetCopy,
    planes: Dataset,
    gate: FakeGate,
    launcher: FakeLauncher,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(app, "send_task", lambda name, **_: woken.append(name))
    gate.blocked, gate.retry_at = {"planes": (214,)}, NOW + 9 * MINUTE
    run = ask(copy)
    run_worker.run_next(worker)
    gate.blocked = {}
    with django_capture_on_commit_callbacks(execute=True):
        assert blocked_inputs.wake_waiting_runs(planes.pk, now=NOW) == 1
    assert (state(run), woken) == ((JobState.WAITING, NOW), ["ingestion.tasks.run_job"])
    assert run_worker.run_next(worker) == run
    assert (run.kind, state(run)[0], len(launcher.asked)) == ("incremental", JobState.SUCCEEDED, 1)
    assert not BlockedInput.objects.exists()
    assert blocked_inputs.wake_waiting_runs(planes.pk, now=NOW) == 0


def test_else_the_gate_is_asked_again_when_it_said(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, launcher: FakeLauncher
) -> None:
    gate.blocked, gate.retry_at = {"planes": (214,)}, NOW + 9 * MINUTE
    run = ask(copy)
    run_worker.run_next(worker_at(NOW, launcher, gate=gate))
    run_worker.run_next(worker_at(NOW + 8 * MINUTE, launcher, gate=gate))
    assert len(gate.asked) == 2, "asked and, once it was written down that it waits, asked once more"
    run_worker.run_next(worker_at(NOW + 9 * MINUTE, launcher, gate=gate))
    assert len(gate.asked) == 4
    assert (state(run)[0], run.waits_since, run.attempt) == (JobState.WAITING, NOW, 0)
    assert run.blocked_by.count() == 1


@pytest.mark.parametrize(("named", "expected"), [(None, 5 * MINUTE), (3 * DAY, 15 * MINUTE), (MINUTE, MINUTE)])
def test_it_asks_at_least_every_quarter_of_an_hour(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, worker: Worker, named: timedelta | None, expected: timedelta
) -> None:
    gate.blocked, gate.retry_at = {"planes": ()}, named and NOW + named
    run = ask(copy)
    run_worker.run_next(worker)
    assert state(run) == (JobState.WAITING, NOW + expected)


def test_what_resolves_while_it_is_written_down_is_not_missed(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, launcher: FakeLauncher
) -> None:
    def healing(inputs: Sequence[JobInput], **how: Any) -> list[InputDecision]:
        gate.blocked = {"planes": (214,)} if not gate.asked else {}
        return gate(inputs, **how)

    run = ask(copy)
    run_worker.run_next(worker_at(NOW, launcher, gate=healing))
    assert state(run) == (JobState.WAITING, NOW)


def test_a_run_that_waits_is_not_asked_for_again_and_keeps_nobody_else_waiting(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, launcher: FakeLauncher, worker: Worker
) -> None:
    gate.blocked = {"planes": (214,)}
    ask(copy)
    run_worker.run_next(worker)
    assert request_due_runs(now=NOW + DAY) == []
    with pytest.raises(Conflict):
        ask(copy)
    delete = ask(copy, "delete", share=0.5)
    assert run_worker.run_next(worker) == delete
    assert [spec.kind for spec, _ in launcher.asked] == ["delete"]


def test_jobs_that_read_no_source_ask_nothing(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, worker: Worker
) -> None:
    gate.blocked = {"planes": (214,)}
    run = ask(copy, "drop")
    run_worker.run_next(worker)
    assert (state(run)[0], gate.asked) == (JobState.SUCCEEDED, [])


def test_all_inputs_are_asked_about_in_one_go_under_the_name_of_the_run(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, worker: Worker
) -> None:
    given.edge(given.dataset("airports", by_day=False), copy.dataset)
    run = ask(copy)
    run_worker.run_next(worker)
    ((inputs, consumer, request),) = gate.asked
    assert (sorted(map(str, inputs)), consumer, request) == (["airports@dc1", "planes@dc1"], "ingestion", str(run.key))


def wanted(copy: DatasetCopy, gate: FakeGate, worker: Worker, run: JobRun) -> list[tuple[str, Interval]]:
    run_worker.run_next(worker)
    return [(job_input.dataset, job_input.data_range) for job_input in gate.asked[0][0]]


def test_the_range_is_what_the_run_reads(copy: DatasetCopy, gate: FakeGate, worker: Worker) -> None:
    weather = given.dataset("weather")
    given.edge(weather, copy.dataset)
    given.copy_of(weather)
    since = weather.copies.get().monitored_from
    assert since is not None
    first = Interval(day("2026-09-18").start, TODAY.end)
    assert first.contains(since)
    assert wanted(copy, gate, worker, ask(copy)) == [("weather", first)]
    gate.asked.clear()
    backfill = ask(copy, "backfill", partitions=["2026-11-16", "2026-11-10", "2026-11-15"])
    pieces = [day("2026-11-10"), Interval(day("2026-11-15").start, YESTERDAY.end)]
    assert wanted(copy, gate, worker, backfill) == [("weather", piece) for piece in pieces]


def test_what_is_new_lies_in_the_partitions_since_the_last_look(
    copy: DatasetCopy, gate: FakeGate, worker: Worker
) -> None:
    given.edge(given.dataset("weather"), copy.dataset)
    given.run(copy, JobKind.BOOTSTRAP, started_at=NOW - DAY)
    assert wanted(copy, gate, worker, ask(copy)) == [("weather", Interval(YESTERDAY.start, TODAY.end))]
    Feed.objects.update(options={"inputs_back_s": 2 * 86_400})
    gate.asked.clear()
    JobRun.objects.exclude(kind=JobKind.BOOTSTRAP).delete()
    assert wanted(copy, gate, worker, ask(copy)) == [("weather", Interval(day("2026-11-14").start, TODAY.end))]


def test_an_input_without_partitions_is_asked_about_as_a_whole(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, worker: Worker
) -> None:
    assert wanted(copy, gate, worker, ask(copy)) == [("planes", EVERYTHING)]


def test_one_that_was_never_watched_is_asked_about_from_the_beginning(
    copy: DatasetCopy, gate: FakeGate, worker: Worker
) -> None:
    weather = given.dataset("weather")
    given.edge(weather, copy.dataset)
    weather.copies.update(monitored_from=None)
    ((_, over),) = wanted(copy, gate, worker, ask(copy))
    assert over.start <= BEGINNING


def test_the_inputs_are_those_of_the_lake_here_unless_the_feed_names_them(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, worker: Worker
) -> None:
    given.edge(given.dataset("elsewhere", copies=("dc2",)), copy.dataset)
    given.edge(given.dataset("outside", ingested=False), copy.dataset)
    given.edge(given.dataset("gone", offboarded_at=NOW), copy.dataset)
    given.dataset("outlook", ingested=False, by_day=False)
    assert [name for name, _ in wanted(copy, gate, worker, ask(copy))] == ["planes"]
    for named, asked in ((["outlook"], ["outlook"]), ([], [])):
        gate.asked.clear()
        Feed.objects.update(inputs=named)
        JobRun.objects.all().delete()
        ask(copy)
        run_worker.run_next(worker)
        assert [str(job_input) for question in gate.asked for job_input in question[0]] == [
            f"{name}@dc1" for name in asked
        ]


def test_an_input_that_is_not_there_fails_the_run_by_name(
    copy: DatasetCopy, planes: Dataset, launcher: FakeLauncher, worker: Worker
) -> None:
    Feed.objects.update(inputs=["plans"])
    run = ask(copy)
    run_worker.run_next(worker)
    run.refresh_from_db()
    assert (run.state, launcher.asked) == (JobState.QUEUED, [])
    assert "names the input `plans`, which has no copy in `dc1`. Did you mean `planes`?" in run.error


def test_an_operator_starts_it_regardless_with_a_reason(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, launcher: FakeLauncher, worker: Worker
) -> None:
    gate.blocked = {"planes": (214,)}
    run = ask(copy)
    run_worker.run_next(worker)
    with pytest.raises(Refused, match="Say why"):
        blocked_inputs.start_regardless(run, why=" ", actor="ana", now=NOW)
    blocked_inputs.start_regardless(run, why="the hole is in columns that we drop", actor="ana", now=NOW + HOUR)
    assert (run.state, run.regardless_by) == (JobState.QUEUED, "ana")
    entry = AuditEntry.objects.get(action="start regardless")
    assert entry.detail["why"] == "the hole is in columns that we drop"
    assert entry.detail["blocked"] == ["planes@dc1: fail: sustained"]
    asked = len(gate.asked)
    run_worker.run_next(worker_at(NOW + HOUR, launcher, gate=gate))
    assert (state(run)[0], len(launcher.asked), len(gate.asked)) == (JobState.SUCCEEDED, 1, asked)
    with pytest.raises(Conflict, match="does not wait any more"):
        blocked_inputs.start_regardless(run, why="again", actor="ana", now=NOW)


def test_a_run_that_waits_can_be_cancelled_and_ends_with_its_dataset(
    copy: DatasetCopy, planes: Dataset, gate: FakeGate, worker: Worker
) -> None:
    gate.blocked = {"planes": (214,)}
    run = ask(copy)
    run_worker.run_next(worker)
    job_runs.cancel_run(run, actor="ana", now=NOW)
    assert state(run)[0] == JobState.CANCELLED
