"""Backtest: today's definition of a test over past partitions. Nobody is alarmed, and no verdict is stored.

It sees the data as it is today: what was repaired since does not fail. Measures that have not changed since they were taken
are used again, and what is measured of many partitions is one scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.calendar import Grain, floor_to_bucket, partitions_within
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.suggest import did_you_mean
from quality import slots
from quality.allowance import Allowance
from quality.arrivals import arrivals, cannot_replay, first_commit, known_since, said_of_commits
from quality.asking import test_of
from quality.confirmed import left_out
from quality.described import described, produced
from quality.domain.backtest import Page, PastRun, freshness_limit, late_pages, late_runs, pages
from quality.domain.definitions import DatasetFacts, runs_in
from quality.domain.evaluation import Evaluation, evaluate
from quality.domain.expression import Expression, ExpressionError, flattened, leaf_calls, parse, readable, understand
from quality.domain.expression.values import Moment
from quality.domain.tiers import BadOverride
from quality.measuring import measure
from quality.models import Test, TestVersion, Unit
from quality.uses import uses

DAYS = 90
MOST_DAYS = 800
MOST_PARTITIONS = 2200
"""Of one copy: three months of hours. The newest are tested."""
AT_ONCE = 400
"""So many partitions are measured together; between two such batches time is looked at."""
AT_ONCE_APART = 5
"""Where each partition takes a scan of its own: dimension tests, queries, drift, exchanges between places."""
_APART = frozenset({"query", "drift", "matching", "sampled"})
BUDGET = timedelta(seconds=20)
"""How long a request may take."""
MOST_QUERIES = 200
"""In one request: each is a process of its own, or a statement of its own in a database."""
_LEASED = timedelta(minutes=2)
"""Whose request has died waits so long for the next."""


@dataclass(frozen=True)
class CopyTest:
    """What came out on one copy, oldest partition first. `notes` say what could not be replayed, and why."""

    data_center: str
    runs: tuple[PastRun, ...]
    pages: tuple[Page, ...]
    notes: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        return sum(run.outcome is outcome for run in self.runs)


@dataclass(frozen=True)
class Backtest:
    """`cut`: time or a person ended it before the oldest partitions were reached."""

    dataset: str
    expression: str
    flattened: str
    days: int
    sustain: timedelta
    severity: str
    copies: tuple[CopyTest, ...]
    took: timedelta
    cut: bool = False

    @property
    def pages(self) -> tuple[Page, ...]:
        return tuple(page for copy in self.copies for page in copy.pages)

    @property
    def summary(self) -> str:
        """`This would have paged you 3 times in 90 days.`"""
        times = {0: "not once", 1: "once"}.get(len(self.pages), f"{len(self.pages)} times")
        alarmed = {"page": "paged you", "message": "sent you a message", "mail": "sent you a mail"}[self.severity]
        reached = " as far as it got" if self.cut else ""
        return f"This would have {alarmed} {times} in {self.days} days{reached}."


def run_backtest(
    dataset: Dataset,
    *,
    expression: str = "",
    test: str = "",
    data_center: str = "",
    days: int = DAYS,
    budget: timedelta | None = BUDGET,
    cancelled: Callable[[], bool] = lambda: False,
    now: datetime,
) -> Backtest:
    """Tries a test of the dataset by its key, or an expression that is not stored yet, on its past partitions.

    With a budget, that is in a request, it takes a slot of what it reads, as a claim of a worker does.
    Raises Refused with what is wrong by field, NotFound, or Conflict where no slot is free.
    """
    if not 1 <= days <= MOST_DAYS:
        raise Refused.because({"days": f"{days} days cannot be tried: give 1 to {MOST_DAYS}."})
    asked = _asked(dataset, expression, test)
    if budget is not None and asked.expression.parameters.engine == "spark":
        raise Refused.because({"expression": "No request starts Spark: try it by `manage.py backtest`, or on duckdb."})
    clock = _Clock(budget, cancelled)
    copies = []
    for copy in _copies(dataset, asked, data_center):
        with nullcontext() if budget is None else slots.held_for_scans(uses(asked.expression, copy), until=_LEASED):
            copies.append(_on_copy(asked, copy, days, clock, now=now))
    return Backtest(
        dataset=dataset.name,
        expression=readable(asked.expression),
        flattened=flattened(asked.expression),
        days=days,
        sustain=asked.sustain,
        severity=asked.facts.slas.severity,
        copies=tuple(copies),
        took=clock.allowance.spent,
        cut=clock.is_over,
    )


@contextmanager
def one_at_a_time(person: str) -> Iterator[None]:
    """Around what a person asks for. Raises Conflict while something else that they tried is running."""
    busy = "Another backtest of yours is running: wait until it has ended."
    with slots.held({f"backtest of {person}"[:130]: 1}, busy, until=_LEASED):
        yield


@dataclass(frozen=True)
class _Asked:
    """The test that is tried, as it would be stored."""

    dataset: Dataset
    facts: DatasetFacts
    expression: Expression
    sustain: timedelta
    due_after: timedelta

    @property
    def is_apart(self) -> bool:
        return self.expression.parameters.by is not None or any(
            call.function in _APART for call in leaf_calls(self.expression)
        )

    @property
    def is_of_freshness(self) -> bool:
        return any(call.function == "freshness" for call in leaf_calls(self.expression))

    @property
    def is_of_the_whole(self) -> bool:
        given = self.expression.parameters
        return given.partition == "whole" or given.cadence is not None or self.facts.grain is Grain.NONE

    def unit(self, copy: DatasetCopy, partition: Interval, number: int) -> Unit:
        """Never saved: what measuring wants to know."""
        version = TestVersion(flattened=flattened(self.expression))
        test = Test(dataset=self.dataset, version=version)
        return Unit(pk=-number, test=test, copy=copy, start=partition.start, end=partition.end)


def _asked(dataset: Dataset, expression: str, key: str) -> _Asked:
    if bool(expression) == bool(key):
        raise Refused.because({"expression": "Give an expression, or the key of a test: one of the two."})
    try:
        facts = described(dataset)
        if key:
            version = test_of(dataset, key).version
            assert version is not None  # live tests have one
            return _Asked(dataset, facts, parse(version.flattened), version.sustain, version.due_after)
        understood = understand(expression, facts.scope)
    except BadOverride as problem:
        raise Refused.because({"overrides": str(problem)}) from problem
    except ExpressionError as problem:
        raise Refused.because({"expression": str(problem)}) from problem
    sustain = understood.parameters.sustain
    due_after = facts.slas.freshness
    return _Asked(dataset, facts, understood, facts.slas.sustain if sustain is None else sustain, due_after)


class _Clock:
    """Says when it is enough."""

    def __init__(self, budget: timedelta | None, cancelled: Callable[[], bool]) -> None:
        self.allowance = Allowance(budget, None if budget is None else MOST_QUERIES)
        self._cancelled = cancelled
        self.is_over = False

    def has_rung(self) -> bool:
        self.is_over = self.is_over or self._cancelled() or self.allowance.is_used_up
        return self.is_over


def _copies(dataset: Dataset, asked: _Asked, data_center: str) -> list[DatasetCopy]:
    copies = list(dataset.copies.select_related("dataset__feed__connection", "data_center"))
    names = [copy.data_center.name for copy in copies]
    if data_center and data_center not in names:
        raise NotFound(f"{dataset.name} has no copy in `{data_center}`.{did_you_mean(data_center, names)}")
    concerned = [copy for copy in copies if runs_in(asked.expression, copy.data_center.name)]
    return [copy for copy in concerned if data_center in ("", copy.data_center.name)]


def _on_copy(asked: _Asked, copy: DatasetCopy, days: int, clock: _Clock, *, now: datetime) -> CopyTest:
    if asked.is_of_freshness:
        return _of_freshness(asked, copy, days, clock.allowance, now=now)
    if asked.is_of_the_whole:
        return _of_the_whole(asked, copy, clock.allowance, now=now)
    newest_first = list(reversed(_partitions(asked, copy, days, now=now)))
    runs: list[PastRun] = []
    batches = iter(newest_first)
    while batch := list(islice(batches, AT_ONCE_APART if asked.is_apart else AT_ONCE)):
        if clock.has_rung():
            break
        runs += _tried(asked, copy, batch, clock.allowance, now=now)
    runs.reverse()
    found = pages(runs, sustain=asked.sustain, grain=asked.facts.grain, zone=copy.dataset.zone, now=now)
    untried = len(newest_first) - len(runs)
    notes = (f"The {untried:,} oldest partitions were not reached in time.",) if untried else ()
    return CopyTest(copy.data_center.name, tuple(runs), found, (_TODAY, *notes))


_TODAY = "Judged by the data as it is today: what came late, or was repaired since, is not seen."


def _partitions(asked: _Asked, copy: DatasetCopy, days: int, *, now: datetime) -> list[Interval]:
    """Those that were due within the last days, are watched and expected; oldest first."""
    grain, zone = asked.facts.grain, copy.dataset.zone
    begin = floor_to_bucket(now - timedelta(days=days), grain, zone)
    end = floor_to_bucket(now - asked.due_after, grain, zone)
    begin = max(begin, copy.monitored_from or begin)
    if begin >= end:
        return []
    calendar = produced(asked.dataset)
    within = partitions_within(Interval(begin, end), grain, zone)
    return [one for one in within if calendar is None or calendar.expects(one)][-MOST_PARTITIONS:]


def _tried(
    asked: _Asked, copy: DatasetCopy, partitions: Sequence[Interval], allowance: Allowance, *, now: datetime
) -> Iterator[PastRun]:
    units = [asked.unit(copy, partition, number) for number, partition in enumerate(partitions, start=1)]
    answers = measure(copy, units, allowance, now=now)
    excluded = left_out(copy, units[:1])
    dataset = copy.dataset
    for unit, partition in zip(units, partitions, strict=True):
        due_at = partition.end + asked.due_after
        moment = Moment(
            due_at,
            asked.facts.grain,
            dataset.zone,
            copy.monitored_from,
            partition=partition,
            excluded=tuple(one for one in excluded if not one.meets(partition)),
        )
        found = evaluate(asked.expression, answers[unit.pk].of, moment, groups=answers[unit.pk].groups)
        yield _past_run(partition, dataset.partition_label(partition), due_at, found)


def _past_run(partition: Interval, name: str, due_at: datetime, found: Evaluation) -> PastRun:
    return PastRun(
        partition=partition,
        name=name,
        due_at=due_at,
        outcome=found.outcome,
        observed=found.observed_text,
        threshold=found.threshold,
        behind=found.behind,
        cause=found.cause,
        value=_number(found),
        facts=tuple((found.facts or {}).items()),
    )


def _number(found: Evaluation) -> float | None:
    value = found.observed
    if value is None or isinstance(value, str):
        return None
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _of_the_whole(asked: _Asked, copy: DatasetCopy, allowance: Allowance, *, now: datetime) -> CopyTest:
    """The past of a table that has no partitions is gone: it is tried once, as it is."""
    unit = asked.unit(copy, EVERYTHING, 1)
    answers = measure(copy, [unit], allowance, now=now)[unit.pk]
    moment = Moment(now, asked.facts.grain, copy.dataset.zone, copy.monitored_from)
    found = evaluate(asked.expression, answers.of, moment, groups=answers.groups)
    run = _past_run(EVERYTHING, "the whole table", now, found)
    note = "A test of the whole table has no past to be tried on: only how it is now can be told."
    return CopyTest(copy.data_center.name, (run,), (), (note,))


def _of_freshness(asked: _Asked, copy: DatasetCopy, days: int, allowance: Allowance, *, now: datetime) -> CopyTest:
    """From when the commits came: the data as it is today is all there."""
    limit, first = freshness_limit(asked.expression), first_commit(copy)
    why = cannot_replay(copy, limit, first)
    if why or limit is None or first is None:
        return CopyTest(copy.data_center.name, (), (), (f"Freshness cannot be replayed: {why}",))
    asked = replace(asked, due_after=limit.most)
    everything = _partitions(asked, copy, days, now=now)
    after_first = [one for one in everything if one.end > first]
    since = known_since(copy, first, now=now)
    seen = [one for one in after_first if since is None or one.start >= since]
    named = [(one, copy.dataset.partition_label(one)) for one in seen]
    expected = _rows(asked, copy, seen, allowance, now=now)
    runs = tuple(late_runs(named, arrivals(copy, seen), expected, limit, now=now))
    found = late_pages(runs, sustain=asked.sustain, now=now)
    before, forgotten = len(everything) - len(after_first), len(after_first) - len(seen)
    notes = tuple(said_of_commits(before, first, forgotten, since))
    return CopyTest(copy.data_center.name, runs, found, notes)


def _rows(
    asked: _Asked, copy: DatasetCopy, partitions: Sequence[Interval], allowance: Allowance, *, now: datetime
) -> dict[str, int]:
    """How many rows each partition has today; upstream, where the test goes by it and it can be read."""
    by_upstream = any(len(call.args) == 2 for call in leaf_calls(asked.expression))
    own = _counted(asked, copy, partitions, "this", allowance, now=now)
    return own | _counted(asked, copy, partitions, "upstream", allowance, now=now) if by_upstream else own


def _counted(
    asked: _Asked,
    copy: DatasetCopy,
    partitions: Sequence[Interval],
    table: str,
    allowance: Allowance,
    *,
    now: datetime,
) -> dict[str, int]:
    """One scan of all partitions, or none where they have not changed."""
    counting = replace(asked, expression=parse(f"rows({table}) >= 0"))
    units = [counting.unit(copy, partition, number) for number, partition in enumerate(partitions, start=1)]
    answers = measure(copy, units, allowance, now=now)
    counted = [next(iter(answers[unit.pk].of.values())) for unit in units]
    labels = [copy.dataset.partition_label(partition) for partition in partitions]
    return {label: rows for label, rows in zip(labels, counted, strict=True) if isinstance(rows, int)}
