"""The query gate: may one read this copy over this range now?

The verdict over a range Q is the worst over the copy's gating tests and the partitions that meet Q, so that widening Q
never improves it and the verdict of a union is the worst of its parts. A policy turns (verdict, reason) into allow or
block. Nothing here enumerates partitions: what has not been tested is found as the gaps between the units there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from incidents.domain.zones import Zones, cut, zones_of
from lakehub.kernel.calendar import Grain, partitions_within
from lakehub.kernel.interval import BEGINNING, FOREVER, Interval, clip_all, subtract, union
from lakehub.kernel.outcome import Verdict, worst
from quality.domain.production import Production

ASK_AGAIN_AFTER = timedelta(minutes=5)
"""When nothing known says when a blocker may go."""
AT_LEAST = timedelta(seconds=1)

UNMONITORED = "unmonitored"
NOT_DUE = "not_due"
NEVER_TESTED = "never_tested"
NO_TESTS = "no_tests"
IN_GRACE = "in_grace"
REPORTED = "reported"
REPORT_WAITS = "report_waits"
NOT_EXPECTED = "not_expected"
"""The calendar of the dataset says that nothing is produced there, and it is known that nothing was written: nothing is missing."""
PASSING = "passing"


class UnitState(NamedTuple):
    """One unit as judged now. `streak`: it is failing, sustained or not. `next_run_at`: its next rerun."""

    data: Interval
    verdict: Verdict
    reason: str
    streak: bool = False
    next_run_at: datetime | None = None
    incident: int | None = None
    eta: datetime | None = None


@dataclass(frozen=True)
class PartitionTest:
    """A gating test with a unit for each partition; a partition must be whole `due_after` after its end."""

    key: str
    category: str
    due_after: timedelta
    units: tuple[UnitState, ...] = ()
    since: datetime = BEGINNING
    """It looks back, and says nothing of the partitions before this one: there is too little past."""


@dataclass(frozen=True)
class WholeTest:
    """A gating test with one unit, for the table as a whole."""

    key: str
    category: str
    unit: UnitState | None = None


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
class Report:
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
    reports: tuple[Report, ...] = ()
    grace_until: datetime | None = None
    produced: Production | None = None
    """When partitions are produced; None: all of them are."""
    looked_at: datetime = FOREVER
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


STRICT = frozenset({Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN})
LENIENT = frozenset({Verdict.FAIL})
DEFAULT = frozenset({Verdict.FAIL, Verdict.UNKNOWN})


@dataclass(frozen=True)
class Policy:
    """What a consumer does with a verdict: `blocks` names verdicts (`unknown`) or one reason of one (`unknown:not_due`).

    What is in grace does not count yet: it blocks only where it is named, as in `fail:in_grace`. A policy in the shadow
    never blocks: the answer says what it would have done.
    """

    name: str = "default"
    blocks: frozenset[str] = DEFAULT
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
class Answer:
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
        return None if self.retry_at is None else max(AT_LEAST, self.retry_at - now)


def ask(
    asked: Interval, copy: CopyState, policy: Policy, *, now: datetime, overrides: Iterable[Override] = ()
) -> Answer:
    """The gate's answer about `asked`. An override changes no verdict: it takes what blocks within its range out of the way."""
    causes = tuple(sorted(_grouped(_causes(asked, copy, now)), key=_worst_first))
    in_force = tuple(one for one in overrides if now < one.expires_at and one.data.meets(asked))
    excused = [one.data for one in in_force]
    blockers = tuple(cause for cause in causes if policy.is_blocked_by(cause) and _is_left(cause, asked, excused))
    allowed = not blockers or policy.shadow
    return Answer(
        verdict=worst(cause.verdict for cause in causes),
        allowed=allowed,
        causes=causes,
        blockers=blockers,
        retry_at=None if allowed else _retry_at(blockers, now),
        would_allow=not blockers,
        overrides=in_force,
    )


def _is_left(cause: Cause, asked: Interval, excused: list[Interval]) -> bool:
    """Something of what was asked for, and that the cause is about, lies outside the overrides."""
    return not excused or bool(subtract(clip_all(cause.ranges, asked), excused))


def _retry_at(blockers: tuple[Cause, ...], now: datetime) -> datetime:
    """The earliest of recovery, rerun and due time. A recovery promised for a time that has passed says nothing."""
    promised = [cause.eta for cause in blockers if cause.eta is not None and cause.eta > now]
    planned = [cause.changes_at for cause in blockers if cause.changes_at is not None]
    return min(promised + planned, default=now + ASK_AGAIN_AFTER)


# Causes


