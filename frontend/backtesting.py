"""A test tried on the past, as a panel shows it: how often it would have paged, and on which days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from frontend import words
from frontend.observed import limit, unit_named
from frontend.queries.history import Plot, Point
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.outcome import Outcome
from quality.backtest import BUDGET, DAYS, Backtest, CopyTest, one_at_a_time, run_backtest
from quality.domain.backtest import PastRun

MOST_DAYS_LISTED = 40
_STATES = {Outcome.PASS: "pass", Outcome.FAIL: "fail"}


@dataclass(frozen=True)
class Copy:
    """What came out in one data center."""

    found: CopyTest
    plot: Plot

    @property
    def counts(self) -> list[tuple[str, str, int]]:
        """(state, word, how many), without those that are none."""
        words = (
            (Outcome.PASS, "passed"),
            (Outcome.FAIL, "failed"),
            (Outcome.NO_DATA, "had no data"),
            (Outcome.ERROR, "could not be read"),
        )
        told = ((_STATES.get(outcome, "unknown"), word, self.found.count(outcome)) for outcome, word in words)
        return [one for one in told if one[2]]

    @property
    def failed(self) -> list[PastRun]:
        """The days that fail, newest first."""
        return [run for run in reversed(self.found.runs) if run.outcome is Outcome.FAIL][:MOST_DAYS_LISTED]


@dataclass(frozen=True)
class Tried:
    """Either what came out, or why it could not be tried."""

    backtest: Backtest | None = None
    copies: list[Copy] = field(default_factory=list)
    problem: str = ""

    @property
    def state(self) -> str:
        """Nothing to say is not good news: neither is a past that could not be seen."""
        if self.backtest is None or not any(copy.found.runs for copy in self.copies):
            return "unknown"
        return "warn" if self.backtest.pages else "pass"

    @property
    def brief(self) -> str:
        """For a list of tests: `2 times`."""
        if self.backtest is None or self.state == "unknown":
            return "cannot be tried"
        pages = len(self.backtest.pages)
        return "never" if not pages else words.count(pages, "time")


def tried(dataset: Dataset, *, expression: str = "", test: str = "", person: str, now: datetime) -> Tried:
    """Takes as long as the budget of a request."""
    try:
        with one_at_a_time(person):
            return _tried(dataset, expression=expression, test=test, now=now)
    except Conflict as problem:
        return Tried(problem=str(problem))


def all_tried(dataset: Dataset, tests: list[str], *, person: str, now: datetime) -> Mapping[str, Tried]:
    """Each of the tests in turn, within the time of one; what it does not reach is left out. Raises Conflict."""
    left, found = BUDGET, {}
    with one_at_a_time(person):
        for key in tests:
            if left <= timedelta():
                break
            found[key] = _tried(dataset, test=key, budget=left, now=now)
            backtest = found[key].backtest
            left -= backtest.took if backtest else timedelta()
    return found


def _tried(
    dataset: Dataset, *, expression: str = "", test: str = "", budget: timedelta = BUDGET, now: datetime
) -> Tried:
    try:
        found = run_backtest(dataset, expression=expression, test=test, days=DAYS, budget=budget, now=now)
    except (Refused, NotFound, Conflict) as problem:
        return Tried(problem=str(problem).partition("\n")[0])
    return Tried(found, [Copy(copy, _plot(copy)) for copy in found.copies])


def _plot(copy: CopyTest) -> Plot:
    runs = [run for run in copy.runs if run.value is not None]
    threshold = next((run.threshold for run in reversed(runs) if run.threshold), "")
    points = [
        Point(run.partition.start, run.value or 0.0, _STATES.get(run.outcome, "unknown"), run.observed, run.name)
        for run in runs
    ]
    whole = any(run.partition.is_everything for run in runs)
    return Plot(
        [] if whole else points, limit(threshold), f"needs {words.comparison(threshold)}", unit_named(threshold)
    )
