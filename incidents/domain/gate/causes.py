"""What speaks for and against reading a copy over a range: by test, what is said of which parts of it, and why.

Nothing here enumerates partitions that have a unit: what has not been tested is found as the gaps between the units there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

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
from incidents.domain.gate.partition_coverage import PartitionCoverage, coverage_of, split_at
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval, subtract, union
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.partitions import Grain, floor_to_bucket, partitions_within
from quality.domain.verdicts.unit_verdict import VerdictReason

UNMONITORED = "unmonitored"
NOT_DUE = "not_due"
NEVER_TESTED = "never_tested"
NO_TESTS = "no_tests"
IN_GRACE = "in_grace"
REPORTED = "reported"
REPORT_WAITS = "report_waits"
NOT_EXPECTED = VerdictReason.NOT_EXPECTED.value
"""The calendar of the dataset says that nothing is produced there, and it is known that nothing was written: nothing is missing."""
PASSING = "passing"
CHANGED = "changed"
"""It passed, a commit has touched it since, and the retest is not overdue yet."""


class Cause(NamedTuple):
    """A part of the answer: over `ranges` the test says `verdict`, because of `reason`; it may go at `changes_at`."""

    verdict: Verdict
    reason: str
    ranges: tuple[Interval, ...]
    test: str = ""
    category: str = ""
    incident: int | None = None
    changes_at: datetime | None = None
    eta: datetime | None = None
    changed_at: datetime | None = None
    """The data was changed then, and what is said of it is older."""
    retest_due_at: datetime | None = None


def causes_of(data_range: Interval, copy: CopyState, now: datetime) -> tuple[Cause, ...]:
    """Worst first; what a test says alike of several partitions is one cause."""
    return tuple(sorted(_merge_causes(_causes(data_range, copy, now)), key=_worst_first))


def _causes(data_range: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    silent: tuple[Interval, ...] = (data_range,)
    for test in copy.tests:
        if silent:
            silent = subtract(silent, _covered_by(test, copy))
    if silent:
        yield Cause(Verdict.UNKNOWN, NO_TESTS, silent)
    for test in copy.tests:
        for cause in _merge_causes(_causes_of_test(test, data_range, copy, now)):
            yield _with_grace(cause._replace(test=test.key, category=test.category), copy, now)
    for report in copy.reports:
        if report.data.overlaps(data_range):
            yield _report_cause(report)


def _covered_by(test: GatingTest, copy: CopyState) -> tuple[Interval, ...]:
    """Of what it says that all is well where it is. Findings say what is wrong, never that."""
    if isinstance(test, FindingTest):
        return ()
    if isinstance(test, WholeTest):
        return (EVERYTHING,) if test.is_gating else ()
    if isinstance(test, FreshnessTest) or (test.covers_from == BEGINNING and test.added_at == BEGINNING):
        return (EVERYTHING,)
    since = max(test.covers_from, _younger_from(test, copy))
    judged = (unit.data for unit in test.units if unit.has_verdict and unit.data.start >= test.covers_from)
    return (*((Interval(since, FOREVER),) if since < FOREVER else ()), *judged)


def _younger_from(test: PartitionTest, copy: CopyState) -> datetime:
    """Where the first partition begins that ended after the test was added. One piece never ends."""
    if test.added_at == BEGINNING:
        return BEGINNING
    return FOREVER if copy.grain is Grain.NONE else floor_to_bucket(test.added_at, copy.grain, copy.zone)


def _causes_of_test(test: GatingTest, data_range: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    if isinstance(test, WholeTest):
        return iter((_unit_cause(test.unit, data_range),) if test.is_gating else ())
    if isinstance(test, FreshnessTest):
        return _freshness_causes(test, data_range, copy, now)
    if isinstance(test, FindingTest):
        return (_unit_cause(unit, unit.data) for unit in test.units if unit.data.overlaps(data_range))
    return _partition_causes(test, data_range, copy, now)


def _with_grace(cause: Cause, copy: CopyState, now: datetime) -> Cause:
    in_grace = copy.grace_until is not None and now < copy.grace_until
    if in_grace and cause.verdict in (Verdict.FAIL, Verdict.WARN):
        return cause._replace(reason=IN_GRACE, changes_at=copy.grace_until)
    return cause


def _report_cause(report: ReportFacts) -> Cause:
    verdict, reason = (Verdict.FAIL, REPORTED) if report.acknowledged else (Verdict.WARN, REPORT_WAITS)
    return Cause(verdict, reason, (report.data,), incident=report.incident, eta=report.eta)


def _unit_cause(unit: UnitState | None, *data: Interval) -> Cause:
    """`data`: of the unit, and of others that differ in nothing else."""
    if unit is None:
        return Cause(Verdict.UNKNOWN, NEVER_TESTED, data)
    return Cause(
        unit.verdict,
        unit.reason,
        data,
        incident=unit.incident,
        changes_at=unit.next_run_at,
        eta=unit.eta,
        changed_at=unit.changed_at,
        retest_due_at=unit.retest_due_at,
    )


def _partition_causes(test: PartitionTest, data_range: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    zones = _coverage(data_range, copy, test.due_after, now)
    younger_from = _younger_from(test, copy)
    meeting = [
        unit
        for unit in test.units
        if unit.data.overlaps(data_range) and (unit.has_verdict or unit.data.start >= younger_from)
    ]
    yield from _unmonitored(zones)
    yield from _not_due(zones, except_for=(unit.data for unit in meeting if unit.is_failing))
    alike: dict[tuple[object, ...], list[UnitState]] = {}
    for unit in meeting:
        if unit.data.end > zones.monitored_from and (unit.is_failing or unit.data.start < zones.due_to):
            alike.setdefault(unit[1:], []).append(unit)
    for units in alike.values():
        yield _unit_cause(units[0], *(unit.data for unit in units))
    tested_ranges = [unit.data for unit in meeting]
    silent_to = max(test.covers_from, younger_from)
    untested = subtract(
        zones.due, tested_ranges if silent_to == BEGINNING else [Interval(BEGINNING, silent_to), *tested_ranges]
    )
    not_expected = tuple(_not_expected(untested, copy))
    if not_expected:
        yield Cause(Verdict.PASS, NOT_EXPECTED, not_expected)
    if never_tested := subtract(untested, not_expected):
        yield Cause(Verdict.UNKNOWN, NEVER_TESTED, never_tested)


def _not_expected(untested: Iterable[Interval], copy: CopyState) -> Iterator[Interval]:
    """What is known to hold rows nevertheless is tested, so that it is none of the untested."""
    for gap in untested if copy.production_calendar is not None and copy.grain is not Grain.NONE else ():
        for partition in partitions_within(gap, copy.grain, copy.zone):
            is_known = partition.end <= copy.partitions_seen_at
            if copy.production_calendar is not None and is_known and not copy.production_calendar.expects(partition):
                yield partition


def _freshness_causes(test: FreshnessTest, data_range: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    zones = _coverage(data_range, copy, test.due_after, now)
    failing = test.unit is not None and test.unit.is_failing
    complete, doubtful = split_at(data_range, test.complete_to or BEGINNING)
    yield from _unmonitored(zones)
    if not failing:
        yield from _not_due(zones)
        doubtful = doubtful and split_at(doubtful, zones.due_to)[0]
    if complete is not None:
        yield Cause(Verdict.PASS, PASSING, (complete,))
    if doubtful is not None:
        yield _unit_cause(test.unit, doubtful)


def _unmonitored(zones: PartitionCoverage) -> Iterator[Cause]:
    if (before := zones.unmonitored) is not None:
        yield Cause(Verdict.UNKNOWN, UNMONITORED, (before,))


def _not_due(zones: PartitionCoverage, except_for: Iterable[Interval] = ()) -> Iterator[Cause]:
    if waiting := zones.not_due(except_for):
        yield Cause(Verdict.UNKNOWN, NOT_DUE, waiting, changes_at=zones.due_at(waiting[0]))


def _coverage(data_range: Interval, copy: CopyState, due_after: timedelta, now: datetime) -> PartitionCoverage:
    return coverage_of(data_range, copy.grain, copy.zone, copy.monitored_from, due_after, now=now)


def _merge_causes(causes: Iterable[Cause]) -> Iterator[Cause]:
    """One cause for all partitions of a test about which the same is said; the earliest change counts."""
    groups: dict[tuple[object, ...], list[Cause]] = {}
    for cause in causes:
        groups.setdefault((cause.test, cause.verdict, cause.reason, cause.incident), []).append(cause)
    return (_merge_group(group) for group in groups.values())


def _merge_group(group: Sequence[Cause]) -> Cause:
    if len(group) == 1 and len(group[0].ranges) == 1:
        return group[0]
    return group[0]._replace(
        ranges=union(piece for cause in group for piece in cause.ranges),
        changes_at=min((cause.changes_at for cause in group if cause.changes_at is not None), default=None),
        eta=min((cause.eta for cause in group if cause.eta is not None), default=None),
        changed_at=max((cause.changed_at for cause in group if cause.changed_at is not None), default=None),
        retest_due_at=min((cause.retest_due_at for cause in group if cause.retest_due_at is not None), default=None),
    )


def _worst_first(cause: Cause) -> tuple[int, str, str, tuple[Interval, ...]]:
    return (-cause.verdict.severity, cause.category, cause.test, cause.ranges)
