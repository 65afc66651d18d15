"""The rows that the scores of a window are computed from: seven queries, whatever the number of incidents.

Of spans only the lives that reach into the window are read, and of those only what scores need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Min, Q, QuerySet, TextField
from django.db.models.functions import Cast

from incidents.domain.incident.resolution import Resolution
from incidents.domain.scores.tally import (
    DatasetCategory,
    LivedRow,
    MissedFailure,
    MonitoringPeriod,
    ReportedFailure,
    Tally,
    Window,
    missed_failure,
    tally_by_test,
)
from incidents.models import Span, UserReport
from incidents.scores.scope import Scope
from lakehub.catalog.models import Dataset, DatasetCopy, GracePeriod
from lakehub.kernel.interval import Interval
from quality.models import QualityTest

_FETCH_SIZE = 5_000
ACKNOWLEDGED_REPORTS = Q(incident__acknowledged_at__isnull=False) & ~Q(incident__resolution=Resolution.REJECTED)
"""Over reports: those that count."""


@dataclass(frozen=True)
class MonitoredDataset:
    """A dataset, and since when some copy of it is monitored."""

    name: str
    team: str
    tier: int
    monitored_from: datetime | None


@dataclass(frozen=True)
class FailureIntervals:
    """What was wrong within a window, as the domain takes it."""

    window: Window
    datasets: dict[int, MonitoredDataset]
    rows: list[LivedRow]
    missed: list[MissedFailure]

    def by_test(self, category: str = "", *, only: Collection[int] | None = None) -> dict[int, Tally]:
        """Of each test of the category; of all, if none is given; of `only` these."""
        lived = (row for row in self.rows if category in ("", row[2]) and (only is None or row[3] in only))
        missed = [report for report in self.missed if category in ("", report.category)]
        return tally_by_test(lived, missed, _monitoring_periods(missed), self.window)

    def reports_missed_by(self, test: int) -> frozenset[int]:
        """The reports that the test was there for and did not see."""
        return self.by_test(only=[test]).get(test, Tally()).missed


def failure_intervals(window: Interval, scope: Scope, *, only: Collection[int] | None = None) -> FailureIntervals:
    """Of the live datasets of the scope (of `only` these), in all categories: what was seen in one tells what was missed
    in another."""
    rows = Dataset.objects.filter(scope.of_datasets()).annotate(since=Min("copies__monitored_from"))
    rows = rows if only is None else rows.filter(pk__in=only)
    columns = ("pk", "name", "team__name", "tier", "since")
    datasets = {pk: MonitoredDataset(*values) for pk, *values in rows.order_by("name").values_list(*columns)}
    counted = Window(window, _grace_by_dataset(window))
    lived_rows = list(_span_rows(window, scope, only))
    return FailureIntervals(counted, datasets, lived_rows, _missed_failures(counted, scope, lived_rows))


def grace_periods_in(window: Interval) -> QuerySet[GracePeriod]:
    """The grace periods that reach into the window."""
    return GracePeriod.objects.filter(began_at__lt=window.end, ends_at__gt=window.start)


def _grace_by_dataset(window: Interval) -> dict[int, list[Interval]]:
    grace_periods: defaultdict[int, list[Interval]] = defaultdict(list)
    for dataset, began_at, ends_at in grace_periods_in(window).values_list("dataset_id", "began_at", "ends_at"):
        grace_periods[dataset].append(Interval(began_at, ends_at))
    return dict(grace_periods)


def spans_alive_in(window: Interval) -> Q:
    """Over spans: found by their index, and then read in the order in which they lie, which is half of the work."""
    alive = Q(began_at__lt=window.end) & (Q(ended_at=None) | Q(ended_at__gt=window.start))
    return Q(pk__in=Span.objects.filter(alive).values("pk"))


def reports_alive_in(window: Interval) -> Q:
    return Q(occurred_at__lt=window.end) & (Q(fixed_at=None) | Q(fixed_at__gt=window.start))


def _span_rows(window: Interval, scope: Scope, only: Collection[int] | None) -> Iterator[LivedRow]:
    spans = Span.objects.filter(
        spans_alive_in(window), scope.of_datasets("incident__dataset__"), incident__reported=False
    )
    spans = spans if only is None else spans.filter(incident__dataset__in=only)
    columns = (
        "incident_id", "incident__dataset_id", "incident__category", "unit__test_id",
        "incident__resolution", as_text("began_at"), as_text("ended_at"),
    )  # fmt: skip
    wrong = Resolution.FALSE_POSITIVE.value
    for incident, dataset, category, test, how, began, ended in raw_rows(spans.values_list(*columns)):
        yield incident, dataset, category, test, how == wrong, parse_instant(began), ended and parse_instant(ended)


def raw_rows(rows: QuerySet[Any, Any]) -> Iterator[Any]:
    """As the driver gives them: of a hundred thousand rows, what Django converts costs more than all else together."""
    sql, params = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        while piece := cursor.fetchmany(_FETCH_SIZE):
            yield from piece


def as_text(column: str) -> Cast:
    """An instant, for `parse_instant`: of a hundred thousand, what drivers make of them costs several times as much."""
    return Cast(column, TextField())


def parse_instant(stored: str) -> datetime:
    """PostgreSQL says that it is UTC, SQLite does not."""
    return datetime.fromisoformat(stored.removesuffix("+00") + "+00:00")


def _missed_failures(window: Window, scope: Scope, rows: list[LivedRow]) -> list[MissedFailure]:
    reports = list(acknowledged_reports(window.whole, scope))
    of = {report.dataset for report in reports}
    rows_by_dataset: defaultdict[int, list[LivedRow]] = defaultdict(list)
    for row in rows if of else ():
        if row[1] in of and not row[4]:
            rows_by_dataset[row[1]].append(row)
    near = {
        report.id: [row for row in rows_by_dataset[report.dataset] if report.overlaps(*row[5:])] for report in reports
    }
    ranges = _ranges_by_incident({row[0] for rows in near.values() for row in rows})
    missed = []
    for report in reports:
        numbers = {row[0] for row in near[report.id]}
        covered = [(number, data) for number in numbers for data in ranges[number]]
        missed.append(missed_failure(report, near[report.id], covered, window))
    return missed


def _ranges_by_incident(incidents: set[int]) -> dict[int, list[Interval]]:
    """What each incident is about, also by spans that are long over."""
    ranges: defaultdict[int, list[Interval]] = defaultdict(list)
    numbers = sorted(incidents)
    for at in range(0, len(numbers), _FETCH_SIZE):
        rows = Span.objects.filter(incident__in=numbers[at : at + _FETCH_SIZE]).values_list(
            "incident_id", "start", "end"
        )
        for number, start, end in rows.iterator(_FETCH_SIZE):
            ranges[number].append(Interval(start, end))
    return ranges


def acknowledged_reports(window: Interval, scope: Scope) -> Iterator[ReportedFailure]:
    """The acknowledged reports whose life reaches into the window."""
    rows = UserReport.objects.filter(
        reports_alive_in(window), ACKNOWLEDGED_REPORTS, scope.of_datasets("incident__dataset__")
    )
    for row in rows.select_related("incident").iterator(_FETCH_SIZE):
        about, data = row.incident, Interval(row.start, row.end)
        yield ReportedFailure(
            row.pk, about.dataset_id, about.category, data, row.occurred_at, row.fixed_at, row.copy_id
        )


def _monitoring_periods(reports: list[MissedFailure]) -> dict[DatasetCategory, list[MonitoringPeriod]]:
    """The tests that could have seen what was missed."""
    if not reports:
        return {}
    keys = {(report.dataset, report.category) for report in reports}
    rows = QualityTest.objects.filter(dataset__in={dataset for dataset, _ in keys}).annotate(
        since=Min("versions__created_at")
    )
    periods: defaultdict[DatasetCategory, list[MonitoringPeriod]] = defaultdict(list)
    for pk, dataset, category, since, until in rows.values_list(
        "pk", "dataset_id", "category", "since", "retired_at"
    ).order_by("pk"):
        if (dataset, category) in keys and since is not None:
            periods[dataset, category].append(MonitoringPeriod(pk, since, until))
    return periods


def dataset_by_copy(datasets: dict[int, MonitoredDataset]) -> dict[int, int]:
    """The dataset of each copy."""
    rows = DatasetCopy.with_removed.values_list("pk", "dataset_id")
    return {pk: dataset for pk, dataset in rows.order_by() if dataset in datasets}
