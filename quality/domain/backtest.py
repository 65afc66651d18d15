"""What a test would have said of the past, and whom it would have woken: pure reckoning over partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import FOREVER, Interval, union
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, expanded_by_grain
from quality.domain.language import THIS, Call, Expression, Literal, Name
from quality.domain.language.tree.literals import display_amount, format_duration
from quality.domain.timeliness.lateness import COMPLETE_SHARE
from quality.domain.value_types import ValueType

_MIRRORED = {"gt": "lt", "ge": "le"}


@dataclass(frozen=True)
class PastRun:
    """What the test says of one partition, with the data as it is today; it was due first at `due_at`."""

    partition: Interval
    name: str
    due_at: datetime
    outcome: Outcome
    observed: str = ""
    threshold: str = ""
    behind: str = ""
    cause: str = ""
    value: float | None = None
    """What was observed as a number: durations in seconds, shares as fractions of one."""
    facts: tuple[tuple[str, str], ...] = ()
    """What it was made of, by name."""


@dataclass(frozen=True)
class SimulatedAlert:
    """An alarm at `at`, over partitions that failed side by side; `ended_at`: when it would have been over, where known."""

    at: datetime
    first: str
    last: str
    partitions: int
    observed: str
    threshold: str
    ended_at: datetime | None = None


def simulate_alerts(
    runs: Iterable[PastRun], *, sustain: timedelta, grain: Grain, zone: ZoneInfo, now: datetime
) -> tuple[SimulatedAlert, ...]:
    """The incidents that the failures would have been: a failure next to an open one joins it, as partitions of one grain do.

    The data is as it is today, so each would have failed from its first run on in every rerun: it pages once the sustain
    period is over, if it is.
    """
    groups: list[list[PastRun]] = []
    for run in sorted((run for run in runs if run.outcome is Outcome.FAIL), key=lambda run: run.due_at):
        if run.due_at + sustain > now:
            continue
        joined = next((group for group in groups if _is_adjacent(run, group, grain, zone)), None)
        if joined is None:
            groups.append([run])
        else:
            joined.append(run)
    return tuple(_alert_of(group, sustain) for group in groups)


def _is_adjacent(run: PastRun, group: Sequence[PastRun], grain: Grain, zone: ZoneInfo) -> bool:
    grown = [expanded_by_grain(member.partition, grain, zone) for member in group]
    return any(partition.overlaps(run.partition) for partition in grown)


def _alert_of(group: Sequence[PastRun], sustain: timedelta) -> SimulatedAlert:
    first, last = (choose(group, key=lambda run: run.partition) for choose in (min, max))
    return SimulatedAlert(
        at=group[0].due_at + sustain,
        first=first.name,
        last=last.name,
        partitions=len(group),
        observed=group[0].observed,
        threshold=group[0].threshold,
    )


# Freshness, from when commits came


@dataclass(frozen=True)
class Arrival:
    """So many rows of a partition were committed at `at`."""

    at: datetime
    rows: int


@dataclass(frozen=True)
class FreshnessLimit:
    """The lateness that a test allows; `inclusive`: may just be reached."""

    max_lateness: timedelta
    inclusive: bool

    def __str__(self) -> str:
        return f"{'<=' if self.inclusive else '<'} {format_duration(self.max_lateness)}"

    def allows(self, late: timedelta) -> bool:
        return late <= self.max_lateness if self.inclusive else late < self.max_lateness


def freshness_limit(expression: Expression) -> FreshnessLimit | None:
    """The limit of a test that says `freshness(this ...) < 2h`, and no more; None: it says something else."""
    assertion = expression.assertion
    if not isinstance(assertion, Call) or len(assertion.args) != 2:
        return None
    function, (leaf, limit) = assertion.function, assertion.args
    if function in _MIRRORED:
        function, leaf, limit = _MIRRORED[function], limit, leaf
    own = isinstance(leaf, Call) and leaf.function == "freshness" and _is_this(leaf.args[0])
    if function not in ("lt", "le") or not own or not isinstance(limit, Literal):
        return None
    return FreshnessLimit(limit.value, function == "le") if isinstance(limit.value, timedelta) else None


def _is_this(name: object) -> bool:
    return isinstance(name, Name) and name.dataset == THIS and not name.data_center and not name.shift


def complete_at(arrivals: Iterable[Arrival], rows: int) -> datetime | None:
    """When 99.9% of the rows that there are today had come; None: not yet, as far as the commits tell."""
    have = 0
    for arrival in sorted(arrivals, key=lambda arrival: arrival.at):
        have += arrival.rows
        if have >= COMPLETE_SHARE * rows:
            return arrival.at
    return None


def late_runs(
    partitions: Sequence[tuple[Interval, str]],
    arrivals: Mapping[Interval, Sequence[Arrival]],
    rows: Mapping[str, int],
    limit: FreshnessLimit,
    *,
    now: datetime,
) -> Iterator[PastRun]:
    """How late the front was past each partition: when it, or a later one that had ended, was complete.

    Where `rows` expects none, nothing says that any was to come.
    """
    past_front_at = _front_passed_at(partitions, arrivals, rows)
    for partition, name in partitions:
        due_at = partition.end + limit.max_lateness
        run = PastRun(partition, name, due_at, Outcome.NO_DATA, threshold=str(limit), cause="there are no rows")
        if rows.get(name):
            late = max(timedelta(), min(past_front_at[partition], now) - partition.end)
            outcome = Outcome.PASS if limit.allows(late) else Outcome.FAIL
            observed = display_amount(late, ValueType.DURATION)
            run = replace(run, outcome=outcome, observed=observed, cause="", value=late.total_seconds())
        yield run


def _front_passed_at(
    partitions: Sequence[tuple[Interval, str]], arrivals: Mapping[Interval, Sequence[Arrival]], rows: Mapping[str, int]
) -> dict[Interval, datetime]:
    """For each partition the first time at which the front of the data lay behind it."""
    passed_at, earliest = {}, FOREVER
    for partition, name in sorted(partitions, reverse=True):
        at = complete_at(arrivals.get(partition, ()), rows[name]) if rows.get(name) else None
        if at is not None:
            earliest = min(earliest, max(at, partition.end))
        passed_at[partition] = earliest
    return passed_at


def simulate_lateness_alerts(
    runs: Iterable[PastRun], *, sustain: timedelta, now: datetime
) -> tuple[SimulatedAlert, ...]:
    """Freshness fails while the front lies before a partition that is due: one alarm, if it lasts the sustain period."""
    late = [run for run in runs if run.outcome is Outcome.FAIL and run.value is not None]
    spans = {run: Interval(run.due_at, _late_until(run)) for run in late if _late_until(run) > run.due_at}
    return tuple(
        SimulatedAlert(
            at=whole.start + sustain,
            first=members[0].name,
            last=members[-1].name,
            partitions=len(members),
            observed=members[0].observed,
            threshold=members[0].threshold,
            ended_at=whole.end if whole.end < now else None,
        )
        for whole in union(spans.values())
        if whole.length >= sustain and (members := [run for run in late if spans.get(run, _NO_SPAN).overlaps(whole)])
    )


_NO_SPAN = Interval(FOREVER - timedelta(microseconds=1), FOREVER)


def _late_until(run: PastRun) -> datetime:
    return run.partition.end + timedelta(seconds=run.value or 0)
