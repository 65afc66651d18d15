"""The scores of a window in steps, and beside the window of the same length before it: better or worse than it was?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from incidents.domain.scores.quality_levels import (
    DataLevel,
    QueryLevel,
    bad_intervals,
    length_by_step,
    monitored_pieces,
)
from incidents.domain.scores.tally import Durations, Pair, Pieces, Tally
from incidents.scores.scoring import Score, Scores, scores_of
from lakehub.kernel.interval import Interval

STEPS = 13
"""Of a window: weeks of a quarter."""


@dataclass(frozen=True)
class StepFigures:
    """What one step, or one window, adds up to."""

    durations: Durations = field(default_factory=Durations)
    data: DataLevel = field(default_factory=DataLevel)
    queries: QueryLevel = field(default_factory=QueryLevel)

    def __add__(self, other: StepFigures) -> StepFigures:
        return StepFigures(self.durations + other.durations, self.data + other.data, self.queries + other.queries)


METRICS: dict[str, Callable[[StepFigures], float | None]] = {
    "precision": lambda figures: figures.durations.precision,
    "recall": lambda figures: figures.durations.recall,
    "data": lambda figures: figures.data.quality,
    "queries": lambda figures: figures.queries.quality,
}


@dataclass(frozen=True)
class Trend:
    """The window, the one before it, and the steps of the window, oldest first."""

    window: Interval
    score: Score
    before: StepFigures
    steps: tuple[StepFigures, ...]

    def change(self, reading: str) -> float | None:
        """In points of a share of 1, against the window before; None where either has nothing to share."""
        read = METRICS[reading]
        now, was = read(sum(self.steps, StepFigures())), read(self.before)
        return None if now is None or was is None else now - was

    def line(self, reading: str) -> tuple[float, ...]:
        """By step; those with nothing to share are left out."""
        return tuple(value for step in self.steps if (value := METRICS[reading](step)) is not None)


def trend_of(scores: Scores, *, now: datetime) -> Trend:
    """Of scores that were counted in STEPS, and of the window before theirs."""
    window = scores.window
    before = scores_of(Interval(window.start - window.length, window.start), now=now, scope=scores.scope).whole
    was = StepFigures(before.durations, before.data or DataLevel(), before.queries or QueryLevel())
    return Trend(window, scores.whole, was, tuple(_steps(scores)))


def _steps(scores: Scores) -> list[StepFigures]:
    edges = scores.edges
    sides = [
        _spread_all((getattr(tally, side) for tally in scores.tallies.values()), edges) for side in ("tp", "fp", "fn")
    ]
    durations = [Durations(*step) for step in zip(*sides, strict=True)]
    queries = [sum(step, QueryLevel()) for step in zip(*scores.asked.values(), strict=True)] or [QueryLevel()] * STEPS
    return [StepFigures(*step) for step in zip(durations, _data_levels(scores, edges), queries, strict=True)]


def _spread_all(many: Iterable[Iterable[Pair]], edges: Sequence[datetime]) -> list[timedelta]:
    return length_by_step((piece for pieces in many for piece in pieces), edges)


def _data_levels(scores: Scores, edges: Sequence[datetime]) -> list[DataLevel]:
    of_dataset: defaultdict[int, list[Tally]] = defaultdict(list)
    for (dataset, _), tally in scores.tallies.items():
        of_dataset[dataset].append(tally)
    bad, monitored = list[Pieces](), list[Sequence[Pair]]()
    for pk, monitored_dataset in scores.lives.datasets.items():
        if counted := monitored_pieces(scores.lives.window, pk, monitored_dataset.monitored_from):
            monitored.append(counted)
            bad.append(bad_intervals(of_dataset[pk], Interval(counted[0][0], counted[-1][1])))
    return [DataLevel(*step) for step in zip(_spread_all(bad, edges), _spread_all(monitored, edges), strict=True)]
