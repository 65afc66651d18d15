"""`manage.py backtest flights 'rows(this) > 900' --days 60 [--json]`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.output.terminal import printable
from quality.backtest.draft import DEFAULT_DAYS
from quality.backtest.report import BacktestReport, CopyBacktest
from quality.backtest.run import run_backtest
from quality.domain.backtest import PastRun, SimulatedAlert


class Command(BaseCommand):
    help = "Tries a test, by its key or as an expression, on past partitions: what it says of each, and whom it would have woken."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("expression", nargs="?", default="")
        parser.add_argument("--test", default="", help="the key of a test, in place of an expression")
        parser.add_argument("--dc", default="", help="a data center; all of them unless given")
        parser.add_argument("--days", type=int, default=DEFAULT_DAYS)
        parser.add_argument("--json", action="store_true")

    def handle(self, *, dataset: str, expression: str, test: str, dc: str, days: int, **options: Any) -> None:
        """However long it takes; ended from the keyboard, it leaves nothing behind."""
        try:
            tried = run_backtest(
                live_dataset(dataset),
                expression=expression,
                test=test,
                data_center=dc,
                days=days,
                budget=None,
                now=wiring.clock.now(),
            )
        except (NotFound, Refused) as problem:
            raise CommandError(printable(str(problem))) from problem
        if options["json"]:
            self.stdout.write(json.dumps(asdict(tried) | {"summary": tried.summary}, indent=1, default=str))
            return
        for line in _lines(tried):
            self.stdout.write(printable(line))


def _lines(tried: BacktestReport) -> Iterator[str]:
    yield tried.summary
    for copy in tried.copies:
        yield ""
        yield f"{copy.data_center}: {_counts(copy)}"
        yield from (f"  note: {note}" for note in copy.notes)
        yield from map(_page, copy.pages)
        yield from (_run(run) for run in copy.runs if run.outcome is not Outcome.PASS)
    yield ""
    yield f"{tried.expression}; sustained for {tried.sustain}; took {tried.duration.total_seconds():.1f} s"


def _counts(copy: CopyBacktest) -> str:
    counts = [(outcome, copy.count(outcome)) for outcome in Outcome]
    return ", ".join(f"{count} {outcome}" for outcome, count in counts if count) or "no partitions"


def _page(page: SimulatedAlert) -> str:
    partitions = page.first if page.first == page.last else f"{page.first} to {page.last}"
    return f"  alarm at {page.at:%Y-%m-%d %H:%M} UTC: {partitions}, {page.observed} {page.threshold}"


def _run(run: PastRun) -> str:
    observed = f"{run.observed} {run.threshold}".strip()
    behind = f" ({run.behind})" if run.behind else ""
    return f"  {run.outcome:8} {run.name:14} {observed}{behind}{run.cause}"
