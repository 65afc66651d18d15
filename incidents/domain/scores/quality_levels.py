"""How good the data was over a window: the share of the time, and of the questions, in which something was wrong."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from incidents.domain.scores.tally import Pair, Pieces, Tally, ratio, total_length, union_of_pairs
from lakehub.kernel.interval import Interval


@dataclass(frozen=True)
class DataLevel:
    """The incident share is what was published as the score; quality is what is left of 1. None: nothing monitored."""

    incident: timedelta = timedelta()
    monitored: timedelta = timedelta()

    def __add__(self, other: DataLevel) -> DataLevel:
        return DataLevel(self.incident + other.incident, self.monitored + other.monitored)

    @property
    def incident_share(self) -> float | None:
        return ratio(self.incident, self.monitored)

    @property
    def quality(self) -> float | None:
        share = self.incident_share
        return None if share is None else 1 - share


def data_level(tallies: Iterable[Tally], window: Interval, *, monitored_from: datetime) -> DataLevel:
    """One dataset: its tallies, one a category, within the window and after `monitored_from`. What overlaps counts once."""
    start = max(window.start, monitored_from)
    if start >= window.end:
        return DataLevel()
    monitored = Interval(start, window.end)
    return DataLevel(total_length(bad_intervals(tallies, monitored)), monitored.length)


def bad_intervals(tallies: Iterable[Tally], within: Interval) -> Pieces:
    """When something was the matter with the data, whatever it was and whoever saw it."""
    begin, over = within.start, within.end
    pieces = union_of_pairs([piece for tally in tallies for piece in (*tally.tp, *tally.fn)])
    if not pieces or (begin <= pieces[0][0] and pieces[-1][1] <= over):
        return pieces
    return tuple((max(start, begin), min(end, over)) for start, end in pieces if start < over and begin < end)


@dataclass(frozen=True)
class QueryLevel:
    """`failed` of `asked` questions met data that was wrong then, by what is known now."""

    failed: int = 0
    asked: int = 0

    def __add__(self, other: QueryLevel) -> QueryLevel:
        return QueryLevel(self.failed + other.failed, self.asked + other.asked)

    @property
    def failed_share(self) -> float | None:
        return self.failed / self.asked if self.asked else None

    @property
    def quality(self) -> float | None:
        share = self.failed_share
        return None if share is None else 1 - share


def length_by_step(pieces: Iterable[Pair], edges: Sequence[datetime]) -> list[timedelta]:
    """How much of disjoint pieces lies between each two of the edges, which rise."""
    lengths = [timedelta()] * (len(edges) - 1)
    for start, end in pieces:
        at = max(0, bisect_right(edges, start) - 1)
        while at < len(lengths) and edges[at] < end:
            lengths[at] += max(min(end, edges[at + 1]) - max(start, edges[at]), timedelta())
            at += 1
    return lengths
