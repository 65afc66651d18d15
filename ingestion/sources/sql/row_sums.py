"""Sums over rows by a hash of their content, in whatever order they are read: equal sums say that the rows are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from ingestion.domain.checkpoint import Position

_PART_DIGITS = 2
_SUM_DIGITS = 16
ALL_PARTS = frozenset(f"{number:0{_PART_DIGITS}x}" for number in range(16**_PART_DIGITS))
"""A row belongs to the part that the first digits of its hash name."""


@dataclass(slots=True)
class ContentDigest:
    """For a table with no cursor: everything is read, and a sum over the rows (in any order) tells whether it was all there before."""

    start: Position | None
    rows: int = 0
    total: int = 0

    def admit(self, row: Sequence[object]) -> bool:
        self.add(row_hash(row))
        return True

    def add(self, digest: str) -> None:
        self.rows += 1
        self.total = (self.total + int(digest, 16)) % 2**64

    def merge(self, other: ContentDigest) -> None:
        self.rows += other.rows
        self.total = (self.total + other.total) % 2**64

    def position(self) -> Position:
        return {"rows": self.rows, "digest": f"{self.total:0{_SUM_DIGITS}x}"}

    def is_unchanged(self) -> bool:
        return self.start is not None and self.position() == dict(self.start)


@dataclass(slots=True)
class RowSums:
    """A sum for each part of the rows: where one row has changed, only the rows of its parts have to be handed over again.

    `is_whole`: one sum for all, where so many of these are kept that the parts would take too much memory.
    """

    is_whole: bool = False
    parts: dict[str, ContentDigest] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts.values())

    def add(self, digest: str) -> None:
        self._part("" if self.is_whole else part_of(digest)).add(digest)

    def merge(self, other: RowSums, *, without: frozenset[str] = frozenset()) -> None:
        """Those of whole ones stay whole."""
        for name, part in other.parts.items():
            if name not in without and without != ALL_PARTS:
                self._part("" if self.is_whole else name).merge(part)

    def made_whole(self) -> RowSums:
        whole = RowSums(is_whole=True)
        whole.merge(self)
        return whole

    def position(self) -> Position:
        whole = self.made_whole().parts.get("", ContentDigest(None)).position()
        return whole if self.is_whole else {**whole, "parts": self._part_sums()}

    def changed_parts(self, start: Position) -> frozenset[str]:
        """In which the rows are no longer those of the position; all, where it or this has one sum only."""
        known, now = start.get("parts"), self.position()
        if all(now[name] == start[name] for name in ("rows", "digest")):
            return frozenset()
        if self.is_whole or known is None:
            return ALL_PARTS
        sums = now["parts"]
        return frozenset(name for name in ALL_PARTS if _sum_at(known, name) != _sum_at(sums, name))

    def _part_sums(self) -> str:
        """One after the other: a position is written with each commit, and a list would take half as much again."""
        return "".join(
            f"{self.parts[name].total if name in self.parts else 0:0{_SUM_DIGITS}x}" for name in sorted(ALL_PARTS)
        )

    def _part(self, name: str) -> ContentDigest:
        part = self.parts.get(name)
        if part is None:
            part = self.parts[name] = ContentDigest(None)
        return part


def row_hash(row: Sequence[object]) -> str:
    """A view of bytes is shown by where it lies in memory: its bytes are taken."""
    values = tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
    return hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()


def part_of(digest: str) -> str:
    return digest[:_PART_DIGITS]


def _sum_at(sums: str, part: str) -> str:
    begin = int(part, 16) * _SUM_DIGITS
    return sums[begin : begin + _SUM_DIGITS]
