"""A backfill is an entry on the timeline of the incidents whose data it has recomputed: one for each, however many chunks it has."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from incidents import tasks
from incidents.lifecycle import backfilled_partitions
from incidents.lifecycle.actions import acknowledge
from incidents.lifecycle.backfilled_partitions import LOOK_BACK, note_backfilled
from incidents.lifecycle.merge_split import merge_incidents
from incidents.lifecycle.user_reports import file_report
from incidents.models import Incident, IncidentEvent, IncidentState, UserReport
from ingestion.models import Backfill, BackfillChunk, BackfillState, ChunkState, JobKind, JobState
from ingestion.runs.backfills.progress import ended_count, newest_end
from lakehub.clock.models import ClockShift
from lakehub.kernel.errors import Conflict
from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.outcome import Verdict
from quality.models import Category
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.query_plans import plans_of
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _clock(settings: Settings, db: None) -> None:
    settings.LAKEHUB_CLOCK = "shifted"
    ClockShift.move_to(NOW + 2 * HOUR)


@pytest.fixture
def stage(db: None) -> FailingDataset:
    return FailingDataset()


def backfill_of(stage: FailingDataset, *chunks: tuple[str, ...], where: str = "dc2") -> Backfill:
    made = factories.backfill(factories.copy_of(stage.dataset, where), *chunks[0], asked_by="ines")
    for number, names in enumerate(chunks[1:], start=2):
        BackfillChunk.objects.create(backfill=made, number=number, partitions=list(names), size=len(names))
    return made


def commit(backfill: Backfill, number: int, at: datetime = NOW + HOUR, state: ChunkState = ChunkState.SUCCEEDED, rows: int = 7) -> None:  # fmt: skip
    run = factories.run(backfill.copy, JobKind.BACKFILL, started_at=at - MINUTE, ended_at=at)
    backfill.chunks.filter(number=number).update(state=state, run=run, began_at=at - MINUTE, ended_at=at, rows=rows)


def entries(incident: Incident) -> list[str]:
    return [event.text for event in incident.events.filter(kind="backfilled")]


def test_one_entry_grows_with_the_chunks_and_says_how_it_ended(stage: FailingDataset) -> None:
    incident = stage.opened(day("2026-11-15"))
    for name in ("2026-11-16", "2026-11-17"):
        stage.fails(day(name))
    tasks.process_flips()
    backfill = backfill_of(stage, ("2026-11-15",), ("2026-11-16",), ("2026-11-17", "2026-11-18"))
    assert note_backfilled(now=NOW) == 0
    commit(backfill, 1)
    assert note_backfilled(now=NOW + HOUR) == 1
    assert entries(incident) == [f"Partition 2026-11-15 was recomputed by backfill {backfill.pk} (chunk 1 of 3), asked for by ines."]  # fmt: skip
    commit(backfill, 2, NOW + 2 * HOUR)
    commit(backfill, 3, NOW + 3 * HOUR)
    Backfill.objects.update(state=BackfillState.SUCCEEDED, ended_at=NOW + 4 * HOUR)
    assert [note_backfilled(now=NOW + 4 * HOUR), note_backfilled(now=NOW + 4 * HOUR)] == [1, 0]
    assert entries(incident) == [f"Partitions 2026-11-15 to 2026-11-17 were recomputed by backfill {backfill.pk} (chunks 1 to 3 of 3), asked for by ines. The backfill has succeeded."]  # fmt: skip
    event = incident.events.get(kind="backfilled")
    newest = backfill.chunks.get(number=3).run_id
    assert (event.at, event.actor, event.detail) == (NOW + 4 * HOUR, "", {"backfill": backfill.pk, "run": newest})


def test_incidents_of_other_partitions_copies_and_datasets_get_none(stage: FailingDataset) -> None:
    mended = stage.opened(day("2026-11-15"))
    elsewhere = stage.opened(day("2026-11-15"), "dc1", category=Category.COMPLETENESS)
    later = stage.opened(day("2026-11-02"))
    other = factories.dataset("planes", copies=("dc2",))
    unit = factories.unit(factories.test(other), None, day("2026-11-15"), Verdict.FAIL)
    of_planes = factories.incident(other, Category.DUPLICATES, unit)
    commit(backfill_of(stage, ("2026-11-14", "2026-11-15")), 1)
    assert note_backfilled(now=NOW + HOUR) == 1
    assert [len(entries(each)) for each in (mended, elsewhere, later, of_planes)] == [1, 0, 0, 0]


@pytest.mark.parametrize("state", [ChunkState.FAILED, ChunkState.RUNNING, ChunkState.WAITING])
def test_a_chunk_that_has_committed_nothing_mends_nothing(stage: FailingDataset, state: ChunkState) -> None:
    incident = stage.opened(day("2026-11-15"))
    backfill = backfill_of(stage, ("2026-11-15",), ("2026-11-16",))
    commit(backfill, 1, state=state)
    commit(backfill, 2)
    Backfill.objects.update(state=BackfillState.FAILED, ended_at=NOW + HOUR, error="1 of 2 chunks failed: 1.")
    assert note_backfilled(now=NOW + HOUR) == 0
    assert entries(incident) == []


def test_a_backfill_that_failed_says_so_beside_what_it_has_made(stage: FailingDataset) -> None:
    incident = stage.opened(day("2026-11-15"))
    stage.fails(day("2026-11-16"))
    tasks.process_flips()
    backfill = backfill_of(stage, ("2026-11-15",), ("2026-11-16",))
    commit(backfill, 1)
    commit(backfill, 2, state=ChunkState.FAILED)
    Backfill.objects.update(state=BackfillState.FAILED, ended_at=NOW + HOUR, error="1 of 2 chunks failed: 2.")
    note_backfilled(now=NOW + HOUR)
    (text,) = entries(incident)
    assert text.startswith("Partition 2026-11-15 was recomputed")
    assert text.endswith("The backfill has failed: 1 of 2 chunks failed: 2.")
    Backfill.objects.update(state=BackfillState.CANCELLED, error="omar has cancelled it.")
    note_backfilled(now=NOW + HOUR)
    assert entries(incident)[0].endswith("The backfill was cancelled. omar has cancelled it.")


def test_an_incident_that_it_has_healed_is_told_the_end_too(stage: FailingDataset) -> None:
    incident = stage.opened(day("2026-11-15"))
    backfill = backfill_of(stage, ("2026-11-15",), ("2026-11-16",))
    commit(backfill, 1)
    stage.passes(stage.unit(day("2026-11-15")), at=NOW + HOUR + MINUTE)
    tasks.process_flips()
    incident.refresh_from_db()
    assert incident.resolved_at is not None
    assert len(entries(incident)) == 1
    ended_at = NOW + 3 * DAY
    Backfill.objects.update(state=BackfillState.SUCCEEDED, ended_at=ended_at)
    note_backfilled(now=ended_at + MINUTE)
    assert entries(incident)[0].endswith("The backfill has succeeded.")
    healed = incident.events.count()
    Backfill.objects.update(error="x", state=BackfillState.FAILED)
    assert note_backfilled(now=ended_at + LOOK_BACK) == 0, "it is over for long enough"
    assert incident.events.count() == healed


def test_what_began_to_fail_after_the_commit_was_not_mended_by_it(stage: FailingDataset) -> None:
    commit(backfill_of(stage, ("2026-11-15",)), 1, NOW - HOUR)
    incident = stage.opened(day("2026-11-15"))
    assert note_backfilled(now=NOW) == 0
    assert entries(incident) == []


@pytest.mark.parametrize(("where", "over", "count"), [("dc2", "2026-11-15", 1), ("", "2026-11-15", 1), ("dc1", "2026-11-15", 0), ("dc2", "2026-11-16", 0)])  # fmt: skip
def test_what_a_person_has_reported_is_told_as_well(stage: FailingDataset, where: str, over: str, count: int) -> None:
    incident = factories.incident(stage.dataset, Category.OTHERS, reported=True, state=IncidentState.WAITING)
    copy, data = factories.copy_of(stage.dataset, where) if where else None, day(over)
    facts = {"start": data.start, "end": data.end, "text": "Odd", "occurred_at": NOW - HOUR}
    UserReport.objects.create(incident=incident, reporter=factories.user(), copy=copy, **facts)
    commit(backfill_of(stage, ("2026-11-15",)), 1)
    single_run(stage, {"partitions": ["2026-11-15"]})
    assert note_backfilled(now=NOW + HOUR) == 2 * count
    assert len(entries(incident)) == 2 * count


def single_run(stage: FailingDataset, params: dict[str, Any], **facts: Any) -> Any:
    facts = {
        "started_at": NOW,
        "ended_at": NOW + HOUR,
        "asked_by": "ines",
        "report": {"written": {"updates": 3}},
        **facts,
    }
    return factories.run(factories.copy_of(stage.dataset, "dc2"), JobKind.BACKFILL, params=params, **facts)


def test_a_single_run_is_an_entry_where_it_has_succeeded(stage: FailingDataset) -> None:
    incident, whole = stage.opened(day("2026-11-15")), stage.opened(EVERYTHING, category=Category.DUPLICATES)
    run = single_run(stage, {"partitions": ["2026-11-15"]})
    single_run(stage, {"partitions": ["2026-11-15"]}, state=JobState.FAILED)
    single_run(stage, {"keys": [["1"]]})
    note_backfilled(now=NOW + HOUR)
    expected = f"Partition 2026-11-15 was recomputed by run {run.pk}, asked for by ines."
    assert (entries(incident), entries(whole)) == ([expected], [expected])


def test_runs_are_looked_up_by_when_they_have_ended(stage: FailingDataset) -> None:
    """Not all backfills that a copy has ever had."""
    stage.opened(day("2026-11-15"))
    single_run(stage, {"partitions": ["2026-11-15"]})
    plans = plans_of(lambda: note_backfilled(now=NOW + HOUR))
    (plan,) = (plan for plan in plans if "jobrun_backfilled" in plan)
    assert re.search(r"copy_id=\? AND ended_at>\?|Index Cond: .*copy_id.*ended_at", plan), plan
    assert not re.search("jobrun_newest|jobrun_of_copy|(SCAN|Seq Scan on) ingestion_jobrun", "".join(plans))


def test_the_run_that_an_incident_has_asked_for_is_told_once(stage: FailingDataset) -> None:
    incident = stage.opened(day("2026-11-15"))
    run = single_run(stage, {"partitions": ["2026-11-15"]})
    Incident.objects.filter(pk=incident.pk).update(backfill="running", backfill_run=run)
    tasks.process_flips()
    assert entries(incident) == []
    assert f"run {run.pk} succeeded" in incident.events.get(kind="annotated").text


def test_the_task_notes_it_and_a_person_can_still_act_on_what_they_saw(stage: FailingDataset) -> None:
    incident = stage.opened(day("2026-11-15"))
    seen = incident.revision
    backfill = backfill_of(stage, ("2026-11-15",), ("2026-11-15",))
    commit(backfill, 1, NOW + MINUTE)
    tasks.process_flips()
    assert len(entries(incident)) == 1
    incident.refresh_from_db()
    assert incident.revision == seen
    ana = factories.member(factories.user("ana"), stage.dataset.team).user
    acknowledge(incident.pk, actor=ana, now=NOW + HOUR, expected_revision=seen)
    commit(backfill, 2, NOW + 2 * HOUR)
    tasks.process_flips()
    assert incident.events.all()[0].kind == "backfilled"
    with pytest.raises(Conflict, match="ana was faster: acknowledged"):
        acknowledge(incident.pk, actor=ana, now=NOW + HOUR, expected_revision=seen)


def test_a_report_that_it_has_healed_is_told_the_end_too(stage: FailingDataset) -> None:
    incident = factories.incident(stage.dataset, Category.OTHERS, reported=True, state=IncidentState.WAITING)
    over = day("2026-11-15")
    UserReport.objects.create(
        incident=incident, reporter=factories.user(), start=over.start, end=over.end, occurred_at=NOW
    )
    backfill = backfill_of(stage, ("2026-11-15",), ("2026-11-16",))
    commit(backfill, 1)
    assert note_backfilled(now=NOW + HOUR) == 1
    UserReport.objects.update(fixed_at=NOW + 2 * HOUR)
    commit(backfill, 2, NOW + 3 * HOUR)
    Backfill.objects.update(state=BackfillState.SUCCEEDED, ended_at=NOW + 3 * HOUR)
    assert note_backfilled(now=NOW + 3 * HOUR) == 1
    (text,) = entries(incident)
    assert text.startswith("Partition 2026-11-15 was recomputed")
    assert text.endswith("The backfill has succeeded.")


def test_a_long_backfill_with_many_incidents_asks_a_bounded_number_of_questions(stage: FailingDataset) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert note_backfilled(now=NOW + HOUR) == 0
        return len(asked)

    first = date(2026, 9, 1)
    days = [f"{first + timedelta(days=number)}" for number in range(40)]
    backfill = backfill_of(stage, *((name,) for name in days))
    for number in range(1, 41):
        commit(backfill, number)
    stage.opened(day(days[0]))
    assert note_backfilled(now=NOW + HOUR) == 1
    few = queries()
    for name in days[10::10]:
        stage.opened(day(name))
    assert note_backfilled(now=NOW + HOUR) == 3
    assert IncidentEvent.objects.filter(kind=backfilled_partitions.KIND).count() == 4
    assert queries() == few <= 10


CHUNK_ROWS = '"ingestion_backfillchunk"."partitions"'


def reads_chunks(now: datetime = NOW + HOUR) -> int:
    """How many queries of a look read rows of chunks."""
    with CaptureQueriesContext(connection) as asked:
        note_backfilled(now=now)
    return sum(CHUNK_ROWS in query["sql"] for query in asked)


@pytest.fixture
def long_backfill(stage: FailingDataset) -> Backfill:
    """Of five chunks, of which three are done, and noted."""
    for name in ("2026-11-11", "2026-11-12"):
        stage.fails(day(name))
    tasks.process_flips()
    backfill = backfill_of(stage, *((f"2026-11-{number}",) for number in range(11, 16)))
    for number in (1, 2, 3):
        commit(backfill, number)
    assert [reads_chunks(), reads_chunks()] == [1, 0]
    return backfill


def test_what_is_noted_is_not_read_again_until_it_is_too_old(long_backfill: Backfill) -> None:
    ended_at = NOW + 2 * HOUR
    Backfill.objects.update(state=BackfillState.SUCCEEDED, ended_at=ended_at)
    assert [reads_chunks(ended_at + hours * HOUR) for hours in range(26)] == [1] + 25 * [0]


@pytest.mark.parametrize("change", ["chunk", "tried again", "ended", "fails", "reported"])
def test_what_changes_is_noted_with_the_next_look_and_once(stage: FailingDataset, long_backfill: Backfill, change: str) -> None:  # fmt: skip
    """A chunk that was given up leaves as many ended when it is tried again and done."""
    commit(long_backfill, 4, state=ChunkState.FAILED)
    reads_chunks()
    if change == "chunk":
        commit(long_backfill, 5)
    elif change == "tried again":
        commit(long_backfill, 4)
        Backfill.objects.update(resumed_at=NOW + MINUTE)
    elif change == "ended":
        Backfill.objects.update(state=BackfillState.CANCELLED, ended_at=NOW + HOUR)
    elif change == "fails":
        stage.opened(day("2026-11-13"))
    else:
        over = day("2026-11-13")
        file_report(stage.dataset, Category.OTHERS, over, text="Odd", reporter=factories.user(), now=NOW + MINUTE)
    assert [reads_chunks(), reads_chunks()] == [1, 0]


def test_spans_that_came_from_another_incident_bring_its_entry(stage: FailingDataset) -> None:
    first, second = stage.opened(day("2026-11-02")), stage.opened(day("2026-11-15"))
    commit(backfill_of(stage, ("2026-11-15",)), 1)
    note_backfilled(now=NOW + HOUR)
    assert (entries(first), len(entries(second))) == ([], 1)
    merge_incidents(first.pk, second.pk, actor="ana", now=NOW + HOUR)
    note_backfilled(now=NOW + HOUR)
    assert entries(first) == entries(second)


def test_what_passes_by_and_by_has_no_chunks_read(stage: FailingDataset, long_backfill: Backfill) -> None:
    """Of a long backfill each chunk may heal a partition."""
    stage.passes(stage.unit(day("2026-11-11")), at=NOW + HOUR + MINUTE)
    tasks.process_flips()
    assert IncidentEvent.objects.filter(kind="span_closed").exists()
    assert reads_chunks() == 0


def test_what_could_not_be_noted_is_tried_again(
    stage: FailingDataset, long_backfill: Backfill, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bool:
        raise OSError("The disk is full")

    stage.opened(day("2026-11-14"))
    commit(long_backfill, 4)
    monkeypatch.setattr(backfilled_partitions, "_write", fail)
    assert note_backfilled(now=NOW + HOUR) == 0
    assert "The disk is full" in caplog.text
    monkeypatch.undo()
    assert note_backfilled(now=NOW + HOUR) == 1


def test_what_is_new_is_counted_by_indexes(stage: FailingDataset, long_backfill: Backfill) -> None:
    plans = "\n".join(plans_of(lambda: note_backfilled(now=NOW + HOUR)))
    assert not re.search(r"(SCAN|Seq Scan on) (incidents_incidentevent|ingestion_backfillchunk)(?! USING)\b", plans), (
        plans
    )
    (ended,) = plans_of(lambda: ended_count(long_backfill))
    assert "chunk_ended" in ended
    (newest,) = plans_of(lambda: newest_end(long_backfill))
    assert "chunk_ended" in newest
    assert "TEMP B-TREE" not in newest
