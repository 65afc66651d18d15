"""Sums over the rows of a table, cut into cells by the hash of their key: what two copies tell each other to find where they differ.

Each row has two hashes of 64 bits, of its key (k) and of all its columns (r). A cell is the rows whose k begins with the same
`depth` bits, and has three sums modulo 2^64, which do not depend on the order of rows:

    how many rows | sum of r | sum of (k >> 25) * (r & 0xFFFFFF)

Sums and not XOR: a row that is there twice would cancel itself out. The cells of a coarser depth are sums of those of a finer one.

The difference of two cells says more than that they differ. Where a single record makes it, the sums give it away: of one row more
or less the second is its r, of a changed row what r became less what it was, and the third divided by the lower bits of that is
k >> 25, which names the record. A division with a remainder, or one that leads out of the cell, says that it was not a single one.
This is how invertible Bloom lookup tables give their contents back (Eppstein, Goodrich, Uyeda, Varghese:
What's the Difference? Efficient Set Reconciliation without Prior Context, SIGCOMM 2011), so what travels grows with the
difference and not with the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

KEY_SHIFT, ROW_MASK = 25, 0xFFFFFF
"""So much of k and r goes into the product, which fits 63 bits: every database has such integers."""
MAX_DEPTH = 32
"""Databases cut the hash of a key in two halves; a cell is found by the first."""
_WORD = 1 << 64


class Kind(StrEnum):
    """What is wrong with a record, seen from here."""

    MISSING = "missing"
    """It is there and not here."""
    SURPLUS = "surplus"
    """It is here and not there."""
    DOUBLED = "doubled"
    """It is here more often than there."""
    DOUBLED_THERE = "doubled there"
    """It is there more often than here."""
    CHANGED = "changed"
    """It is in both, with other values."""


@dataclass(frozen=True)
class CellSums:
    """The sums of some cells of one depth: `prefixes` (ascending) of shape (n), `sums` of shape (n, 3)."""

    depth: int
    prefixes: Hashes
    sums: Hashes

    @classmethod
    def of_rows(cls, keys: Hashes, rows: Hashes, depth: int) -> CellSums:
        """Of the hashes of rows; cells without a row are left out."""
        prefixes = _prefixes(keys, depth)
        terms = np.stack(
            [np.ones_like(keys), rows, (keys >> np.uint64(KEY_SHIFT)) * (rows & np.uint64(ROW_MASK))], axis=1
        )
        return cls(depth, prefixes, terms).merged()

    @classmethod
    def none(cls, depth: int) -> CellSums:
        return cls(depth, np.zeros(0, np.uint64), np.zeros((0, 3), np.uint64))

    def merged(self) -> CellSums:
        """With each prefix once, in ascending order."""
        if not len(self.prefixes):
            return self
        order = np.argsort(self.prefixes, kind="stable")
        prefixes, starts = np.unique(self.prefixes[order], return_index=True)
        return CellSums(self.depth, prefixes, np.add.reduceat(self.sums[order], starts, axis=0))

    def plus(self, other: CellSums) -> CellSums:
        """The sums of the rows of both."""
        together = CellSums(
            self.depth, np.concatenate([self.prefixes, other.prefixes]), np.concatenate([self.sums, other.sums])
        )
        return together.merged()

    def coarser(self, depth: int) -> CellSums:
        return CellSums(depth, self.prefixes >> np.uint64(self.depth - depth), self.sums).merged()

    def at(self, prefixes: Hashes) -> Hashes:
        """The sums of these cells, in this order; zeros of those without a row."""
        sums = np.zeros((len(prefixes), 3), np.uint64)
        if len(self.prefixes):
            places = np.minimum(np.searchsorted(self.prefixes, prefixes), len(self.prefixes) - 1)
            known = self.prefixes[places] == prefixes
            sums[known] = self.sums[places[known]]
        return sums


def _prefixes(keys: Hashes, depth: int) -> Hashes:
    return keys >> np.uint64(64 - depth) if depth else np.zeros_like(keys)


@dataclass(frozen=True)
class Claim:
    """What the difference of a cell says: a single record of `kind` makes it. `key_bits` are the upper 39 bits of its k.

    `row` is r of a row that is missing or surplus; of a changed one it is r here less r there, modulo 2^64.
    """

    kind: Kind
    prefix: int
    depth: int
    key_bits: int
    row: int


def claims_of(depth: int, prefixes: Hashes, differences: Hashes) -> Iterator[Claim | None]:
    """For each cell that differs (its sums here less those there) the one record that explains it; None: not a single one does."""
    for prefix, cell in zip(prefixes.tolist(), differences.tolist(), strict=True):
        yield _claim(depth, prefix, *cell)


_KINDS = {1: Kind.SURPLUS, 0: Kind.CHANGED, _WORD - 1: Kind.MISSING}


def _claim(depth: int, prefix: int, count: int, row: int, product: int) -> Claim | None:
    kind = _KINDS.get(count)
    if kind is Kind.MISSING:
        row, product = -row % _WORD, -product % _WORD
    signed = product - _WORD if product >= _WORD >> 1 else product
    step = row & ROW_MASK
    if signed < 0:
        step -= ROW_MASK + 1
    if kind is None or not step or signed % step:
        return None
    key_bits = signed // step
    in_cell = key_bits >> (64 - KEY_SHIFT - depth) == prefix
    return Claim(kind, prefix, depth, key_bits, row) if in_cell else None
