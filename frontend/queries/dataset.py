"""One dataset: its sums, commits, runs, partitions, past incidents and neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, F, Q, QuerySet, Sum

from frontend import words
from frontend.calendar import Calendar, Day, calendar
from incidents.models import Incident
from incidents.rollup import SEVERITY, Health, counting_units, health_of
from ingestion.models import Commit, JobRun, TouchedPartition
from ingestion.runs import LIVE, described
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.calendar import Grain
from lakehub.kernel.interval import FOREVER

_DAY = timedelta(days=1)
_COMMITS = 5


@dataclass(frozen=True)
class Sums:
    """Rows of one copy: what was read is applied, superseded, redelivered or in the error table."""

    copy: DatasetCopy
    read: int
    applied: int
    superseded: int
    redelivered: int
    errors: int
    since: datetime | None = None
    """None: since the bootstrap."""

    @property
    def holds(self) -> bool:
        return self.read == self.sum

    @property
    def sum(self) -> int:
        return self.applied + self.superseded + self.redelivered + self.errors


@dataclass(frozen=True)
class Neighbour:
    dataset: Dataset
    state: str
    one_to_one: bool


@dataclass(frozen=True)
class Neighbours:
    upstream: list[Neighbour]
    downstream: list[Neighbour]


def dataset_named(name: str) -> QuerySet[Dataset]:
    return (
        Dataset.objects.filter(name=name)
        .select_related("team", "feed__connection")
        .prefetch_related("copies__data_center")
    )


def commits(dataset: Dataset, limit: int = _COMMITS) -> QuerySet[Commit]:
    newest = Commit.objects.filter(copy__dataset=dataset).select_related("copy__data_center")
    return newest.annotate(partitions=Count("touched"), lag=F("completed_at") - F("source_committed_upto")).order_by(
        "-completed_at"
    )[:limit]


def sums(dataset: Dataset, *, now: datetime) -> list[Sums]:
    """Of the last 24 h; where nothing was written in those, since the bootstrap. Two queries at most."""
    written = Commit.objects.filter(copy__dataset=dataset, read__isnull=False)
    copies = {copy.pk: copy for copy in dataset.copies.all()}
    since = now - _DAY
    recent = _summed(written.filter(completed_at__gte=since), copies, since)
    found = recent or _summed(written, copies, None)
    return sorted(found, key=lambda one: one.copy.data_center.name)


def _summed(commits: QuerySet[Commit], copies: dict[int, DatasetCopy], since: datetime | None) -> list[Sums]:
    counts = (Sum("read"), Sum("applied"), Sum("superseded"), Sum("redelivered"), Sum("errors"))
    rows = commits.order_by().values_list("copy").annotate(*counts)
    return [
        Sums(copies[copy], read or 0, applied or 0, superseded or 0, redelivered or 0, errors or 0, since)
        for copy, read, applied, superseded, redelivered, errors in rows
    ]


def past_incidents(dataset: Dataset, *, now: datetime, limit: int = 6) -> QuerySet[Incident]:
    """Open ones, and those of the last 90 days."""
    recent = Q(resolved_at=None) | Q(opened_at__gte=now - 90 * _DAY)
    return Incident.objects.filter(recent, dataset=dataset).select_related("dataset").order_by("-opened_at")[:limit]


def runs(dataset: Dataset, limit: int = 30) -> QuerySet[JobRun]:
    """Newest first, with what the ones that wait are waiting for. Two queries."""
    return described(JobRun.objects.filter(copy__dataset=dataset)).order_by("-id")[:limit]


def running(dataset: Dataset) -> QuerySet[JobRun]:
    return JobRun.objects.filter(copy__dataset=dataset, state__in=LIVE).select_related("copy__data_center")


def neighbours(dataset: Dataset, *, now: datetime) -> Neighbours:
    """What it is made from and what is made from it, each with its state. Five queries."""
    edges = LineageEdge.objects.filter(Q(upstream=dataset) | Q(downstream=dataset)).select_related(
        "upstream", "downstream"
    )
    known = list(edges.order_by("upstream__name", "downstream__name"))
    others = {other.pk: other for edge in known for other in (edge.upstream, edge.downstream) if other != dataset}
    states = health_of(others.values(), now=now)
    up = [
        Neighbour(e.upstream, states[e.upstream_id].state, e.one_to_one) for e in known if e.downstream_id == dataset.pk
    ]
    down = [
        Neighbour(e.downstream, states[e.downstream_id].state, e.one_to_one)
        for e in known
        if e.upstream_id == dataset.pk
    ]
    return Neighbours(up, down)


@dataclass(frozen=True)
class Partitions:
    calendar: Calendar
    states: dict[str, int]
    """How many days are in each state that is not pass."""


def partitions(dataset: Dataset, health: Health, *, now: datetime) -> Partitions | None:
    """The calendar; None for a table that is not cut by day or hour, or holds nothing yet. Two queries."""
    if dataset.partition_grain not in (Grain.DAY, Grain.HOUR):
        return None
    since = now - 290 * _DAY
    bad = _bad_days(dataset, health, since, now)
    rows = _rows_by_day(dataset, since)
    if not rows and not bad:
        return None
    days = {day: Day(rows.get(day, 0), *bad.get(day, ("pass", ""))) for day in {*rows, *bad}}
    today = now.astimezone(dataset.zone).date()
    counted: dict[str, int] = {}
    for day, (state, _) in bad.items():
        if day <= today:
            counted[state] = counted.get(state, 0) + 1
    return Partitions(calendar(days, today=today), counted)


def _rows_by_day(dataset: Dataset, since: datetime) -> dict[date, int]:
    """Rows written into each day, of the copy that got the most."""
    touched = TouchedPartition.objects.filter(copy__dataset=dataset, start__gte=since).values_list("copy", "start")
    by_copy: dict[tuple[int, date], int] = {}
    for copy, start, rows in touched.annotate(n=Sum("rows")).order_by():
        key = (copy, start.astimezone(dataset.zone).date())
        by_copy[key] = by_copy.get(key, 0) + rows
    most: dict[date, int] = {}
    for (_, day), rows in by_copy.items():
        most[day] = max(most.get(day, 0), rows)
    return most


def _bad_days(dataset: Dataset, health: Health, since: datetime, now: datetime) -> dict[date, tuple[str, str]]:
    """The state of each day that does not pass, and by which tests in which copies."""
    units = counting_units(now).filter(test__dataset=dataset, start__gte=since, end__lt=FOREVER).exclude(verdict="pass")
    fields = ("start", "verdict", "test__title", "copy__data_center__name")
    found: dict[date, tuple[str, list[str]]] = {}
    for start, verdict, title, where in units.values_list(*fields):
        day = start.astimezone(dataset.zone).date()
        state, said = found.get(day, ("pass", []))
        said.append(f"{title} {verdict} in {where}")
        worse = SEVERITY[verdict] > SEVERITY.get(state, 0)
        found[day] = (verdict if worse else state, said)
    return {day: (state, _brief(said)) for day, (state, said) in found.items()}


def _brief(said: Iterable[str]) -> str:
    shown = list(dict.fromkeys(said))
    return ", ".join(shown[:3]) + (f" and {words.count(len(shown) - 3, 'more', 'more')}" if len(shown) > 3 else "")
