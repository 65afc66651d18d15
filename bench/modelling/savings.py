"""What a way saves beside another, and where it stops paying."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def saved(of: float, now: float) -> float:
    """The share of `of` that `now` does without; below zero where it takes more."""
    return 1 - now / of


def break_even(ratios: Sequence[tuple[float, float]]) -> float | None:
    """`ratios`: shares of the partitions, growing, and what they cost of the other way. The share at which both cost the same, between two on a straight line; None: there is none."""
    if ratios and ratios[0][1] >= 1:
        return ratios[0][0]
    for (share, ratio), (later, then) in pairwise(ratios):
        if ratio < 1 <= then:
            return share + (later - share) * (1 - ratio) / (then - ratio)
    return None
