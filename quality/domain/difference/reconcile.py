"""Finds the records in which two copies differ, at the price of the difference.

Both sides tell the sums of a few cells. A cell whose sums are the same is done with; one that a single record explains is a claim;
any other is halved: only its left half is asked for, the right one is the rest. What is still not explained at the finest depth
that the sides keep is fetched as rows where it is small, else read again and cut finer. In the end the claimed records are
fetched by their key, and each claim is held against them: what is named is named for sure.

Everything is bounded: cells that are open at once, rows that are fetched, depth. Two copies with more differences than that are
not gone through to the end: how many differ is estimated from the share of cells that do, or from what some of them hold, and
some are named. Which side lacks rows is then known from the row counts of the cells: a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quality.domain.difference.records import Difference, Row, compare_rows, match_claims, match_keys
from quality.domain.difference.sums import MAX_DEPTH, Claim, Hashes, Kind, claims_of

START_DEPTH = 6
CELL_BYTES, PREFIX_BYTES, KEY_BYTES, ROW_BYTES = 24, 4, 8, 20
_MAX_SEARCHES = 3
_MIN_AGREEING_CELLS = 10
"""Of fewer the share of cells that differ is too near to all of them."""


@dataclass(frozen=True)
class Bounds:
    """What one comparison may take."""

    open_cells: int = 20_000
    """Some 60,000 differences."""
    rows_of_cells: int = 5_000
    """So many rows are fetched in all of cells that are not explained by a single record."""
    named: int = 10_000
    """So many claims are looked up; the others are counted."""


@dataclass(frozen=True)
class WantedRows:
    """Rows by the upper 39 bits of their key's hash, and of whole cells of one depth."""

    key_bits: Hashes
    depth: int
    prefixes: Hashes

    @property
    def any(self) -> bool:
        return bool(len(self.key_bits) or len(self.prefixes))

    @property
    def size(self) -> int:
        return KEY_BYTES * len(self.key_bits) + PREFIX_BYTES * len(self.prefixes)


class RowSide(Protocol):
    """One side of a comparison."""

    @property
    def finest(self) -> int:
        """The depth up to which sums cost no further scan."""

    def sums(self, depth: int, prefixes: Hashes) -> Hashes:
        """The sums of these cells, in this order, of shape (n, 3)."""

    def refine(self, depth: int, prefixes: Hashes) -> None:
        """Reads these cells of `depth` again and cuts them finer: nothing else is asked for from now on."""

    def rows(self, wanted: WantedRows) -> Sequence[Row]:
        """The rows themselves, by a scan."""


@dataclass
class Reconciled:
    """The differences by name, and how many there are of each kind: more than are named, where those are too many.

    `estimate`: there are too many to find them all; about so many records differ on either side, and a few are named as examples.
    `fewer_here`: then the rows that this side has less, cell by cell: so many are missing here for sure, or doubled there.
    `even_cells`: then the share of the differing cells that have as many rows on both sides, as where values were changed.
    `unexplained`: cells whose sums differ and whose rows do not, as rows changed while they were read.
    `bytes_moved` is what the other side was asked and answered.
    """

    differences: list[Difference] = field(default_factory=list)
    counts: dict[Kind, int] = field(default_factory=dict)
    estimate: int | None = None
    fewer_here: int = 0
    even_cells: float = 0
    unexplained: int = 0
    bytes_moved: int = 0
    rounds: int = 0

    def count(self, kind: Kind) -> int:
        return self.counts.get(kind, 0)

    def count_against(self, kinds: Collection[Kind]) -> int | None:
        """How many records count against this side, of which `kinds` do. Where there are too many to find, the examples stand for
        the rest, and it is never less than the row counts say. None: neither of them says anything about this side."""
        against = sum(self.count(kind) for kind in kinds)
        if self.estimate is None:
            return against + self.unexplained
        every = sum(self.counts.values())
        share = against / every if every else self.even_cells
        return round(max(self.fewer_here * self._share_missing(), self.estimate * share)) or None

    def _share_missing(self) -> float:
        """Of the rows that there are more of on the other side; without examples all of them are missing here."""
        missing, doubled = self.count(Kind.MISSING), self.count(Kind.DOUBLED_THERE)
        return missing / (missing + doubled) if missing or doubled else 1


