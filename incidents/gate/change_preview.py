"""What a change of a dataset would do, before it is made: it is made in a transaction that is taken back.

Of a change that starts a rebuild, what comes of it is what comes with the switch: until then the present tables stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from incidents.gate.answer import CopyQuestion, ask_gate
from incidents.models import Incident, Span
from ingestion.models import JobKind, JobRun, JobState
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.catalog.onboarding.rebuild import open_rebuild, switch_rebuild
from lakehub.catalog.ports import Consequence
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, partition_at
from quality.generation import generate
from quality.models import QualityTest, Unit

MAX_LINES = 20
"""Of one kind; a line says how many more there are."""


@dataclass(frozen=True)
class _DatasetState:
    tests: dict[str, QualityTest]
    """By key, the live ones with their version."""
    copies: dict[str, tuple[int, str]]
    """By data center, which row it is and where it is read."""
    due: dict[int, datetime]
    """Of the units that were not run yet, by id."""


def preview_change(dataset_id: int, change: Callable[[], object], *, now: datetime) -> list[Consequence]:
    """Raises what the change raises."""
    dataset = Dataset.objects.get(pk=dataset_id)
    before, range_before = _state(dataset), _last_partition(dataset, now)
    said_before = _gate_by_data_center(dataset, range_before, now)
    open_before = dict(Incident.objects.filter(dataset=dataset, resolved_at=None).values_list("pk", "title"))
    was_rebuilt = open_rebuild(dataset) is not None
    with transaction.atomic():
        change()
        rebuild = None if was_rebuilt else open_rebuild(dataset)
        if rebuild is not None:
            switch_rebuild(rebuild, now=now)
        changed = Dataset.objects.get(pk=dataset_id)
        generate.generate_tests(changed, now=now)
        after = _state(changed)
        said_after = _gate_by_data_center(changed, range_before, now)
        still_open = _incidents_that_stay(changed)
        transaction.set_rollback(True)
    kinds = (
        ("tests", _test_lines(before, after)),
        ("reads", _rebuild_lines(dataset, before, after) if rebuild else _copy_lines(before, after, dataset.ingested)),
        ("incidents", (f"#{pk} ends: {title}" for pk, title in open_before.items() if pk not in still_open)),
        ("gate", _gate_lines(range_before, said_before, said_after)),
    )
    return [Consequence(about, text) for about, lines in kinds for text in _bounded(list(lines))]


def _bounded(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MAX_LINES else [*lines[:MAX_LINES], f"And {len(lines) - MAX_LINES} more."]


def _state(dataset: Dataset) -> _DatasetState:
    tests = dataset.tests.filter(retired_at=None, version__isnull=False).select_related("version")
    copies = DatasetCopy.objects.filter(dataset=dataset).select_related(
        "data_center", "connection", "dataset__feed__connection"
    )
    planned = Unit.objects.filter(test__dataset=dataset, copy__removed_at=None, latest_at=None, due_at__isnull=False)
    return _DatasetState(
        {test.key: test for test in tests},
        {copy.data_center.name: (copy.pk, copy.uri or f"{copy.source_name}.{copy.source_table}") for copy in copies},
        {pk: at for pk, at in planned.exclude(end=EVERYTHING.end).values_list("pk", "due_at") if at is not None},
    )


def _test_lines(before: _DatasetState, after: _DatasetState) -> Iterator[str]:
    for key, test in after.tests.items():
        was = before.tests.get(key)
        assert test.version is not None
        if was is None:
            yield f"New: {test.title}, {test.version.expression}"
        elif was.version is not None and was.version_id != test.version_id:
            is_same = was.version.expression == test.version.expression
            how = "with other times" if is_same else f"{was.version.expression} → {test.version.expression}"
            yield f"Changed: {test.title}, {how}"
    for key in before.tests.keys() - after.tests.keys():
        yield f"Ends: {before.tests[key].title}"
    moved = [pk for pk, due_at in after.due.items() if before.due.get(pk, due_at) != due_at]
    if moved:
        sooner = sum(after.due[pk] < before.due[pk] for pk in moved)
        yield f"{len(moved)} planned runs move: {sooner} earlier, {len(moved) - sooner} later"


def _copy_lines(before: _DatasetState, after: _DatasetState, ingested: bool) -> Iterator[str]:
    anew = "bootstrapped into" if ingested else "read from"
    for center, (pk, place) in after.copies.items():
        was = before.copies.get(center)
        if was is None:
            yield f"{center}: a new copy, {anew} {place}; its history is tested from its first partition"
        elif was[0] != pk:
            yield f"{center}: built anew, {anew} {place}; what {was[1]} holds stays, and is tested no more"
        elif was[1] != place:
            yield f"{center}: read from {place} instead of {was[1]}; all of its partitions are tested again"
    for center in before.copies.keys() - after.copies.keys():
        yield f"{center}: tested no more; its results stay, and so does what {before.copies[center][1]} holds"


def _rebuild_lines(dataset: Dataset, before: _DatasetState, after: _DatasetState) -> Iterator[str]:
    for center, (_, place) in after.copies.items():
        present = before.copies[center][1]
        yield f"{center}: built from the source into {place}; {present} is read, tested and fed until that is whole"
    yield "When all are whole the dataset switches at once; what else is told here comes with the switch"
    yield "New tables that hold fewer rows wait for your decision; the present ones stay until you drop them"
    deletes = JobRun.objects.filter(copy__dataset=dataset, kind=JobKind.DELETE, state=JobState.SUCCEEDED).count()
    if deletes:
        yield f"Rows that {deletes} delete jobs removed from the lake come back where the source still has them"


def _incidents_that_stay(dataset: Dataset) -> set[int]:
    """With something active that is still tested, or reported by a person."""
    spans = Span.objects.filter(incident__dataset=dataset, ended_at=None, copy__removed_at=None)
    tested = set(spans.filter(unit__test__retired_at=None).values_list("incident", flat=True))
    without = Incident.objects.filter(dataset=dataset, resolved_at=None).exclude(spans__ended_at=None)
    return tested | set(without.values_list("pk", flat=True))


def _last_partition(dataset: Dataset, now: datetime) -> Interval:
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE:
        return EVERYTHING
    return partition_at(partition_at(now, grain, zone).start - timedelta(microseconds=1), grain, zone)


def _gate_by_data_center(dataset: Dataset, data: Interval, now: datetime) -> dict[str, str]:
    """What a consumer with the default policy is told."""
    answers = {}
    for center in dataset.copies.values_list("data_center__name", flat=True):
        answer = ask_gate(CopyQuestion(dataset.name, data, "", center), now=now, record=False).answer
        reasons = dict.fromkeys(cause.reason for cause in answer.causes if cause.verdict == answer.verdict)
        answers[center] = f"{answer.verdict.value} ({', '.join(reasons)})"
    return answers


def _gate_lines(data: Interval, before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    over = "" if data == EVERYTHING else f" over {data.start:%Y-%m-%d %H:%M} to {data.end:%Y-%m-%d %H:%M} UTC"
    for center, answer in after.items():
        was = before.get(center)
        if was is None:
            yield f"{center}{over}: {answer}"
        elif was != answer:
            yield f"{center}{over}: {was} → {answer}"
    for center in before.keys() - after.keys():
        yield f"{center}: who asks is told that there is no copy"
