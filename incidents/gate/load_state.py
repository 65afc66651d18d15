"""What is known of copies when the gate is asked: three queries for any number of copies and any range, prepared once.

One more where a dataset has open reports, one where its ingestion ever found something: the first query says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import FilteredRelation, Q, QuerySet

from incidents.domain.gate.causes import CHANGED
from incidents.domain.gate.copy_state import (
    CopyState,
    FindingTest,
    FreshnessTest,
    GatingTest,
    PartitionTest,
    ReportFacts,
    UnitState,
    WholeTest,
)
from incidents.gate.copies import RequestedRange, partitions_seen_at
from incidents.models import IncidentState, UserReport
from lakehub.catalog.models import DatasetCopy
from lakehub.db.prepared_query import PreparedQuery, instant_parameter, number_parameter
from lakehub.kernel.interval import BEGINNING, Interval
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.kernel.partitions import Grain
from quality.domain.generation.definitions import runs_in
from quality.domain.parsed import first_tested_for, parsed_or_blank
from quality.domain.scheduling.due_times import OVERDUE_AFTER
from quality.domain.verdicts.unit_verdict import UnitFacts, VerdictReason, Waiver, judge
from quality.models import Category, QualityTest, Unit
from quality.state.dataset_slas import production_calendar_or_none

WIDTH_MARGIN = timedelta(days=1)
"""A partition is at most so much wider than its grain says. A unit that meets a range starts at most one such width before
it, or with the beginning of time."""


# The state of copies


def copy_states(requested_ranges: Sequence[RequestedRange], *, now: datetime) -> list[CopyState]:
    """What the gate must know about each, in their order."""
    tests = _tests_of({requested.copy.dataset_id for requested in requested_ranges})
    units = _units_of(requested_ranges, tests, now)
    reports = _reports_of(
        {requested.copy.dataset_id for requested in requested_ranges if requested.known_copy.reported}
    )
    return [
        _copy_state(requested, tests[requested.copy.dataset_id], units, reports[requested.copy.dataset_id])
        for requested in requested_ranges
    ]


class _GatingTestRow(NamedTuple):
    """A gating test and its version in force."""

    pk: int
    key: str
    title: str
    category: str
    planned: bool
    flattened: str
    cadence: timedelta | None
    due_after: timedelta
    added_at: datetime | None


class _JudgedUnit(NamedTuple):
    state: UnitState
    complete_to: datetime | None


_UnitsByTestAndCopy = Mapping[tuple[int, int], list[_JudgedUnit]]
"""By test and copy."""


def _tests_of(datasets: set[int]) -> Mapping[int, list[_GatingTestRow]]:
    tests_by_dataset: defaultdict[int, list[_GatingTestRow]] = defaultdict(list)
    for dataset, *row in _tests_query(len(datasets)).rows(**_numbered_parameters("dataset", datasets)):
        tests_by_dataset[dataset].append(_GatingTestRow(*row))
    return tests_by_dataset


@lru_cache(maxsize=128)
def _tests_query(count: int) -> PreparedQuery:
    live = Q(gating=True, retired_at=None, version__isnull=False)

    def build() -> QuerySet[Any, Any]:
        return (
            QualityTest.objects.filter(live & _one_of("dataset", count))
            .order_by("pk")
            .values_list(
                "dataset", "pk", "key", "title", "category", "planned", "version__flattened", "version__cadence",
                "version__due_after", "added_at",
            )
        )  # fmt: skip

    return PreparedQuery(build)


def _units_of(
    requested_ranges: Sequence[RequestedRange], tests: Mapping[int, list[_GatingTestRow]], now: datetime
) -> _UnitsByTestAndCopy:
    rows = _units_query(len(requested_ranges)).rows(**_range_parameters(requested_ranges))
    findings = [
        (requested, test.pk)
        for requested in requested_ranges
        for test in tests[requested.copy.dataset_id]
        if not test.planned
    ]
    if findings:
        ranges = _range_parameters([requested for requested, _ in findings])
        rows += _findings_query(len(findings)).rows(
            **ranges, **_numbered_parameters("test", [test for _, test in findings])
        )
    cadences = {test.pk: test.cadence for of_dataset in tests.values() for test in of_dataset}
    units: defaultdict[tuple[int, int], list[_JudgedUnit]] = defaultdict(list)
    for test, copy, *row in rows:
        if test in cadences:
            units[test, copy].append(_judge_row(row, cadences[test], now))
    return units


_UNIT_COLUMNS = (
    "test", "copy", "start", "end", "affected_from", "due_at", "last_pass_at", "first_fail_at", "last_fail_at", "sustain",
    "latest_outcome", "latest_at", "touched_at", "retest_due_at", "waiver", "waived_at", "active__incident",
    "active__incident__eta",
)  # fmt: skip


def _with_incidents(units: QuerySet[Unit]) -> QuerySet[Any, Any]:
    active = FilteredRelation("spans", condition=Q(spans__ended_at=None))
    return units.annotate(active=active).values_list(*_UNIT_COLUMNS)


@lru_cache(maxsize=128)
def _units_query(count: int) -> PreparedQuery:
    """The units of gating tests that meet each range: of partitions, and of tables as a whole."""

    def build() -> QuerySet[Any, Any]:
        counted = Unit.objects.filter(test__gating=True, test__retired_at=None)
        meeting = reduce(
            or_, (_overlaps(place) & Q(start__gt=instant_parameter(f"low{place}")) for place in range(count))
        )
        near = _with_incidents(counted.filter(meeting))
        whole = _with_incidents(counted.filter(_one_of("copy", count), start=BEGINNING))
        return near.union(whole, all=True)

    return PreparedQuery(build)


@lru_cache(maxsize=128)
def _findings_query(count: int) -> PreparedQuery:
    """Findings have ranges of any width: those that the other query leaves out."""

    def build() -> QuerySet[Any, Any]:
        far = (
            _overlaps(place)
            & Q(test=number_parameter(f"test{place}"), start__gt=BEGINNING, start__lte=instant_parameter(f"low{place}"))
            for place in range(count)
        )
        return _with_incidents(Unit.objects.filter(reduce(or_, far)))

    return PreparedQuery(build)


def _overlaps(place: int) -> Q:
    return Q(
        copy=number_parameter(f"copy{place}"),
        start__lt=instant_parameter(f"end{place}"),
        end__gt=instant_parameter(f"start{place}"),
    )


def _range_parameters(requested_ranges: Sequence[RequestedRange]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for place, requested in enumerate(requested_ranges):
        values[f"copy{place}"] = requested.copy.pk
        values[f"start{place}"], values[f"end{place}"] = requested.data.start, requested.data.end
        widest = requested.copy.dataset.partition_grain.width + WIDTH_MARGIN
        values[f"low{place}"] = max(BEGINNING, max(BEGINNING, requested.data.start) - widest)
    return values


def _one_of(name: str, count: int) -> Q:
    """The field `name` is one of so many parameters `name0`, `name1` and so on."""
    return reduce(or_, (Q(**{name: number_parameter(f"{name}{place}")}) for place in range(count)))


def _numbered_parameters(name: str, values: Iterable[int]) -> dict[str, int]:
    return {f"{name}{place}": value for place, value in enumerate(values)}


_PASSING = VerdictReason.PASSING.value
_OUTCOMES: Mapping[str, Outcome | None] = {"": None, **{outcome.value: outcome for outcome in Outcome}}


def _judge_row(row: Sequence[Any], cadence: timedelta | None, now: datetime) -> _JudgedUnit:
    """From a row of _UNIT_COLUMNS without its first two."""
    start, end, complete_to, due_at, passed, first, last, sustain, outcome, *more, incident, eta = row
    latest_at, touched_at, retest_due_at, waiver, waived_at = more
    if passed and outcome == Outcome.PASS and cadence is None and not (first or touched_at or retest_due_at or waiver):
        # Nearly all are such, and `judge` says of them no matter when that they pass.
        passing = _passing_unit(start, end)
        return _JudgedUnit(passing if incident is None else passing._replace(incident=incident, eta=eta), complete_to)
    facts = UnitFacts(
        last_pass_at=passed,
        first_fail_at=first,
        last_fail_at=last,
        sustain=sustain or timedelta(),
        latest_outcome=_OUTCOMES[outcome],
        latest_at=latest_at,
        cadence=cadence,
        touched_at=touched_at,
        retest_due_at=retest_due_at,
        waiver=Waiver(waiver) if waiver else None,
        waived_at=waived_at,
    )
    judged = judge(facts, now=now)
    streak = facts.is_failing and facts.waiver is None
    next_run_at = due_at if judged.verdict is not Verdict.PASS else None
    state = UnitState(
        _cached_interval(start, end),
        judged.verdict,
        CHANGED if touched_at is not None and judged.reason is VerdictReason.PASSING else judged.reason.value,
        streak,
        next_run_at,
        incident,
        eta,
        touched_at,
        None if retest_due_at is None else retest_due_at - OVERDUE_AFTER,
        has_verdict=passed is not None or first is not None,
    )
    return _JudgedUnit(state, complete_to)


_cached_interval = lru_cache(maxsize=4096)(Interval)
"""Partitions are the same for all tests of a dataset, and for the next question."""


@lru_cache(maxsize=4096)
def _passing_unit(start: datetime, end: datetime) -> UnitState:
    return UnitState(_cached_interval(start, end), Verdict.PASS, _PASSING)


# Reports


_LIVE_REPORT_STATES = (IncidentState.REPORTED, IncidentState.WAITING, IncidentState.ACKNOWLEDGED)


def _reports_of(datasets: set[int]) -> Mapping[int, list[tuple[int | None, ReportFacts]]]:
    """By dataset, with the copy that each is about; None: all of them."""
    reports_by_dataset: defaultdict[int, list[tuple[int | None, ReportFacts]]] = defaultdict(list)
    if not datasets:
        return reports_by_dataset
    live = UserReport.objects.filter(incident__dataset__in=datasets, incident__state__in=_LIVE_REPORT_STATES)
    columns = ("incident__dataset", "copy", "incident", "start", "end", "incident__state", "incident__eta")
    for dataset, copy, incident, start, end, state, eta in live.values_list(*columns):
        report = ReportFacts(incident, Interval(start, end), state == IncidentState.ACKNOWLEDGED, eta)
        reports_by_dataset[dataset].append((copy, report))
    return reports_by_dataset


# Put together


def _copy_state(
    requested: RequestedRange,
    tests: Iterable[_GatingTestRow],
    units: _UnitsByTestAndCopy,
    reports: Iterable[tuple[int | None, ReportFacts]],
) -> CopyState:
    copy, dataset = requested.copy, requested.copy.dataset
    concerned = (
        test
        for test in tests
        if _runs_in(test.flattened, copy.data_center.name) and not _of_another_metric(test.key, requested.metric)
    )
    return CopyState(
        grain=dataset.partition_grain,
        zone=dataset.zone,
        monitored_from=copy.monitored_from,
        tests=tuple(_gating_test(test, copy, units.get((test.pk, copy.pk), ())) for test in concerned),
        reports=tuple(report for about, report in reports if about in (None, copy.pk)),
        grace_until=dataset.grace_until,
        production_calendar=production_calendar_or_none(dataset),
        partitions_seen_at=partitions_seen_at(copy),
    )


def _of_another_metric(key: str, metric: str) -> bool:
    return bool(metric) and key.startswith("metric:") and not key.startswith(f"metric:{metric}.")


@lru_cache(maxsize=4096)
def _runs_in(flattened: str, data_center: str) -> bool:
    """A comparison with a data center says nothing about that one's own copy."""
    return runs_in(parsed_or_blank(flattened), data_center)


def _gating_test(test: _GatingTestRow, copy: DatasetCopy, units: Sequence[_JudgedUnit]) -> GatingTest:
    whole = next((unit for unit in units if unit.state.data.is_everything), None)
    if test.category == Category.FRESHNESS:
        unit, complete_to = (whole.state, whole.complete_to) if whole else (None, None)
        return FreshnessTest(test.title, test.due_after, unit, complete_to)
    states = tuple(unit.state for unit in units)
    if not test.planned:
        return FindingTest(test.title, test.category, states)
    grain = copy.dataset.partition_grain
    if test.cadence is not None or whole or grain is Grain.NONE:
        return WholeTest(test.title, test.category, whole.state if whole else None, is_added=test.added_at is not None)
    monitored = copy.monitored_from or BEGINNING
    since = first_tested_for(test.flattened, monitored, grain, copy.dataset.partition_tz)
    return PartitionTest(
        test.title,
        test.category,
        test.due_after,
        states,
        since if since > monitored else BEGINNING,
        test.added_at or BEGINNING,
    )
