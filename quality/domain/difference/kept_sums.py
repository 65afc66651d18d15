"""The sums of one scan, kept at the side that made them: coarser cells are added up from finer ones, with no further scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from quality.domain.difference.sums import MAX_DEPTH, CellSums, Hashes

MAX_KEPT_BITS = 18
"""262,144 cells are kept at most: some 10 MB."""


@dataclass(frozen=True)
class WithinCells:
    """What a scan is about: only the rows in these cells of `depth`; None of them: all rows."""

    depth: int
    prefixes: Hashes


SumScan: TypeAlias = Callable[[int, "WithinCells | None"], CellSums]
"""Reads a side once: the sums of its cells of a depth."""


class KeptSums:
    """The half of a `RowSide` that is the same for every engine. Nothing is read before it is asked for."""

    def __init__(self, scan: SumScan, depth: int) -> None:
        self.finest = depth
        self._scan = scan
        self._within: WithinCells | None = None
        self._kept: dict[int, CellSums] = {}

    def sums(self, depth: int, prefixes: Hashes) -> Hashes:
        return self._at(depth).at(prefixes)

    def refine(self, depth: int, prefixes: Hashes) -> None:
        further = max(1, MAX_KEPT_BITS - len(prefixes).bit_length())
        self.finest = min(MAX_DEPTH, depth + further)
        self._within, self._kept = WithinCells(depth, np.sort(prefixes)), {}

    def _at(self, depth: int) -> CellSums:
        if not self._kept:
            self._kept[self.finest] = self._scan(self.finest, self._within)
        if depth not in self._kept:
            finer = min(kept for kept in self._kept if kept > depth)
            self._kept[depth] = self._kept[finer].coarser(depth)
        return self._kept[depth]
