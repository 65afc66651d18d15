"""How far two distributions are apart: the Jensen-Shannon distance in base 2, a metric between 0 and 1.

It is the square root of the mean Kullback-Leibler divergence of both from their average (Lin, Divergence measures based on
the Shannon entropy, 1991; Endres and Schindelin, 2003). It needs no bins that match: what one lacks counts as zero there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import fsum, log2, sqrt

_DIGITS = 12


def jensen_shannon_distance(first: Mapping[str | None, int], second: Mapping[str | None, int]) -> Fraction:
    """Between the counts of bins, neither of them empty; nulls are the bin None. Rounded to 12 digits."""
    sizes = sum(first.values()), sum(second.values())
    shares = [(first.get(name, 0) / sizes[0], second.get(name, 0) / sizes[1]) for name in {**first, **second}]
    divergence = fsum((_divergence_part(p, (p + q) / 2) + _divergence_part(q, (p + q) / 2)) / 2 for p, q in shares)
    return Fraction(round(min(1.0, sqrt(max(0.0, divergence))) * 10**_DIGITS), 10**_DIGITS)


def _divergence_part(share: float, average: float) -> float:
    return share * log2(share / average) if share else 0.0
