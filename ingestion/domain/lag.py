"""How far the lake is behind the source (RULES.md, Ingestion)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

STALE_AFTER_INTERVALS = 3
"""A source that was not looked at successfully for more than this many intervals is not known."""
_PIECES = 20
"""Of the events of a commit, in the order of their times: a twentieth each."""
_STEPS, _MOST = 4, 96
"""Buckets between a time and its double; the last one ends at 2**(96 / 4) seconds, half a year."""


def lag(*, complete_upto: datetime | None, every: timedelta, now: datetime) -> timedelta | None:
    """Since when a source commit may be waiting: everything up to `complete_upto` is queryable, what came later is not known to be.

    So it is zero only at a look and grows until the next. None (unknown): no look has succeeded, or the last one is stale.
    """
    if complete_upto is None or now - complete_upto > STALE_AFTER_INTERVALS * every:
        return None
    return max(timedelta(), now - complete_upto)


def spread_of_times(times: Iterable[datetime]) -> list[int]:
    """Of the events of one commit when their sources committed them, in seconds since 1970: the oldest, the newest, and nineteen between. Empty: none says."""
    ordered = sorted(int(time.timestamp()) for time in times)
    if not ordered:
        return []
    return [ordered[round(place * (len(ordered) - 1) / _PIECES)] for place in range(_PIECES + 1)]


@dataclass(frozen=True)
class LagCounts:
    """How many events took how long from the source to the lake, in buckets that are a fifth wide. An associative sum: hours add up to a day."""

    counts: Mapping[int, int] = field(default_factory=dict)
    """By bucket; the bucket n ends at 2**(n / 4) seconds."""

    @classmethod
    def of_commit(cls, spread: Sequence[int], events: int, completed_at: datetime) -> LagCounts:
        """`spread`: of their times. Of each twentieth the oldest speaks, so none is told shorter than it was."""
        counts: Counter[int] = Counter()
        for piece, time in enumerate(spread[:-1]):
            share = -(-events * (piece + 1) // _PIECES) + (-events * piece // _PIECES)
            counts[_bucket(completed_at.timestamp() - time)] += share
        return cls({bucket: count for bucket, count in counts.items() if count})

    @classmethod
    def from_json(cls, stored: Mapping[str, int]) -> LagCounts:
        return cls({int(bucket): count for bucket, count in stored.items()})

    def to_json(self) -> dict[str, int]:
        return {str(bucket): count for bucket, count in sorted(self.counts.items())}

    def __add__(self, other: LagCounts) -> LagCounts:
        return LagCounts(dict(Counter(self.counts) + Counter(other.counts)))

    @property
    def events(self) -> int:
        return sum(self.counts.values())

    def quantile(self, share: float) -> timedelta | None:
        """So long took at most `share` of the events, rounded up to the end of a bucket. None: there are none."""
        left = share * self.events
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 1e-9:
                return timedelta(seconds=_end_of(bucket))
        return None


def _bucket(seconds: float) -> int:
    """A clock may be ahead: what took less than no time took none."""
    return min(_MOST, max(0, math.ceil(_STEPS * math.log2(seconds) - 1e-9))) if seconds > 1 else 0


def _end_of(bucket: int) -> float:
    return float(2 ** (bucket / _STEPS))
