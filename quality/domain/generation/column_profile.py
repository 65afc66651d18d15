"""Rules that a column keeps already: proposed from a profile of one partition, each with the counts that speak for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from math import ceil, floor, isfinite, log10
from typing import Any

from quality.domain.generation.rules import Rule
from quality.domain.language.tree.literals import format_literal
from quality.domain.value_types import ValueType

MIN_ROWS = 30
"""Of fewer rows nothing is proposed."""
MAX_VALUES = 20
MIN_ROWS_PER_VALUE = 10
"""A column has accepted values where there are few, and each occurs so often on average."""
MAX_NULL_SHARE = Fraction(1, 5)
MIN_MATCHED_SHARE = Fraction(4, 5)
"""So many values of a foreign key must be known at least for it to be one."""
MIN_PATTERN_SHARE = Fraction(999, 1000)
_ROUND_SHARES = [Fraction(text) / 100 for text in ("0.1", "0.5", "1", "2", "5", "10", "20", "50")]


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
class RuleSuggestion:
    """`evidence` are the rows that keep the rule: `26,112 of 26,115`."""

    rule: Rule
    evidence: str
    why: str


def suggestions_for(column: ColumnProfile) -> Iterator[RuleSuggestion]:
    """The rules that the rows of the profile keep, or nearly."""
    if column.rows < MIN_ROWS:
        return
    for propose in (_nulls, _range, _accepted, _pattern, _referential):
        yield from propose(column)


def _nulls(column: ColumnProfile) -> Iterator[RuleSuggestion]:
    share = Fraction(column.nulls, column.rows)
    if share <= MAX_NULL_SHARE:
        why = "has a value nearly always" if share else "has a value always"
        yield _suggestion(column, "nulls", {"share": _tolerance(share)}, column.filled, column.rows, why)


def _range(column: ColumnProfile) -> Iterator[RuleSuggestion]:
    """A quarter of its width to either side; not of what numbers the rows, nor of a single number: see `_accepted`."""
    low, high = column.low, column.high
    if low is None or high is None or not column.filled or column.distinct == column.filled:
        return
    margin = (high - low) / 4
    if not (isfinite(margin) and margin):
        return
    wide = _round_down(low - margin, margin), _round_up(high + margin, margin)
    if low >= 0 > wide[0]:
        wide = 0, wide[1]
    why = f"goes from {low:,g} to {high:,g}"
    yield _suggestion(column, "range", {"low": wide[0], "high": wide[1]}, column.filled, column.filled, why)


def _accepted(column: ColumnProfile) -> Iterator[RuleSuggestion]:
    """Not of a single value: within one partition it may well be a part of the date, and another one tomorrow."""
    few = 1 < len(column.values) <= MAX_VALUES and column.filled >= MIN_ROWS_PER_VALUE * len(column.values)
    if column.is_text and few:
        values = sorted(column.values)
        why = f"is one of {len(values)} values"
        yield _suggestion(column, "accepted", {"values": values}, column.filled, column.filled, why)


def _pattern(column: ColumnProfile) -> Iterator[RuleSuggestion]:
    """Where all but one in a thousand look alike: the same kinds of characters in the same order."""
    if not column.is_text or len(column.values) <= MAX_VALUES:
        return
    counts: dict[str, int] = {}
    shapes: dict[str, list[str]] = {}
    for value, count in column.values.items():
        shape = "".join(kind for kind, _ in groupby(map(_character_class, value)))
        counts[shape] = counts.get(shape, 0) + count
        shapes.setdefault(shape, []).append(value)
    shape, alike = max(counts.items(), key=lambda shape_and_count: (shape_and_count[1], shape_and_count[0]))
    if alike >= MIN_PATTERN_SHARE * column.filled and shape.strip("?"):
        given = {"pattern": _regex(shapes[shape]), "share": _tolerance(1 - Fraction(alike, column.filled))}
        yield _suggestion(column, "pattern", given, alike, column.filled, f"looks like {shapes[shape][0]}")


def _referential(column: ColumnProfile) -> Iterator[RuleSuggestion]:
    for dataset, unmatched in column.references.items():
        matched = column.filled - unmatched
        if column.filled and matched >= MIN_MATCHED_SHARE * column.filled:
            given = {"dataset": dataset, "share": _tolerance(Fraction(unmatched, column.rows))}
            yield _suggestion(column, "referential", given, matched, column.filled, f"names {dataset}")


def _suggestion(
    column: ColumnProfile, kind: str, parameters: dict[str, Any], conforming: int, of: int, why: str
) -> RuleSuggestion:
    return RuleSuggestion(Rule(kind, column.name, parameters), f"{conforming:,} of {of:,}", why)


def _tolerance(share: Fraction) -> str:
    """Twice what was seen, rounded up to what people write."""
    nice = (
        next((round_share for round_share in _ROUND_SHARES if round_share >= 2 * share), Fraction(1, 2))
        if share
        else Fraction(0)
    )
    return format_literal(nice, ValueType.RATIO)


def _round_down(value: float, width: float) -> int | float:
    return _round_to(floor, value, width)


def _round_up(value: float, width: float) -> int | float:
    return _round_to(ceil, value, width)


def _round_to(rounded: Callable[[float], int], value: float, width: float) -> int | float:
    """To a multiple of the power of ten below the width."""
    digits = -floor(log10(width))
    nice = round(rounded(value / 10.0**-digits) * 10.0**-digits, max(0, digits))
    return int(nice) if nice.is_integer() else nice


# The shape of a text


def _character_class(character: str) -> str:
    """A for capitals, a for small letters, 9 for digits, and each other character for itself (? where it is no ASCII)."""
    if character.isascii():
        return "9" if character.isdigit() else "A" if character.isupper() else "a" if character.islower() else character
    return "?"


_REGEX_CLASSES = {"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]", "?": "."}


def _regex(values: list[str]) -> str:
    """What matches all of these values of one shape, each run as long as it was seen."""
    runs = [[(kind, len(list(run))) for kind, run in groupby(map(_character_class, value))] for value in values]
    pieces = []
    for place in zip(*runs, strict=True):
        kind = place[0][0]
        lengths = {length for _, length in place}
        pieces.append(_REGEX_CLASSES.get(kind, re.escape(kind)) + _quantifier(min(lengths), max(lengths)))
    return "".join(pieces)


def _quantifier(least: int, most: int) -> str:
    if least == most:
        return "" if least == 1 else f"{{{least}}}"
    return f"{{{least},{most}}}"
