"""One dataset: its sums, commits, runs, partitions, past incidents and neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from frontend.screens.dataset.partition_calendar import DayStatus, PartitionCalendar, build_calendar
from frontend.ui import words
from incidents.models import Incident
from incidents.record.health import VERDICT_RANK, DatasetHealth, gating_units, health_of
from ingestion.models import Commit, JobRun, TouchedPartition
from ingestion.runs.job_runs import with_details
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.interval import FOREVER
from lakehub.kernel.partitions import Grain

_DAY = timedelta(days=1)
_MAX_COMMITS = 5


@dataclass(frozen=True)
class RowAccounting:
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
    def adds_up(self) -> bool:
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


def recent_commits(dataset: Dataset, limit: int = _MAX_COMMITS) -> QuerySet[Commit]:
    newest = Commit.objects.filter(copy__in=dataset.copies.all()).select_related("copy__data_center")
    # Counted for those that are shown, and not by grouping all.
    touched = TouchedPartition.objects.filter(commit=OuterRef("pk")).order_by().values("commit")
    counted = Subquery(touched.annotate(count=Count("pk")).values("count"))
    partitions = Coalesce(F("touched_count"), counted, 0)
    return newest.annotate(partitions=partitions, lag=F("completed_at") - F("source_committed_upto")).order_by(
        "-completed_at"
    )[:limit]


def row_accounting(dataset: Dataset, *, now: datetime) -> list[RowAccounting]:
    """Of the last 24 h; where nothing was written in those, since the bootstrap. Two queries at most."""
    copies = {copy.pk: copy for copy in dataset.copies.all()}
    written = Commit.objects.filter(copy__in=copies, read__isnull=False)
    since = now - _DAY
    recent = _row_accounting_of(written.filter(completed_at__gte=since), copies, since)
    accounting = recent or _row_accounting_of(written, copies, None)
    return sorted(accounting, key=lambda row: row.copy.data_center.name)


def _row_accounting_of(
    commits: QuerySet[Commit], copies: dict[int, DatasetCopy], since: datetime | None
) -> list[RowAccounting]:
    counts = (Sum("read"), Sum("applied"), Sum("superseded"), Sum("redelivered"), Sum("errors"))
    rows = commits.order_by().values_list("copy").annotate(*counts)
    return [
        RowAccounting(copies[copy], read or 0, applied or 0, superseded or 0, redelivered or 0, errors or 0, since)
        for copy, read, applied, superseded, redelivered, errors in rows
    ]


def past_incidents(dataset: Dataset, *, now: datetime, limit: int = 6) -> QuerySet[Incident]:
    """Open ones, and those of the last 90 days."""
    recent = Q(resolved_at=None) | Q(opened_at__gte=now - 90 * _DAY)
    return Incident.objects.filter(recent, dataset=dataset).select_related("dataset").order_by("-opened_at")[:limit]


def recent_runs(dataset: Dataset, limit: int = 30) -> QuerySet[JobRun]:
    """Newest first, with what the ones that wait are waiting for. Two queries."""
    return with_details(JobRun.objects.filter(copy__dataset=dataset)).order_by("-id")[:limit]


def neighbours(dataset: Dataset, *, now: datetime) -> Neighbours:
    """What it is made from and what is made from it, each with its state. Five queries."""
    edges = LineageEdge.objects.filter(Q(upstream=dataset) | Q(downstream=dataset)).select_related(
        "upstream", "downstream"
    )
    ordered_edges = list(edges.order_by("upstream__name", "downstream__name"))
    others = {
        other.pk: other for edge in ordered_edges for other in (edge.upstream, edge.downstream) if other != dataset
    }
    states = health_of(others.values(), now=now)
    up = [
        Neighbour(e.upstream, states[e.upstream_id].state, e.one_to_one)
        for e in ordered_edges
        if e.downstream_id == dataset.pk
    ]
    down = [
        Neighbour(e.downstream, states[e.downstream_id].state, e.one_to_one)
        for e in ordered_edges
        if e.upstream_id == dataset.pk
    ]
    return Neighbours(up, down)


@dataclass(frozen=True)
class PartitionOverview:
    calendar: PartitionCalendar
    states: dict[str, int]
    """How many days are in each state that is not pass."""


def partition_overview(dataset: Dataset, health: DatasetHealth, *, now: datetime) -> PartitionOverview | None:
    """The calendar; None for a table that is not cut by day or hour, or holds nothing yet. Two queries."""
    if dataset.partition_grain not in (Grain.DAY, Grain.HOUR):
        return None
    since = now - 290 * _DAY
    bad = _days_not_passing(dataset, health, since, now)
    rows = _rows_by_day(dataset, since)
    if not rows and not bad:
        return None
    days = {day: DayStatus(rows.get(day, 0), *bad.get(day, ("pass", ""))) for day in {*rows, *bad}}
    today = now.astimezone(dataset.zone).date()
    counted: dict[str, int] = {}
    for day, (state, _) in bad.items():
        if day <= today:
            counted[state] = counted.get(state, 0) + 1
    return PartitionOverview(build_calendar(days, today=today), counted)


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


def _days_not_passing(
    dataset: Dataset, health: DatasetHealth, since: datetime, now: datetime
) -> dict[date, tuple[str, str]]:
    """The state of each day that does not pass, and by which tests in which copies."""
    units = gating_units(now).filter(test__dataset=dataset, start__gte=since, end__lt=FOREVER).exclude(verdict="pass")
    fields = ("start", "verdict", "test__title", "copy__data_center__name")
    states_by_day: dict[date, tuple[str, list[str]]] = {}
    for start, verdict, title, where in units.values_list(*fields):
        day = start.astimezone(dataset.zone).date()
        state, failures = states_by_day.get(day, ("pass", []))
        failures.append(f"{title} {verdict} in {where}")
        worse = VERDICT_RANK[verdict] > VERDICT_RANK.get(state, 0)
        states_by_day[day] = (verdict if worse else state, failures)
    return {day: (state, _shortened_list(failures)) for day, (state, failures) in states_by_day.items()}


def _shortened_list(texts: Iterable[str]) -> str:
    shown = list(dict.fromkeys(texts))
    return ", ".join(shown[:3]) + (f" and {words.count(len(shown) - 3, 'more', 'more')}" if len(shown) > 3 else "")
