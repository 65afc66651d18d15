"""Rules that a column keeps already: proposed from a profile of one partition, each with the counts that speak for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from math import ceil, floor, isfinite, log10
from typing import Any

from quality.domain.expression.amounts import literal_text
from quality.domain.expression.kinds import Kind
from quality.domain.rules import Rule

FEWEST_ROWS = 30
"""Of fewer rows nothing is proposed."""
MOST_VALUES = 20
ROWS_A_VALUE = 10
"""A column has accepted values where there are few, and each occurs so often on average."""
MOST_NULLS = Fraction(1, 5)
KNOWN_SHARE = Fraction(4, 5)
"""So many values of a foreign key must be known at least for it to be one."""
ALIKE = Fraction(999, 1000)
_NICE = [Fraction(text) / 100 for text in ("0.1", "0.5", "1", "2", "5", "10", "20", "50")]


@dataclass(frozen=True)
class ColumnProfile:
    """What one scan saw of a column; None: not known. `values` are counts by value, where there are not too many."""

    name: str
    rows: int
    nulls: int
    distinct: int | None = None
    low: float | None = None
    high: float | None = None
    values: Mapping[str, int] = field(default_factory=dict)
    is_text: bool = False
    references: Mapping[str, int] = field(default_factory=dict)
    """By the dataset that is keyed by a column of this name: how many rows name a key that it lacks."""

    @property
    def filled(self) -> int:
        return self.rows - self.nulls


@dataclass(frozen=True)
class Proposal:
    """`evidence` are the rows that keep the rule: `26,112 of 26,115`."""

    rule: Rule
    evidence: str
    why: str


def proposals(column: ColumnProfile) -> Iterator[Proposal]:
    """The rules that the rows of the profile keep, or nearly."""
    if column.rows < FEWEST_ROWS:
        return
    for propose in (_nulls, _range, _accepted, _pattern, _referential):
        yield from propose(column)


def _nulls(column: ColumnProfile) -> Iterator[Proposal]:
    share = Fraction(column.nulls, column.rows)
    if share <= MOST_NULLS:
        why = "has a value nearly always" if share else "has a value always"
        yield _proposal(column, "nulls", {"share": _tolerance(share)}, column.filled, column.rows, why)


def _range(column: ColumnProfile) -> Iterator[Proposal]:
    """A quarter of its width to either side; not of what numbers the rows, nor of a single number: see `_accepted`."""
    low, high = column.low, column.high
    if low is None or high is None or not column.filled or column.distinct == column.filled:
        return
    margin = (high - low) / 4
    if not (isfinite(margin) and margin):
        return
    wide = _down(low - margin, margin), _up(high + margin, margin)
    if low >= 0 > wide[0]:
        wide = 0, wide[1]
    why = f"goes from {low:,g} to {high:,g}"
    yield _proposal(column, "range", {"low": wide[0], "high": wide[1]}, column.filled, column.filled, why)


def _accepted(column: ColumnProfile) -> Iterator[Proposal]:
    """Not of a single value: within one partition it may well be a part of the date, and another one tomorrow."""
    few = 1 < len(column.values) <= MOST_VALUES and column.filled >= ROWS_A_VALUE * len(column.values)
    if column.is_text and few:
        values = sorted(column.values)
        why = f"is one of {len(values)} values"
        yield _proposal(column, "accepted", {"values": values}, column.filled, column.filled, why)


def _pattern(column: ColumnProfile) -> Iterator[Proposal]:
    """Where all but one in a thousand look alike: the same kinds of characters in the same order."""
    if not column.is_text or len(column.values) <= MOST_VALUES:
        return
    counts: dict[str, int] = {}
    shapes: dict[str, list[str]] = {}
    for value, count in column.values.items():
        shape = "".join(kind for kind, _ in groupby(map(_kind, value)))
        counts[shape] = counts.get(shape, 0) + count
        shapes.setdefault(shape, []).append(value)
    shape, alike = max(counts.items(), key=lambda one: (one[1], one[0]))
    if alike >= ALIKE * column.filled and shape.strip("?"):
        given = {"pattern": _regex(shapes[shape]), "share": _tolerance(1 - Fraction(alike, column.filled))}
        yield _proposal(column, "pattern", given, alike, column.filled, f"looks like {shapes[shape][0]}")


def _referential(column: ColumnProfile) -> Iterator[Proposal]:
    for dataset, unmatched in column.references.items():
        known = column.filled - unmatched
        if column.filled and known >= KNOWN_SHARE * column.filled:
            given = {"dataset": dataset, "share": _tolerance(Fraction(unmatched, column.rows))}
            yield _proposal(column, "referential", given, known, column.filled, f"names {dataset}")


def _proposal(column: ColumnProfile, kind: str, parameters: dict[str, Any], kept: int, of: int, why: str) -> Proposal:
    return Proposal(Rule(kind, column.name, parameters), f"{kept:,} of {of:,}", why)


def _tolerance(share: Fraction) -> str:
    """Twice what was seen, rounded up to what people write."""
    nice = next((one for one in _NICE if one >= 2 * share), Fraction(1, 2)) if share else Fraction(0)
    return literal_text(nice, Kind.RATIO)


def _down(value: float, width: float) -> int | float:
    return _to(floor, value, width)


def _up(value: float, width: float) -> int | float:
    return _to(ceil, value, width)


def _to(rounded: Callable[[float], int], value: float, width: float) -> int | float:
    """To a multiple of the power of ten below the width."""
    digits = -floor(log10(width))
    nice = round(rounded(value / 10.0**-digits) * 10.0**-digits, max(0, digits))
    return int(nice) if nice.is_integer() else nice


# The shape of a text


def _kind(character: str) -> str:
    """A for capitals, a for small letters, 9 for digits, and each other character for itself (? where it is no ASCII)."""
    if character.isascii():
        return "9" if character.isdigit() else "A" if character.isupper() else "a" if character.islower() else character
    return "?"


_CLASSES = {"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]", "?": "."}


def _regex(values: list[str]) -> str:
    """What matches all of these values of one shape, each run as long as it was seen."""
    runs = [[(kind, len(list(run))) for kind, run in groupby(map(_kind, value))] for value in values]
    pieces = []
    for place in zip(*runs, strict=True):
        kind = place[0][0]
        lengths = {length for _, length in place}
        pieces.append(_CLASSES.get(kind, re.escape(kind)) + _times(min(lengths), max(lengths)))
    return "".join(pieces)


def _times(least: int, most: int) -> str:
    if least == most:
        return "" if least == 1 else f"{{{least}}}"
    return f"{{{least},{most}}}"
