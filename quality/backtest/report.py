"""The result of a backtest: how often the test would have failed and paged, for each copy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lakehub.kernel.outcome import Outcome
from quality.domain.backtest import PastRun, SimulatedAlert


@dataclass(frozen=True)
class CopyBacktest:
    """What came out on one copy, oldest partition first. `notes` say what could not be replayed, and why."""

    data_center: str
    runs: tuple[PastRun, ...]
    pages: tuple[SimulatedAlert, ...]
    notes: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        return sum(run.outcome is outcome for run in self.runs)


@dataclass(frozen=True)
class BacktestReport:
    """`is_partial`: time or a person ended it before the oldest partitions were reached."""

    dataset: str
    expression: str
    flattened: str
    days: int
    sustain: timedelta
    severity: str
    copies: tuple[CopyBacktest, ...]
    duration: timedelta
    is_partial: bool = False

    @property
    def pages(self) -> tuple[SimulatedAlert, ...]:
        return tuple(page for copy in self.copies for page in copy.pages)

    @property
    def summary(self) -> str:
        """`This would have paged you 3 times in 90 days.`"""
        times = {0: "not once", 1: "once"}.get(len(self.pages), f"{len(self.pages)} times")
        alarmed = {"page": "paged you", "message": "sent you a message", "mail": "sent you a mail"}[self.severity]
        reached = " as far as it got" if self.is_partial else ""
        return f"This would have {alarmed} {times} in {self.days} days{reached}."