def depth_for(rows: int, most: int) -> int:
    """The depth at which a cell has some 32 rows, within what a side can keep."""
    return max(START_DEPTH, min(most, math.ceil(math.log2(max(rows, 1) / 32))))


def reconcile(here: RowSide, there: RowSide, bounds: Bounds | None = None) -> Reconciled:
    """All records that differ."""
    return _Reconciliation(here, there, bounds or Bounds()).run()


@dataclass(frozen=True)
class _Cells:
    """Cells with their sums on both sides."""

    depth: int
    prefixes: Hashes
    here: Hashes
    there: Hashes

    def __len__(self) -> int:
        return len(self.prefixes)

    @property
    def differences(self) -> Hashes:
        return self.here - self.there

    @property
    def row_counts(self) -> Hashes:
        return self.here[:, 0] + self.there[:, 0]

    @property
    def surpluses(self) -> npt.NDArray[np.int64]:
        """How many rows this side has more; negative: the other one."""
        return self.differences[:, 0].astype(np.int64)

    def where(self, places: npt.NDArray[np.int64]) -> _Cells:
        return _Cells(self.depth, self.prefixes[places], self.here[places], self.there[places])


class _Reconciliation:
    def __init__(self, here: RowSide, there: RowSide, bounds: Bounds) -> None:
        self._here, self._there = here, there
        self._bounds = bounds
        self._result = Reconciled()
        self._records = 0

    def run(self) -> Reconciled:
        everything = self._cells(START_DEPTH, np.arange(1 << START_DEPTH, dtype=np.uint64))
        self._records = int(everything.row_counts.sum())
        refuted = self._search(everything)
        for _ in range(_MAX_SEARCHES):
            if not refuted:
                break
            # Several records looked like a single one: their cell is cut further. The claims of other depths wait.
            depth = refuted[0].depth
            prefixes = np.unique(np.array([claim.prefix for claim in refuted if claim.depth == depth], np.uint64))
            for side in (self._here, self._there):
                side.refine(depth, prefixes)
            waiting = [claim for claim in refuted if claim.depth != depth]
            refuted = [*waiting, *self._search(self._halved(self._cells(depth, prefixes)))]
        self._result.unexplained += len(refuted)
        return self._result

    def _search(self, cells: _Cells) -> Sequence[Claim]:
        """Cuts until all is explained or may be fetched, and fetches. The claims that the rows do not bear out."""
        claims, cells = self._explained(cells)
        while len(cells) and not self._may_fetch(cells):
            if len(cells) > self._bounds.open_cells:
                self._estimate(cells, claims)
                return ()
            if cells.depth >= MAX_DEPTH:
                return self._fetch(claims, self._smallest(cells))
            more_claims, cells = self._explained(self._halved(cells))
            claims += more_claims
        return self._fetch(claims, cells)

    def _may_fetch(self, cells: _Cells) -> bool:
        """Up to the finest depth it is cheaper to halve."""
        at_end = cells.depth >= min(self._here.finest, self._there.finest)
        return at_end and cells.row_counts.sum() <= self._bounds.rows_of_cells

    def _smallest(self, cells: _Cells) -> _Cells:
        """As many cells as may be fetched. The others cannot be cut: too many rows have one key."""
        order = np.argsort(cells.row_counts, kind="stable")
        few = order[np.cumsum(cells.row_counts[order]) <= self._bounds.rows_of_cells]
        self._result.unexplained += len(cells) - len(few)
        return cells.where(few)

    def _cells(self, depth: int, prefixes: Hashes) -> _Cells:
        self._result.rounds += 1
        self._result.bytes_moved += (PREFIX_BYTES + CELL_BYTES) * len(prefixes)
        return _Cells(depth, prefixes, self._here.sums(depth, prefixes), self._there.sums(depth, prefixes))

    def _halved(self, cells: _Cells) -> _Cells:
        for side in (self._here, self._there):
            if cells.depth >= side.finest:
                side.refine(cells.depth, cells.prefixes)
        left = self._cells(cells.depth + 1, cells.prefixes << np.uint64(1))
        return _Cells(
            left.depth,
            np.concatenate([left.prefixes, left.prefixes | np.uint64(1)]),
            np.concatenate([left.here, cells.here - left.here]),
            np.concatenate([left.there, cells.there - left.there]),
        )

    def _explained(self, cells: _Cells) -> tuple[list[Claim], _Cells]:
        """The cells that differ: the claims of those that a single record explains, and the others."""
        differing = cells.where(np.flatnonzero(cells.differences.any(axis=1)))
        claims = list(claims_of(differing.depth, differing.prefixes, differing.differences))
        others = [place for place, claim in enumerate(claims) if claim is None]
        return [claim for claim in claims if claim is not None], differing.where(np.array(others, np.int64))

    def _fetch(self, claims: Sequence[Claim], cells: _Cells) -> Sequence[Claim]:
        """Names the claimed records and those of whole cells. The claims that the rows of their key do not bear out."""
        looked_up, counted = claims[: self._bounds.named], claims[self._bounds.named :]
        for claim in counted:
            self._count(claim.kind, 1)
        here, there = (
            self._rows_of(side, [claim for claim in looked_up if claim.kind is not elsewhere], cells)
            for side, elsewhere in ((self._here, Kind.MISSING), (self._there, Kind.SURPLUS))
        )
        matched = match_claims(looked_up, here, there)
        self._add(matched.differences)
        self._add(_differences_within(cells, here, there))
        if not matched.refuted:
            return ()
        nothing = cells.where(np.zeros(0, np.int64))
        keys = match_keys(
            matched.refuted, *(self._rows_of(side, matched.refuted, nothing) for side in (self._here, self._there))
        )
        self._add(keys.differences)
        return keys.refuted

    def _rows_of(self, side: RowSide, claims: Iterable[Claim], cells: _Cells) -> Sequence[Row]:
        bits = sorted({claim.key_bits for claim in claims})
        wanted = WantedRows(np.array(bits, np.uint64), cells.depth, cells.prefixes)
        rows = side.rows(wanted) if wanted.any else ()
        if side is self._there:
            self._result.bytes_moved += wanted.size + _size_of(rows)
        return rows

    def _add(self, differences: Iterable[Difference]) -> None:
        for difference in differences:
            self._result.differences.append(difference)
            self._count(difference.kind, difference.count)

    def _count(self, kind: Kind, count: int) -> None:
        self._result.counts[kind] = self._result.count(kind) + count

    def _estimate(self, cells: _Cells, claims: Sequence[Claim]) -> None:
        """What is known of too many differences: about how many, of which side at least, and some of them."""
        surpluses, result = cells.surpluses, self._result
        missing = sum(claim.kind is Kind.MISSING for claim in claims)
        result.fewer_here = missing - int(surpluses[surpluses < 0].sum())
        result.even_cells = float((surpluses == 0).mean())
        least = int(np.maximum(np.abs(surpluses), 1).sum()) + len(claims)
        few = np.flatnonzero(np.cumsum(cells.row_counts) <= self._bounds.rows_of_cells)
        before = sum(result.counts.values())
        self._fetch((), cells.where(few))
        in_few = sum(result.counts.values()) - before
        by_examples = in_few / len(few) * len(cells) + len(claims) if in_few else None
        result.estimate = before + max(least, self._likely(cells, len(claims), by_examples))

    def _likely(self, cells: _Cells, claims: int, by_examples: float | None) -> int:
        """Differences fall into cells by chance: how many there are follows from the share of cells that have none. Where nearly
        all have one, that says little more than a least number; what is in a few cells says it better."""
        every: int = 1 << cells.depth
        agreeing = every - len(cells) - claims
        if agreeing < _MIN_AGREEING_CELLS and by_examples is not None:
            return min(self._records, round(by_examples))
        return min(self._records, round(-every * math.log(max(agreeing, 0.5) / every)))


def _differences_within(cells: _Cells, here: Iterable[Row], there: Iterable[Row]) -> list[Difference]:
    within = frozenset(cells.prefixes.tolist())
    rows_here, rows_there = (
        [row for row in rows if row.key_hash >> (64 - cells.depth) in within] for rows in (here, there)
    )
    return list(compare_rows(rows_here, rows_there))


def _size_of(rows: Iterable[Row]) -> int:
    """As they travel: two hashes, how often, and each text with its length."""
    return sum(ROW_BYTES + sum(4 + len((text or "").encode()) for text in row.values) for row in rows)
