"""One test: what it asks and asked before, where it does not pass, and every result that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from frontend import words
from frontend.observed import behind, cause, needs, observed
from frontend.queries.health import live_units
from frontend.queries.reasons import reason_of
from incidents.models import Span
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import Interval
from quality.models import Result, Test, TestVersion, Unit

RESULTS = 25
"""On one page."""
BAD_UNITS = 20
VERSIONS = 20
TRIGGERS = {
    "schedule": "schedule",
    "rerun": "rerun",
    "late_data": "late data",
    "manual": "by hand",
    "baseline": "baseline",
    "finding": "ingestion",
}


@dataclass(frozen=True)
class BadUnit:
    unit: Unit
    data: str
    why: str
    incident: int | None


@dataclass(frozen=True)
class Version:
    """What a test asked from `at` on, and how that differs from what it asked before."""

    version: TestVersion
    changes: tuple[tuple[str, str, str], ...]
    """(what, was, is now); none for the first one."""


@dataclass(frozen=True)
class ResultRow:
    result: Result
    data: str
    observed: str
    needs: str
    said: str
    trigger: str

    @property
    def state(self) -> str:
        return self.result.outcome if self.result.outcome in ("pass", "fail") else "unknown"

    @property
    def word(self) -> str:
        return self.result.outcome.replace("_", " ").capitalize()

    @property
    def took(self) -> timedelta:
        return self.result.ended_at - self.result.started_at


def versions(test: Test) -> list[Version]:
    """Newest first. One query."""
    known = list(test.versions.order_by("-number")[: VERSIONS + 1])
    older = [*known[1:], None]
    return [Version(new, _changes(old, new)) for new, old in zip(known, older, strict=True)][:VERSIONS]


def _changes(old: TestVersion | None, new: TestVersion) -> tuple[tuple[str, str, str], ...]:
    if old is None:
        return ()
    pairs = zip(_asked(old), _asked(new), strict=True)
    return tuple((name, was, becomes) for (name, was), (_, becomes) in pairs if was != becomes)


def _asked(version: TestVersion) -> Iterator[tuple[str, str]]:
    """What makes it another version, each thing by its name."""
    yield "Asks", version.expression
    yield "Reads as", version.flattened
    yield "Sustain", words.duration(version.sustain)
    yield "Runs", runs(version)
    yield "Due after", words.duration(version.due_after)
    yield "Reruns", f"{words.duration(version.rerun_base)} to {words.duration(version.rerun_cap)} apart"


def runs(version: TestVersion) -> str:
    return f"every {words.duration(version.cadence)}" if version.cadence else "when a partition is due or changed"


def bad_units(test: Test, dataset: Dataset, *, now: datetime) -> tuple[int, list[BadUnit]]:
    """(how many do not pass, the newest of them). Three queries."""
    units = live_units(now).filter(test=test).exclude(verdict="pass")
    shown = list(units.select_related("copy__data_center").order_by("-start", "copy")[:BAD_UNITS])
    for unit in shown:
        unit.test = test
    spans = Span.objects.filter(unit__in=shown, ended_at=None).values_list("unit_id", "incident_id")
    incidents = dict(spans)
    rows = [BadUnit(one, _data(one, dataset), reason_of(one, now=now), incidents.get(one.pk)) for one in shown]
    return (units.count() if len(shown) == BAD_UNITS else len(shown)), rows


def results(test: Test, copy: DatasetCopy | None, outcome: str = "") -> QuerySet[Result]:
    """Newest first."""
    found = Result.objects.filter(unit__test=test)
    found = found.filter(unit__copy=copy) if copy else found
    found = found.filter(outcome=outcome) if outcome else found
    return found.select_related("unit__copy__data_center", "version").order_by(F("read_at").desc(), "-pk")


def result_row(result: Result, dataset: Dataset) -> ResultRow:
    said = cause(result) or behind(result).strip(" ()")
    trigger = TRIGGERS.get(result.trigger, result.trigger)
    return ResultRow(result, _data(result.unit, dataset), observed(result), needs(result), said, trigger)


def _data(unit: Unit, dataset: Dataset) -> str:
    return words.partition(Interval(unit.start, unit.end), dataset.partition_grain, dataset.zone)
