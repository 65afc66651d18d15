"""How good the data was over a window: the share of the time, and of the questions, in which something was wrong."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from incidents.domain.scores.tally import Pair, Pieces, Tally, Window, ratio, total_length, union_of_pairs
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


def monitored_pieces(window: Window, dataset: int, monitored_from: datetime | None) -> Sequence[Pair]:
    """The time of the window that counts: from `monitored_from` on, and in no grace period."""
    return () if monitored_from is None else window.pieces(dataset, monitored_from, None)


def data_level(tallies: Iterable[Tally], monitored: Sequence[Pair]) -> DataLevel:
    """One dataset: its tallies, one a category, within the time that counts. What overlaps counts once."""
    if not monitored:
        return DataLevel()
    whole = Interval(monitored[0][0], monitored[-1][1])
    return DataLevel(total_length(bad_intervals(tallies, whole)), total_length(monitored))


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
