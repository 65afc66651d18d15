"""Backfills in chunks: who may ask for what, when a chunk is due, and what becomes of those that fail, are paused or are left by a worker that died."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client

from ingestion import tasks
from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.lake.findings import JOB_FAILING
from ingestion.models import (
    Backfill,
    BackfillChunk,
    BackfillState,
    ChunkState,
    Finding,
    JobKind,
    JobRun,
    JobState,
    Replica,
)
from ingestion.runs import feed_schedule, job_runs, retention, run_worker
from ingestion.runs.backfills.progress import backfill_progress
from ingestion.runs.backfills.requests import PartitionChoice, change_backfill, request_backfill
from ingestion.runs.backfills.schedule import (
    PATIENCE,
    advance_backfills,
    ended_chunks,
    open_backfills,
    stopped_backfills,
)
from ingestion.spark.contract.report import FAILED, SUCCEEDED, JobReport, WrittenKeys
from ingestion.spark.contract.spec import JobSpec
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import Dataset, DatasetCopy, Feed
from lakehub.kernel.errors import Conflict, Refused
from tests import factories as given
from tests.factories import DAY, MINUTE, NOW
from tests.query_plans import plans_of
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE
from tests.web.ingestion.conftest import FakeLauncher, worker_at
from tests.web.ingestion.test_pipelines import inputs as inputs
from tests.web.ingestion.test_pipelines import register

BACKFILLS = "/api/v1/datasets/flights-by-day/backfills"
MARCH = PartitionChoice("2013-03-01", "2013-03-25")
"""Three chunks of ten partitions at most."""
pytestmark = pytest.mark.django_db


@pytest.fixture
def copy(inputs: dict[str, Dataset]) -> DatasetCopy:
    """Whose table is there, and whose pipeline has just run."""
    copy = given.copy_of(register())
    given.run(copy, JobKind.BOOTSTRAP, ended_at=NOW)
    return given.with_table(copy)


def ask(copy: DatasetCopy, choice: PartitionChoice = MARCH, **fields: Any) -> Backfill:
    return request_backfill(copy, choice, actor="ana", now=NOW, **fields)


def look(minutes: int = 0) -> list[JobRun]:
    """As the schedule does, this long after NOW."""
    now = NOW + minutes * MINUTE
    feed_schedule.request_due_runs(now=now)
    return advance_backfills(now=now)


def written(spec: JobSpec) -> JobReport:
    return JobReport(spec.run_id, SUCCEEDED, written=WrittenKeys(inserts=1, updates=len(spec.partitions)))


def failing(*numbers: int) -> Callable[[JobSpec], JobReport]:
    """Chunks of these numbers fail, the others do not."""

    def answer(spec: JobSpec) -> JobReport:
        chunk = BackfillChunk.objects.get(run__key=spec.run_id)
        return JobReport(spec.run_id, FAILED, error="No space left") if chunk.number in numbers else written(spec)

    return answer


def work(minutes: int, answer: Callable[[JobSpec], JobReport] = written) -> JobRun | None:
    return run_worker.run_next(worker_at(NOW + minutes * MINUTE, FakeLauncher(answer)))


def play(backfill: Backfill, answer: Callable[[JobSpec], JobReport] = written, *, start: int = 0) -> list[int]:
    """Looks and works, minute by minute, until it has ended; the numbers of the chunks that ran, each attempt."""
    numbers: list[int] = []
    for minute in range(start, start + 60):
        look(minute)
        while (run := work(minute, answer)) is not None:
            numbers += run.chunks.values_list("number", flat=True)
        backfill.refresh_from_db()
        if backfill.ended_at is not None:
            return numbers
    raise AssertionError(f"{backfill} has not ended")


def states(backfill: Backfill) -> list[str]:
    return [*backfill.chunks.order_by("number").values_list("state", flat=True)]


def test_its_chunks_are_backfills_one_after_the_other_in_order(copy: DatasetCopy) -> None:
    backfill, specs = ask(copy), []

    def answer(spec: JobSpec) -> JobReport:
        specs.append(spec)
        assert JobRun.objects.filter(kind=JobKind.BACKFILL, state__in=job_runs.ACTIVE).count() == 1
        return written(spec)

    assert play(backfill, answer) == [1, 2, 3]
    assert {spec.kind for spec in specs} == {"backfill"}
    assert [len(spec.partitions) for spec in specs] == [10, 10, 5]
    assert list(specs[0].partitions) == [f"2013-03-{day:02}" for day in range(1, 11)]
    assert specs[2].partitions[-1] == "2013-03-25"
    assert (backfill.state, backfill.error) == (BackfillState.SUCCEEDED, "")
    assert not Finding.objects.exists()


def test_a_list_has_its_partitions_in_chunks_of_the_size_that_was_asked_for(copy: DatasetCopy) -> None:
    backfill = ask(copy, PartitionChoice(partitions=["2013-05-01", "2013-01-01", "2012-02-29"]), chunk_size=2)
    assert [chunk.partitions for chunk in backfill.chunks.order_by("number")] == [["2012-02-29", "2013-01-01"], ["2013-05-01"]]  # fmt: skip


def test_looking_twice_asks_once(copy: DatasetCopy) -> None:
    ask(copy)
    assert [run.kind for run in look()] == ["backfill"]
    assert look() == []
    assert JobRun.objects.filter(kind=JobKind.BACKFILL).count() == 1


def test_an_incremental_that_is_due_comes_before_the_next_chunk(copy: DatasetCopy) -> None:
    """The pipeline runs every 30 minutes."""
    backfill = ask(copy)
    look(29)
    work(29)
    assert states(backfill)[0] == "running"
    assert look(30) == []
    first = work(30)
    assert first is not None
    assert first.kind == "incremental"
    (run,) = look(31)
    assert run.chunks.get().number == 2


def test_a_chunk_does_not_wait_for_incrementals_without_end(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    given.run(copy, state=JobState.RUNNING, leased_until=NOW + DAY, ended_at=None)
    patience = int(PATIENCE / MINUTE)
    assert look(patience - 1) == []
    assert len(look(patience)) == 1
    assert states(backfill) == ["running", "waiting", "waiting"]


def test_a_chunk_that_fails_is_tried_again_alone_and_the_others_go_on(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    assert play(backfill, failing(2)) == [1, *[2] * MAX_ATTEMPTS, 3]
    assert states(backfill) == ["succeeded", "failed", "succeeded"]
    assert backfill.state == BackfillState.FAILED
    assert "1 of 3 chunks failed: 2." in backfill.error
    assert backfill.chunks.get(number=2).error == "No space left"
    finding = Finding.objects.get(kind=JOB_FAILING, cleared_at=None)
    assert f"1 of 3 chunks of backfill {backfill.pk} failed" in finding.detail["message"]


def test_what_failed_can_be_tried_again_and_only_that(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    play(backfill, failing(1, 3))
    change_backfill(backfill, "retry", actor="omar", now=NOW + 60 * MINUTE)
    assert play(backfill, start=61) == [1, 3]
    assert (backfill.state, backfill.error, states(backfill)) == (BackfillState.SUCCEEDED, "", ["succeeded"] * 3)
    assert not Finding.objects.filter(cleared_at=None).exists()


def test_a_worker_that_dies_leaves_its_chunk_to_the_next_one(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    look()
    run = job_runs.claim_next_run("host:1:a", now=NOW, lease=timedelta(seconds=-1))
    assert run is not None
    assert look(1) == []
    assert play(backfill, start=2) == [1, 2, 3]
    run.refresh_from_db()
    assert (run.state, run.attempt) == (JobState.SUCCEEDED, 2)


def test_a_chunk_that_kills_its_workers_is_given_up_and_the_others_go_on(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    look()
    for _ in range(MAX_ATTEMPTS):
        assert job_runs.claim_next_run("host:1:a", now=NOW, lease=timedelta(seconds=-1)) is not None
    assert play(backfill, start=1) == [2, 3]
    assert "its worker ended without a word" in backfill.chunks.get(number=1).error


def test_a_paused_one_begins_no_chunk_until_it_is_resumed(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    (run,) = look()
    change_backfill(backfill, "pause", actor="omar", now=NOW)
    run.refresh_from_db()
    assert (run.state, states(backfill)) == (JobState.CANCELLED, ["waiting"] * 3)
    assert (look(1), work(1)) == ([], None)
    change_backfill(backfill, "resume", actor="omar", now=NOW + 2 * MINUTE)
    assert play(backfill, start=2) == [1, 2, 3]


@pytest.mark.parametrize(("action", "state"), [("pause", BackfillState.PAUSED), ("cancel", BackfillState.CANCELLED)])
def test_a_chunk_that_is_at_work_is_left_to_end(copy: DatasetCopy, action: str, state: BackfillState) -> None:
    backfill = ask(copy)
    look()

    def answer(spec: JobSpec) -> JobReport:
        change_backfill(backfill, action, actor="omar", now=NOW)
        return written(spec)

    run = work(0, answer)
    assert run is not None
    assert run.state == JobState.SUCCEEDED
    assert look(1) == []
    backfill.refresh_from_db()
    assert (backfill.state, states(backfill)) == (state, ["succeeded", "waiting", "waiting"])


@pytest.mark.parametrize("action", ["pause", "cancel"])
def test_a_chunk_that_fails_after_its_backfill_was_stopped_is_not_tried_again(copy: DatasetCopy, action: str) -> None:
    backfill = ask(copy)
    look()
    JobRun.objects.filter(kind=JobKind.BACKFILL).update(state=JobState.RUNNING, leased_until=NOW + DAY)
    change_backfill(backfill, action, actor="omar", now=NOW)
    JobRun.objects.filter(kind=JobKind.BACKFILL).update(state=JobState.QUEUED, attempt=1)
    assert look(1) == []
    assert JobRun.objects.get(kind=JobKind.BACKFILL).state == JobState.CANCELLED
    assert states(backfill) == ["waiting", "waiting", "waiting"]


def test_no_chunk_begins_while_one_of_a_cancelled_backfill_is_at_work(copy: DatasetCopy) -> None:
    cancelled = ask(copy)
    look()
    JobRun.objects.filter(kind=JobKind.BACKFILL).update(state=JobState.RUNNING, leased_until=NOW + DAY)
    change_backfill(cancelled, "cancel", actor="omar", now=NOW)
    ask(copy)
    assert look(1) == []
    JobRun.objects.filter(kind=JobKind.BACKFILL).update(state=JobState.SUCCEEDED, ended_at=NOW + MINUTE)
    assert len(look(2)) == 1


def test_a_run_that_somebody_cancels_is_a_chunk_that_failed(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    (run,) = look()
    job_runs.cancel_run(run, actor="omar", now=NOW)
    look(1)
    chunk = backfill.chunks.get(number=1)
    assert (chunk.state, chunk.error) == (ChunkState.FAILED, f"run {run.pk} is cancelled")


@pytest.mark.parametrize(
    ("state", "action"),
    [("succeeded", "cancel"), ("cancelled", "resume"), ("running", "retry"), ("running", "resume"), ("failed", "pause")],
)  # fmt: skip
def test_what_its_state_does_not_take_is_refused_and_nothing_changes(
    copy: DatasetCopy, state: str, action: str
) -> None:
    backfill = ask(copy)
    Backfill.objects.update(state=state)
    with pytest.raises(Conflict, match=f"is {state}: to {action} it, it has to be"):
        change_backfill(backfill, action, actor="omar", now=NOW)
    assert Backfill.objects.get().state == state
    assert not AuditEntry.objects.filter(actor="omar").exists()


def gone_offboarded(copy: DatasetCopy) -> None:
    Dataset.objects.filter(pk=copy.dataset_id).update(offboarded_at=NOW)


def gone_copy(copy: DatasetCopy) -> None:
    DatasetCopy.objects.filter(pk=copy.pk).update(removed_at=NOW)


def gone_table(copy: DatasetCopy) -> None:
    given.run(copy, JobKind.DROP, started_at=NOW + MINUTE, ended_at=NOW + MINUTE)


@pytest.mark.parametrize(
    ("gone", "expected"),
    [(gone_offboarded, "was off-boarded"), (gone_copy, "was removed"), (gone_table, "was dropped")],
)
@pytest.mark.parametrize("state", [BackfillState.RUNNING, BackfillState.PAUSED])
def test_it_ends_with_its_dataset_its_copy_and_its_table(
    copy: DatasetCopy, gone: Callable[[DatasetCopy], None], expected: str, state: BackfillState
) -> None:
    backfill = ask(copy)
    Backfill.objects.update(state=state)
    gone(copy)
    assert advance_backfills(now=NOW + 2 * MINUTE) == []
    backfill.refresh_from_db()
    assert (backfill.state, backfill.ended_at) == (BackfillState.CANCELLED, NOW + 2 * MINUTE)
    assert expected in backfill.error
    assert not JobRun.objects.filter(kind=JobKind.BACKFILL).exists()


def test_a_paused_ingestion_holds_it_up(copy: DatasetCopy) -> None:
    ask(copy)
    Feed.objects.filter(dataset=copy.dataset_id).update(paused=True)
    assert look() == []
    Feed.objects.update(paused=False)
    assert len(look(1)) == 1


def refused(copy: DatasetCopy, choice: PartitionChoice, **fields: Any) -> str:
    with pytest.raises(Refused) as problem:
        ask(copy, choice, **fields)
    assert not Backfill.objects.exists()
    assert not AuditEntry.objects.filter(action="backfill").exists()
    return str(problem.value)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (PartitionChoice(), "no partition is named: give `first` and `last`, or `partitions`"),
        (PartitionChoice("2013-03-01"), "`last` is missing"),
        (PartitionChoice(last="2013-03-01"), "`first` is missing"),
        (PartitionChoice("2013-03-02", "2013-03-01"), "`first` 2013-03-02 lies after `last` 2013-03-01"),
        (PartitionChoice("2013-03", "2013-04"), "'2013-03' is not the name of a partition by day: expected the form"),
        (PartitionChoice(partitions=["2013-03-01", "2013-02-30"]), "2013-02-30"),
        (PartitionChoice("2013-03-01", "2013-03-02", ["2013-03-03"]), "and not both"),
    ],
)
def test_what_names_no_partitions_is_refused_and_nothing_is_written(
    copy: DatasetCopy, choice: PartitionChoice, expected: str
) -> None:
    assert expected in refused(copy, choice)


def test_chunks_of_no_size_are_refused(copy: DatasetCopy) -> None:
    assert "`chunk_size` is 0: give a whole number of partitions from 1 to 1,000" in refused(copy, MARCH, chunk_size=0)


def test_a_table_without_partitions_is_made_anew_as_a_whole(inputs: dict[str, Dataset]) -> None:
    whole = PIPELINE.replace("partition: day\n", "").replace("grain: day\n", "")
    copy = given.with_table(given.copy_of(register(**{"pipeline.yaml": whole})))
    assert "has no partitions: `manage.py ingest bootstrap flights-by-day --replace`" in refused(copy, MARCH)


def test_what_no_pipeline_makes_and_what_has_no_table_is_refused(copy: DatasetCopy) -> None:
    assert "`flights` is not made by a pipeline" in refused(given.copy_of(Dataset.objects.get(name="flights")), MARCH)
    gone_table(copy)
    assert "has no table yet" in refused(copy, MARCH)


def paused(copy: DatasetCopy) -> None:
    Feed.objects.filter(dataset=copy.dataset_id).update(paused=True)


def replicated(copy: DatasetCopy) -> None:
    source = given.copy(copy.dataset, "dc2")
    Replica.objects.create(copy=copy, source=source, asked_by="ana", asked_at=NOW)


@pytest.mark.parametrize(
    ("state", "expected"),
    [(paused, "Resume it first"), (gone_offboarded, "is off-boarded"), (replicated, "is replicated from dc2")],
)
def test_a_copy_that_takes_no_backfills_is_refused(
    copy: DatasetCopy, state: Callable[[DatasetCopy], None], expected: str
) -> None:
    state(copy)
    assert expected in refused(DatasetCopy.objects.get(pk=copy.pk), MARCH)


def test_one_that_becomes_a_replica_ends_with_the_reason(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    replicated(copy)
    assert look() == []
    backfill.refresh_from_db()
    assert (backfill.state, "is replicated from dc2" in backfill.error) == (BackfillState.CANCELLED, True)


def test_a_second_one_of_the_copy_is_refused_while_one_is_open(copy: DatasetCopy) -> None:
    first = ask(copy)
    with pytest.raises(Conflict, match=rf"Backfill {first.pk} of .* is running, and has 2013-03-25 too"):
        ask(copy, PartitionChoice("2013-03-25", "2013-04-01"))
    change_backfill(first, "pause", actor="ana", now=NOW)
    with pytest.raises(Conflict, match="is paused; nothing was changed"):
        ask(copy, PartitionChoice("2014-03-25", "2014-04-01"))
    assert Backfill.objects.count() == 1


def test_two_people_who_ask_at_once_have_one(copy: DatasetCopy) -> None:
    """The database keeps the second one out where both have found none."""
    with pytest.raises(IntegrityError, match=r"one_backfill_a_copy|ingestion_backfill\.copy_id"):
        Backfill.objects.bulk_create(
            Backfill(copy=copy, first="a", last="b", chunk_size=1, asked_by=who, asked_at=NOW, resumed_at=NOW)
            for who in ("ana", "omar")
        )


def test_one_that_failed_is_not_tried_again_beside_another(copy: DatasetCopy) -> None:
    failed = ask(copy)
    Backfill.objects.update(state=BackfillState.FAILED, ended_at=NOW)
    other = ask(copy)
    with pytest.raises(Conflict, match=f"Backfill {other.pk} of"):
        change_backfill(failed, "retry", actor="omar", now=NOW)


def test_the_time_left_goes_by_the_chunks_that_are_done(copy: DatasetCopy) -> None:
    backfill = ask(copy)
    look()

    def progress() -> Any:
        (now,) = backfill_progress([Backfill.objects.get(pk=backfill.pk)])
        return now

    assert (progress().total, progress().ended, progress().time_left) == (25, 0, None)
    work(4)
    look(4)
    assert (progress().partitions, progress().rows) == ({"waiting": 5, "running": 10, "succeeded": 10, "failed": 0}, 11)
    assert progress().chunks == {"waiting": 1, "running": 1, "succeeded": 1, "failed": 0}
    assert progress().time_left == 6 * MINUTE
    change_backfill(backfill, "pause", actor="omar", now=NOW)
    assert progress().time_left is None


def test_what_is_due_is_found_by_indexes(copy: DatasetCopy) -> None:
    ask(copy)
    look()
    (opened,) = plans_of(lambda: list(open_backfills()))
    assert "backfill_open" in opened
    (ended,) = plans_of(lambda: list(ended_chunks()))
    (stopped,) = plans_of(lambda: list(stopped_backfills()))
    assert "chunk_at_work" in ended
    (waiting,) = plans_of(
        lambda: BackfillChunk.objects.filter(backfill=1, state=ChunkState.WAITING).order_by("number").first()
    )
    assert "chunk_waiting" in waiting
    for plan in (opened, ended, stopped, waiting):
        assert not re.search(r"(SCAN|Seq Scan on) ingestion_backfill(chunk)?(?! USING)\b", plan), plan


def test_old_ones_go_with_their_chunks(copy: DatasetCopy) -> None:
    play(ask(copy))
    kept = ask(copy)
    retention.delete_old_backfills(now=NOW + 40 * DAY, retention=30 * DAY)
    assert [*Backfill.objects.all()] == [kept]
    assert {chunk.backfill for chunk in BackfillChunk.objects.all()} == {kept}


def test_the_api_asks_shows_and_changes(copy: DatasetCopy, client: Client) -> None:
    client.force_login(given.member(given.user("olga"), copy.dataset.team, Role.ON_CALL).user)
    body = {"first": "2013-03-01", "last": "2013-03-25", "chunk_size": 20}
    made = client.post(BACKFILLS, body, content_type="application/json")
    assert made.status_code == 201, made.content
    number = made.json()["id"]
    assert made.json()["partitions"] == {"waiting": 25, "running": 0, "succeeded": 0, "failed": 0}
    look()
    shown = client.get(f"{BACKFILLS}/{number}").json()
    assert (shown["running_chunk"]["number"], shown["failed_chunks"], shown["time_left_s"]) == (1, [], None)
    assert [each["id"] for each in client.get(BACKFILLS).json()["results"]] == [number]
    paused = client.post(f"{BACKFILLS}/{number}/action", {"action": "pause"}, content_type="application/json")
    assert (paused.status_code, paused.json()["state"]) == (200, "paused")
    again = client.post(BACKFILLS, body, content_type="application/json")
    assert again.status_code == 409
    assert [entry.action for entry in AuditEntry.objects.filter(actor="olga").order_by("pk")] == [
        "backfill",
        "pause backfill",
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"first": "2013-03-02", "last": "2013-03-01"}, "lies after"),
        ({"partitions": "2013-03-02"}, "list"),
        ({"partitions": [["2013-03-02"]]}, "valid string"),
        ({"first": "2013-03-01", "last": "2013-03-02", "chunk_size": 0}, "greater than or equal to 1"),
        ({"first": "2013-03-01", "last": "2013-03-02", "data_center": "dc7"}, "no copy in `dc7`"),
    ],
)
def test_the_api_says_what_is_wrong(copy: DatasetCopy, client: Client, body: dict[str, Any], expected: str) -> None:
    client.force_login(given.member(given.user("olga"), copy.dataset.team, Role.ON_CALL).user)
    answer = client.post(BACKFILLS, body, content_type="application/json")
    assert answer.status_code in (400, 404, 422), answer.content
    assert expected in answer.content.decode()
    assert not Backfill.objects.exists()


def manage(*args: str) -> str:
    out = StringIO()
    call_command("backfills", *args, stdout=out)
    return out.getvalue()


def test_the_command_asks_shows_and_changes(copy: DatasetCopy) -> None:
    assert manage("show", "flights-by-day") == "flights-by-day has no backfills.\n"
    assert "running: 0 of 25 partitions, 0 rows" in manage("ask", "flights-by-day", "--first", "2013-03-01", "--last", "2013-03-25")  # fmt: skip
    backfill = Backfill.objects.get()
    play(backfill, failing(3))
    shown = manage("show", "flights-by-day", str(backfill.pk))
    assert "failed: 20 of 25 partitions, 22 rows, 5 failed. 1 of 3 chunks failed: 3." in shown
    assert "chunk 3, 2013-03-21 to 2013-03-25: No space left" in shown
    assert "running: 20 of 25 partitions" in manage("retry", "flights-by-day", str(backfill.pk))
    assert '"state": "running"' in manage("show", "flights-by-day", "--json")
    for wrong in (("cancel", "flights-by-day"), ("cancel", "flights-by-day", "0"), ("ask", "flights-by-day")):
        with pytest.raises(CommandError):
            manage(*wrong)
    assert Backfill.objects.get().state == BackfillState.RUNNING


def test_a_backfill_that_is_not_there_is_named(copy: DatasetCopy, client: Client) -> None:
    client.force_login(given.user("anna"))
    answer = client.get(f"{BACKFILLS}/77")
    assert (answer.status_code, "no backfill 77" in answer.content.decode()) == (404, True)


def test_the_scheduled_task_begins_the_next_chunk(copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.run_job, "apply_async", lambda **options: None)
    backfill = ask(copy)
    JobRun.objects.create(copy=copy, kind=JobKind.INCREMENTAL, state=JobState.WAITING, due_at=NOW + DAY)
    tasks.start_due_runs()
    assert states(backfill) == ["running", "waiting", "waiting"]
