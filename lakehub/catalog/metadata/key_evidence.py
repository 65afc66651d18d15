"""How well a key holds in the real rows: of all of them where that is affordable, else of a sample that says how it was drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

EVIDENCE_LIMIT = 10_000_000
"""Of tables up to so many rows all are read."""
SAMPLE_ROWS = 1_000_000
"""Of larger ones about so many."""
SAMPLE_SEED = 17
"""One for all, so that whoever looks again sees the same sample."""


class Drawn(StrEnum):
    """Which rows were read."""

    ALL = "all"
    BY_KEY = "by key"
    """All rows of some keys, which their hash chooses, and all rows without a key: what repeats among them is counted whole."""
    BY_BLOCK = "by block"
    """All rows of random blocks of the table."""
    FIRST = "first"
    """The first that the storage hands over: no random sample."""


@dataclass(frozen=True)
class KeyEvidence:
    """Of `rows` that were read, `distinct` values of the key (nulls left out), and `nulls` rows where a part of it is null."""

    rows: int
    distinct: int
    nulls: int
    null_columns: Mapping[str, int] = field(default_factory=dict)
    """By column of the key the rows where it is null, without those that have none."""
    drawn: Drawn = Drawn.ALL
    total: int | None = None
    """How many rows the table has where not all were read, by the storage's own statistics where it only guesses; None: not known."""

    @property
    def repeats(self) -> int:
        """The rows beyond the first of each key."""
        return self.rows - self.nulls - self.distinct

    @property
    def counts_text(self) -> str:
        """`26,112 keys in 26,115 rows, no nulls`."""
        columns = ", ".join(f"{count:,} in `{name}`" for name, count in self.null_columns.items())
        rows = "row" if self.nulls == 1 else "rows"
        nulls = f"{self.nulls:,} {rows} with a null ({columns})" if self.nulls else "no nulls"
        keys, of_rows = ("key" if self.distinct == 1 else "keys"), ("row" if self.rows == 1 else "rows")
        return f"{self.distinct:,} {keys} in {self.rows:,} {of_rows}, {nulls}"

    @property
    def drawn_text(self) -> str:
        """`all rows were read`, or which were not and how those were chosen that were."""
        if self.drawn is Drawn.ALL:
            return "all rows were read"
        of_total = f"of {self.total:,} rows" if self.total is not None else f"of more than {EVIDENCE_LIMIT:,} rows"
        if self.drawn is Drawn.FIRST:
            return f"the first {self.rows:,} {of_total}, as the source hands them over; the others were not read"
        how = {
            Drawn.BY_KEY: "all rows of keys that their hash chooses, and all rows with a null",
            Drawn.BY_BLOCK: "random blocks",
        }[self.drawn]
        return f"a random sample of {self.rows:,} {of_total}, seed {SAMPLE_SEED}: {how}"

    @property
    def sentence(self) -> str:
        """For people; a table without a row says nothing of its key."""
        if not self.rows:
            return (
                "the table has no rows yet, so nothing is known of its key; it is checked by the tests when rows come"
            )
        return f"{self.counts_text}; {self.drawn_text}"
