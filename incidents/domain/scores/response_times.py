"""How long it took: the mean, the median and the 90th percentile of some durations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from math import ceil


@dataclass(frozen=True)
class ResponseTime:
    """Of `n` incidents; None of none. `waiting` more have not got there yet, and are in none of the three."""

    n: int = 0
    waiting: int = 0
    mean: timedelta | None = None
    median: timedelta | None = None
    p90: timedelta | None = None


def response_time(durations: Iterable[timedelta], waiting: int = 0) -> ResponseTime:
    """The median of an even number lies between the two in the middle; the 90th percentile is one that occurred."""
    ranked = sorted(durations)
    if not ranked:
        return ResponseTime(waiting=waiting)
    middle = len(ranked) // 2
    median = ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2
    mean = sum(ranked, timedelta()) / len(ranked)
    return ResponseTime(len(ranked), waiting, mean, median, ranked[ceil(len(ranked) * 0.9) - 1])
