"""The query gate: may one read this copy over this range now?

The verdict over a range Q is the worst over the copy's gating tests and the partitions that meet Q, so that widening Q
never improves it and the verdict of a union is the worst of its parts. A policy turns (verdict, reason) into allow or
block. A test whose last result has become too old arrives as UNKNOWN with the reason `stale` (quality.domain.verdicts), and each
policy says whether that blocks. Nothing here enumerates partitions: what has not been tested is found as the gaps between the units there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from incidents.domain.gate.partition_coverage import PartitionCoverage, coverage_of, split_at
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval, clip_to, subtract, union
from lakehub.kernel.outcome import Verdict, worst_verdict
from lakehub.kernel.partitions import Grain, floor_to_bucket, partitions_within
from quality.domain.timeliness.production_calendar import ProductionCalendar
from quality.domain.verdicts.unit_verdict import VerdictReason

DEFAULT_RETRY_AFTER = timedelta(minutes=5)
"""When nothing known says when a blocker may go."""
MIN_RETRY_AFTER = timedelta(seconds=1)

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


class UnitState(NamedTuple):
    """One unit as judged now. `is_failing`: it fails, sustained or not. `next_run_at`: its next rerun.

    `has_verdict`: it passed or failed at some time. What never did is UNKNOWN.
    """

    data: Interval
    verdict: Verdict
    reason: str
    is_failing: bool = False
    next_run_at: datetime | None = None
    incident: int | None = None
    eta: datetime | None = None
    changed_at: datetime | None = None
    """When the latest commit touched it that no PASS has read yet."""
    retest_due_at: datetime | None = None
    has_verdict: bool = True


@dataclass(frozen=True)
class PartitionTest:
    """A gating test with a unit for each partition; a partition must be whole `due_after` after its end."""

    key: str
    category: str
    due_after: timedelta
    units: tuple[UnitState, ...] = ()
    covers_from: datetime = BEGINNING
    """It looks back, and says nothing of the partitions before this one: there is too little past."""
    added_at: datetime = BEGINNING
    """It was added to a dataset that was monitored already: of partitions that were over by then, it gates those that it has
    judged, so that a new rule does not block the past."""


@dataclass(frozen=True)
class WholeTest:
    """A gating test with one unit, for the table as a whole."""

    key: str
    category: str
    unit: UnitState | None = None
    is_added: bool = False
    """To a dataset that was monitored already: it gates once it has judged the table."""

    @property
    def is_gating(self) -> bool:
        return not self.is_added or (self.unit is not None and self.unit.has_verdict)


@dataclass(frozen=True)
class FreshnessTest:
    """The copy is complete up to `complete_to`, c; None: not known. The verdict counts over [c, infinity)."""

    key: str
    due_after: timedelta
    unit: UnitState | None = None
    complete_to: datetime | None = None

    @property
    def category(self) -> str:
        return "freshness"


@dataclass(frozen=True)
class FindingTest:
    """What ingestion saw: units only where there was something to see."""

    key: str
    category: str
    units: tuple[UnitState, ...] = ()


GatingTest = PartitionTest | WholeTest | FreshnessTest | FindingTest


@dataclass(frozen=True)
class ReportFacts:
    """A user's report about a range; `acknowledged` by the producer, or still waiting."""

    incident: int
    data: Interval
    acknowledged: bool
    eta: datetime | None = None


@dataclass(frozen=True)
class CopyState:
    """What is known about one copy."""

    grain: Grain
    zone: ZoneInfo
    monitored_from: datetime | None
    tests: tuple[GatingTest, ...] = ()
    reports: tuple[ReportFacts, ...] = ()
    grace_until: datetime | None = None
    production_calendar: ProductionCalendar | None = None
    """When partitions are produced; None: all of them are."""
    partitions_seen_at: datetime = FOREVER
    """When it was seen last which partitions hold rows, of a copy that Lakehub only reads: what ended later may hold some."""


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


