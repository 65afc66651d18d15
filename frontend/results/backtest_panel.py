"""A test tried on the past, as a panel shows it: how often it would have paged, and on which days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from frontend.results.history_plot import Plot, Point
from frontend.results.measurements import threshold_number, unit_of_threshold
from frontend.ui import words
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.outcome import Outcome
from quality.backtest.draft import DEFAULT_DAYS
from quality.backtest.report import BacktestReport, CopyBacktest
from quality.backtest.run import REQUEST_BUDGET, run_backtest, single_backtest_of
from quality.domain.backtest import PastRun

MAX_LISTED_DAYS = 40
_STATES = {Outcome.PASS: "pass", Outcome.FAIL: "fail"}


@dataclass(frozen=True)
class CopyPanel:
    """What came out in one data center."""

    copy_test: CopyBacktest
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
        rows = ((_STATES.get(outcome, "unknown"), word, self.copy_test.count(outcome)) for outcome, word in words)
        return [row for row in rows if row[2]]

    @property
    def failed_runs(self) -> list[PastRun]:
        """The days that fail, newest first."""
        return [run for run in reversed(self.copy_test.runs) if run.outcome is Outcome.FAIL][:MAX_LISTED_DAYS]


@dataclass(frozen=True)
class BacktestPanel:
    """Either what came out, or why it could not be tried."""

    backtest: BacktestReport | None = None
    copies: list[CopyPanel] = field(default_factory=list)
    problem: str = ""

    @property
    def state(self) -> str:
        """Nothing to say is not good news: neither is a past that could not be seen."""
        if self.backtest is None or not any(copy.copy_test.runs for copy in self.copies):
            return "unknown"
        return "warn" if self.backtest.pages else "pass"

    @property
    def brief(self) -> str:
        """For a list of tests: `2 times`."""
        if self.backtest is None or self.state == "unknown":
            return "cannot be tried"
        pages = len(self.backtest.pages)
        return "never" if not pages else words.count(pages, "time")


def backtest_panel(
    dataset: Dataset, *, expression: str = "", test: str = "", person: User, now: datetime
) -> BacktestPanel:
    """Takes as long as the budget of a request."""
    try:
        with single_backtest_of(person.get_username()):
            return _panel(dataset, expression=expression, test=test, author=person, now=now)
    except Conflict as problem:
        return BacktestPanel(problem=str(problem))


def backtest_panels(dataset: Dataset, tests: list[str], *, person: str, now: datetime) -> Mapping[str, BacktestPanel]:
    """Each of the tests in turn, within the time of one; what it does not reach is left out. Raises Conflict."""
    left, panels = REQUEST_BUDGET, {}
    with single_backtest_of(person):
        for key in tests:
            if left <= timedelta():
                break
            panels[key] = _panel(dataset, test=key, budget=left, now=now)
            backtest = panels[key].backtest
            left -= backtest.duration if backtest else timedelta()
    return panels


def _panel(
    dataset: Dataset,
    *,
    expression: str = "",
    test: str = "",
    author: User | None = None,
    budget: timedelta = REQUEST_BUDGET,
    now: datetime,
) -> BacktestPanel:
    try:
        backtest = run_backtest(
            dataset, expression=expression, test=test, days=DEFAULT_DAYS, budget=budget, author=author, now=now
        )
    except (Refused, NotFound, Conflict) as problem:
        return BacktestPanel(problem=str(problem).partition("\n")[0])
    return BacktestPanel(backtest, [CopyPanel(copy, _backtest_plot(copy)) for copy in backtest.copies])


def _backtest_plot(copy: CopyBacktest) -> Plot:
    runs = [run for run in copy.runs if run.value is not None]
    threshold = next((run.threshold for run in reversed(runs) if run.threshold), "")
    points = [
        Point(run.partition.start, run.value or 0.0, _STATES.get(run.outcome, "unknown"), run.observed, run.name)
        for run in runs
    ]
    whole = any(run.partition.is_everything for run in runs)
    return Plot(
        [] if whole else points,
        threshold_number(threshold),
        f"needs {words.comparison(threshold)}",
        unit_of_threshold(threshold),
    )
