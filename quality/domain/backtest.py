"""What a test would have said of the past, and whom it would have woken: pure reckoning over partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from lakehub.kernel.calendar import Grain, grown_by_grain
from lakehub.kernel.interval import FOREVER, Interval, union
from lakehub.kernel.outcome import Outcome
from quality.domain.expression import THIS, Call, Expression, Literal, Name
from quality.domain.expression.amounts import duration_text, shown
from quality.domain.expression.kinds import Kind
from quality.domain.freshness import COMPLETE_SHARE

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
class Page:
    """An alarm at `at`, over partitions that failed side by side; `ended_at`: when it would have been over, where known."""

    at: datetime
    first: str
    last: str
    partitions: int
    observed: str
    threshold: str
    ended_at: datetime | None = None


def pages(
    runs: Iterable[PastRun], *, sustain: timedelta, grain: Grain, zone: ZoneInfo, now: datetime
) -> tuple[Page, ...]:
    """The incidents that the failures would have been: a failure next to an open one joins it, as partitions of one grain do.

    The data is as it is today, so each would have failed from its first run on in every rerun: it pages once the sustain
    period is over, if it is.
    """
    groups: list[list[PastRun]] = []
    for run in sorted((one for one in runs if one.outcome is Outcome.FAIL), key=lambda one: one.due_at):
        if run.due_at + sustain > now:
            continue
        joined = next((group for group in groups if _beside(run, group, grain, zone)), None)
        if joined is None:
            groups.append([run])
        else:
            joined.append(run)
    return tuple(_page(group, sustain) for group in groups)


def _beside(run: PastRun, group: Sequence[PastRun], grain: Grain, zone: ZoneInfo) -> bool:
    grown = [grown_by_grain(one.partition, grain, zone) for one in group]
    return any(one.meets(run.partition) for one in grown)


def _page(group: Sequence[PastRun], sustain: timedelta) -> Page:
    first, last = (choose(group, key=lambda one: one.partition) for choose in (min, max))
    return Page(
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
class Limit:
    """The lateness that a test allows; `inclusive`: may just be reached."""

    most: timedelta
    inclusive: bool

    def __str__(self) -> str:
        return f"{'<=' if self.inclusive else '<'} {duration_text(self.most)}"

    def is_kept_by(self, late: timedelta) -> bool:
        return late <= self.most if self.inclusive else late < self.most


def freshness_limit(expression: Expression) -> Limit | None:
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
    return Limit(limit.value, function == "le") if isinstance(limit.value, timedelta) else None


def _is_this(name: object) -> bool:
    return isinstance(name, Name) and name.dataset == THIS and not name.data_center and not name.shift


def complete_at(arrivals: Iterable[Arrival], rows: int) -> datetime | None:
    """When 99.9% of the rows that there are today had come; None: not yet, as far as the commits tell."""
    have = 0
    for arrival in sorted(arrivals, key=lambda one: one.at):
        have += arrival.rows
        if have >= COMPLETE_SHARE * rows:
            return arrival.at
    return None


def late_runs(
    partitions: Sequence[tuple[Interval, str]],
    arrivals: Mapping[Interval, Sequence[Arrival]],
    rows: Mapping[str, int],
    limit: Limit,
    *,
    now: datetime,
) -> Iterator[PastRun]:
    """How late each partition was complete. Where `rows` expects none, nothing says that any was to come."""
    for partition, name in partitions:
        due_at = partition.end + limit.most
        run = PastRun(partition, name, due_at, Outcome.NO_DATA, threshold=str(limit), cause="there are no rows")
        if rows.get(name):
            at = complete_at(arrivals.get(partition, ()), rows[name]) or now
            late = max(timedelta(), at - partition.end)
            outcome = Outcome.PASS if limit.is_kept_by(late) else Outcome.FAIL
            observed = shown(late, Kind.DURATION)
            run = replace(run, outcome=outcome, observed=observed, cause="", value=late.total_seconds())
        yield run


def late_pages(runs: Iterable[PastRun], *, sustain: timedelta, now: datetime) -> tuple[Page, ...]:
    """Freshness fails while any partition is late: what is late together is one alarm, if it lasts the sustain period."""
    late = [one for one in runs if one.outcome is Outcome.FAIL and one.value is not None]
    spans = {one: Interval(one.due_at, _until(one)) for one in late if _until(one) > one.due_at}
    return tuple(
        Page(
            at=whole.start + sustain,
            first=members[0].name,
            last=members[-1].name,
            partitions=len(members),
            observed=members[0].observed,
            threshold=members[0].threshold,
            ended_at=whole.end if whole.end < now else None,
        )
        for whole in union(spans.values())
        if whole.length >= sustain and (members := [one for one in late if spans.get(one, _NEVER).meets(whole)])
    )


_NEVER = Interval(FOREVER - timedelta(microseconds=1), FOREVER)


def _until(run: PastRun) -> datetime:
    return run.partition.end + timedelta(seconds=run.value or 0)
