"""QPSFraction: which part of what a cluster can answer each table of the index may ask.

Parts are whole numbers of WHOLE, rounded down, so together they are never more than the whole. The rule:

1. A fraction that a person has set holds. Together these take at most BY_HAND_AT_MOST; the other tables share what is left.
2. A fifth of that (EVEN_SHARE) is split so that each table may send the same number of requests. A table on one server sends all of its requests there, one on
   ten servers a tenth to each, so each server counts once: the weight is 1 / servers. This is what a small table on few servers lives on.
3. The rest is split by rows.

What a table gets of the fifth does not depend on the rows of the others, so nobody starves. That tables are weighed by rows, and small ones on few servers are
raised, is the QPSFraction of Uber's Global Index; that a fifth does it is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

Key = TypeVar("Key")

WHOLE = 1_000_000_000
"""Of so many parts a fraction says how many."""
EVEN_SHARE = Fraction(1, 5)
BY_HAND_AT_MOST = WHOLE * 4 // 5
"""Of all that are set by hand together: the other tables, and those that come later, have the rest."""


@dataclass(frozen=True)
class IndexedTable:
    """`servers`: region servers that host its regions. `by_hand`: parts of WHOLE that a person has set; None: by the rule."""

    rows: int
    servers: int = 1
    by_hand: int | None = None


class TooMuchByHand(ValueError):
    """`left`: the parts that can be set."""

    def __init__(self, wanted: int, left: int) -> None:
        super().__init__(f"{as_percent(wanted)} is more than the {as_percent(left)} that is left.")
        self.left = left


def fractions(tables: Mapping[Key, IndexedTable]) -> dict[Key, int]:
    """The parts of each. Raises TooMuchByHand where those set by hand are more than may be."""
    by_hand = {key: table.by_hand for key, table in tables.items() if table.by_hand is not None}
    left_by_hand(by_hand)
    left = WHOLE - sum(by_hand.values())
    return by_hand | _by_rule({key: table for key, table in tables.items() if table.by_hand is None}, left)


def left_by_hand(by_hand: Mapping[Key, int], *, without: Key | None = None) -> int:
    """The parts that can still be set by hand for the table `without`, or one that is not there yet. Raises TooMuchByHand."""
    others = sum(parts for key, parts in by_hand.items() if key != without)
    if others > BY_HAND_AT_MOST:
        raise TooMuchByHand(others, BY_HAND_AT_MOST)
    return BY_HAND_AT_MOST - others


def check_by_hand(by_hand: Mapping[Key, int], key: Key, parts: int) -> None:
    """Raises TooMuchByHand where the table cannot have so many beside the others."""
    left = left_by_hand(by_hand, without=key)
    if parts > left:
        raise TooMuchByHand(parts, left)


def as_percent(parts: int) -> str:
    """`12.5%`, rounded down to what is left of it: a person who enters it gets no more."""
    thousandths = parts * 100_000 // WHOLE
    return f"{thousandths / 1000:g}%"


def weighed_rows(rows: int) -> int:
    """With two digits, so that not each commit changes the fractions of all tables: 1,234,567 counts as 1,200,000."""
    scale = int("1" + "0" * (len(str(rows)) - 2))
    return rows // scale * scale


def _by_rule(tables: Mapping[Key, IndexedTable], left: int) -> dict[Key, int]:
    evenly = {key: Fraction(1, max(1, table.servers)) for key, table in tables.items()}
    by_rows = {key: Fraction(weighed_rows(max(0, table.rows))) for key, table in tables.items()}
    all_evenly, all_rows = sum(evenly.values()), sum(by_rows.values())
    by_row_share = (1 - EVEN_SHARE) / all_rows if all_rows else Fraction(0)
    even_share = EVEN_SHARE if all_rows else Fraction(1)  # without a row there is nothing to split by
    return {key: int(left * (even_share * evenly[key] / all_evenly + by_row_share * by_rows[key])) for key in tables}