STRICT_BLOCKS = frozenset({Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN})
LENIENT_BLOCKS = frozenset({Verdict.FAIL})
DEFAULT_BLOCKS = frozenset({Verdict.FAIL, Verdict.UNKNOWN})


@dataclass(frozen=True)
class Policy:
    """What a consumer does with a verdict: `blocks` names verdicts (`unknown`) or one reason of one (`unknown:not_due`).

    What is in grace does not count yet: it blocks only where it is named, as in `fail:in_grace`. A policy in the shadow
    never blocks: the answer says what it would have done.
    """

    name: str = "default"
    blocks: frozenset[str] = DEFAULT_BLOCKS
    shadow: bool = False

    def is_blocked_by(self, cause: Cause) -> bool:
        if f"{cause.verdict}:{cause.reason}" in self.blocks:
            return True
        return cause.verdict in self.blocks and cause.reason != IN_GRACE


@dataclass(frozen=True)
class Override:
    """A person's word that `data` may be read whatever the verdict: why, and until when."""

    number: int
    data: Interval
    by: str
    reason: str
    expires_at: datetime
    consumer: str = ""
    """Empty: everybody's."""


@dataclass(frozen=True)
class GateDecision:
    """Worst first in `causes`; `retry_at` is None where it is allowed. `overrides`: those in force that meet the question."""

    verdict: Verdict
    allowed: bool
    causes: tuple[Cause, ...]
    blockers: tuple[Cause, ...] = field(default=())
    retry_at: datetime | None = None
    would_allow: bool = True
    """What the policy makes of it; `allowed` is the same but for one in the shadow."""
    overrides: tuple[Override, ...] = ()

    def retry_after(self, *, now: datetime) -> timedelta | None:
        """How long to wait before asking again; at least a second."""
        return None if self.retry_at is None else max(MIN_RETRY_AFTER, self.retry_at - now)


def evaluate(
    data_range: Interval, copy: CopyState, policy: Policy, *, now: datetime, overrides: Iterable[Override] = ()
) -> GateDecision:
    """The gate's answer about `data_range`. An override changes no verdict: it takes what blocks within its range out of the way."""
    causes = tuple(sorted(_merge_causes(_causes(data_range, copy, now)), key=_worst_first))
    in_force = tuple(
        override for override in overrides if now < override.expires_at and override.data.overlaps(data_range)
    )
    excused = [override.data for override in in_force]
    blockers = tuple(
        cause for cause in causes if policy.is_blocked_by(cause) and _is_not_overridden(cause, data_range, excused)
    )
    allowed = not blockers or policy.shadow
    return GateDecision(
        verdict=worst_verdict(cause.verdict for cause in causes),
        allowed=allowed,
        causes=causes,
        blockers=blockers,
        retry_at=None if allowed else _retry_at(blockers, now),
        would_allow=not blockers,
        overrides=in_force,
    )


def _is_not_overridden(cause: Cause, data_range: Interval, excused: list[Interval]) -> bool:
    """Something of what was asked for, and that the cause is about, lies outside the overrides."""
    return not excused or bool(subtract(clip_to(cause.ranges, data_range), excused))


def _retry_at(blockers: tuple[Cause, ...], now: datetime) -> datetime:
    """The earliest recovery, rerun or due time that is still to come: one that has passed says nothing."""
    instants = (at for cause in blockers for at in (cause.eta, cause.changes_at) if at is not None and at > now)
    return min(instants, default=now + DEFAULT_RETRY_AFTER)


# Causes


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


def _unit_cause(unit: UnitState | None, data: Interval) -> Cause:
    if unit is None:
        return Cause(Verdict.UNKNOWN, NEVER_TESTED, (data,))
    return Cause(
        unit.verdict,
        unit.reason,
        (data,),
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
    for unit in meeting:
        if unit.data.end > zones.monitored_from and (unit.is_failing or unit.data.start < zones.due_to):
            yield _unit_cause(unit, unit.data)
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


# Putting together


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