def _causes(asked: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    silent, _ = cut(asked, min(map(_speaks_from, copy.tests), default=FOREVER))
    if silent is not None:
        yield Cause(Verdict.UNKNOWN, NO_TESTS, (silent,))
    for test in copy.tests:
        for cause in _grouped(_of_test(test, asked, copy, now)):
            yield _in_grace(cause._replace(test=test.key, category=test.category), copy, now)
    for report in copy.reports:
        if report.data.meets(asked):
            yield _of_report(report)


def _speaks_from(test: GatingTest) -> datetime:
    """Findings say what is wrong, never that all is well."""
    if isinstance(test, FindingTest):
        return FOREVER
    return test.since if isinstance(test, PartitionTest) else BEGINNING


def _of_test(test: GatingTest, asked: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    if isinstance(test, WholeTest):
        return iter((_of_unit(test.unit, asked),))
    if isinstance(test, FreshnessTest):
        return _of_freshness(test, asked, copy, now)
    if isinstance(test, FindingTest):
        return (_of_unit(unit, unit.data) for unit in test.units if unit.data.meets(asked))
    return _of_partitions(test, asked, copy, now)


def _in_grace(cause: Cause, copy: CopyState, now: datetime) -> Cause:
    in_grace = copy.grace_until is not None and now < copy.grace_until
    if in_grace and cause.verdict in (Verdict.FAIL, Verdict.WARN):
        return cause._replace(reason=IN_GRACE, changes_at=copy.grace_until)
    return cause


def _of_report(report: Report) -> Cause:
    verdict, reason = (Verdict.FAIL, REPORTED) if report.acknowledged else (Verdict.WARN, REPORT_WAITS)
    return Cause(verdict, reason, (report.data,), incident=report.incident, eta=report.eta)


def _of_unit(unit: UnitState | None, data: Interval) -> Cause:
    if unit is None:
        return Cause(Verdict.UNKNOWN, NEVER_TESTED, (data,))
    return Cause(unit.verdict, unit.reason, (data,), incident=unit.incident, changes_at=unit.next_run_at, eta=unit.eta)


def _of_partitions(test: PartitionTest, asked: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    zones = _zones(asked, copy, test.due_after, now)
    meeting = [unit for unit in test.units if unit.data.meets(asked)]
    yield from _unmonitored(zones)
    yield from _not_due(zones, except_for=(unit.data for unit in meeting if unit.streak))
    for unit in meeting:
        if unit.data.end > zones.monitored_from and (unit.streak or unit.data.start < zones.due_to):
            yield _of_unit(unit, unit.data)
    said = [unit.data for unit in meeting]
    untested = subtract(zones.due, said if test.since == BEGINNING else [Interval(BEGINNING, test.since), *said])
    not_expected = tuple(_not_expected(untested, copy))
    if not_expected:
        yield Cause(Verdict.PASS, NOT_EXPECTED, not_expected)
    if never_tested := subtract(untested, not_expected):
        yield Cause(Verdict.UNKNOWN, NEVER_TESTED, never_tested)


def _not_expected(untested: Iterable[Interval], copy: CopyState) -> Iterator[Interval]:
    """What is known to hold rows nevertheless is tested, so that it is none of the untested."""
    for gap in untested if copy.produced is not None and copy.grain is not Grain.NONE else ():
        for partition in partitions_within(gap, copy.grain, copy.zone):
            is_known = partition.end <= copy.looked_at
            if copy.produced is not None and is_known and not copy.produced.expects(partition):
                yield partition


def _of_freshness(test: FreshnessTest, asked: Interval, copy: CopyState, now: datetime) -> Iterator[Cause]:
    zones = _zones(asked, copy, test.due_after, now)
    failing = test.unit is not None and test.unit.streak
    complete, doubtful = cut(asked, test.complete_to or BEGINNING)
    yield from _unmonitored(zones)
    if not failing:
        yield from _not_due(zones)
        doubtful = doubtful and cut(doubtful, zones.due_to)[0]
    if complete is not None:
        yield Cause(Verdict.PASS, PASSING, (complete,))
    if doubtful is not None:
        yield _of_unit(test.unit, doubtful)


def _unmonitored(zones: Zones) -> Iterator[Cause]:
    if (before := zones.unmonitored) is not None:
        yield Cause(Verdict.UNKNOWN, UNMONITORED, (before,))


def _not_due(zones: Zones, except_for: Iterable[Interval] = ()) -> Iterator[Cause]:
    if waiting := zones.not_due(except_for):
        yield Cause(Verdict.UNKNOWN, NOT_DUE, waiting, changes_at=zones.due_at(waiting[0]))


def _zones(asked: Interval, copy: CopyState, due_after: timedelta, now: datetime) -> Zones:
    return zones_of(asked, copy.grain, copy.zone, copy.monitored_from, due_after, now=now)


# Putting together


def _grouped(causes: Iterable[Cause]) -> Iterator[Cause]:
    """One cause for all partitions of a test about which the same is said; the earliest change counts."""
    groups: dict[tuple[object, ...], list[Cause]] = {}
    for cause in causes:
        groups.setdefault((cause.test, cause.verdict, cause.reason, cause.incident), []).append(cause)
    return (_joined(group) for group in groups.values())


def _joined(group: Sequence[Cause]) -> Cause:
    if len(group) == 1 and len(group[0].ranges) == 1:
        return group[0]
    return group[0]._replace(
        ranges=union(piece for cause in group for piece in cause.ranges),
        changes_at=min((cause.changes_at for cause in group if cause.changes_at is not None), default=None),
        eta=min((cause.eta for cause in group if cause.eta is not None), default=None),
    )


def _worst_first(cause: Cause) -> tuple[int, str, str, tuple[Interval, ...]]:
    return (-cause.verdict.severity, cause.category, cause.test, cause.ranges)
