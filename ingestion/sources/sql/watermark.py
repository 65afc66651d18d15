"""Following a column that grows with each change, without missing rows that share a value of it.

The next reading starts *at* the last value, not after it, because more rows may have got that value since. The position remembers the rows seen there by a short hash
of their content, so they are handed over once; where there are too many to remember, some come again and the job counts them as redelivered.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from ingestion.domain.checkpoint import Position
from ingestion.sources import UnusableCursors

MAX_REMEMBERED_HASHES = 2000
"""Hashes that a position holds at most."""
_SAMPLE_SIZE = 5


@dataclass
class WatermarkTracker:
    """One reading's bookkeeping. `cursor_index`: the cursor's place in a row; `is_timed`: its values are instants, in whatever form the source has them.

    A crowd is more rows than can be remembered from where the next reading starts: a sum over them tells whether it is still the same.
    """

    cursor_index: int
    is_timed: bool
    start: Position | None
    upto: datetime | None
    overlap: timedelta = timedelta()
    highest: Any = None
    is_partial: bool = False
    """The reading ended before all rows were looked at that have no place in the order: what is known of them is carried on."""
    _remembered_hashes: frozenset[str] = frozenset()
    _boundary_hashes: list[tuple[Any, str]] = field(default_factory=list)
    _unordered_hashes: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_REMEMBERED_HASHES))
    _digests_by_value: dict[Any, ContentDigest] = field(default_factory=dict)
    _prune_digests_at: int = 4 * MAX_REMEMBERED_HASHES
    _lower: Any = None
    _unusable: UnusableCursors = field(default_factory=UnusableCursors)
    _is_boundary_unchanged: bool = False
    _start_highest: Any = None

    def __post_init__(self) -> None:
        start = None if self.start is None else decode_value(self.start["watermark"])
        self._advance_to(None if is_beyond_all(start) else start)
        self._start_highest = self.highest
        if self.start is not None:
            self._remembered_hashes = frozenset(self.start["seen"]).union(self.start.get("carried", ()))

    def admit(self, row: Sequence[Any]) -> bool:
        """Hand the row over? Not where it is later than `upto`, or was handed over as it is."""
        value = row[self.cursor_index]
        if self.is_after_upto(value):
            return False
        digest = row_hash(row)
        if value is None:
            self._unordered_hashes.append(digest)
        elif not self.is_usable(value):
            self._unordered_hashes.append(digest)
            sample = self._unusable.sample
            if len(sample) < _SAMPLE_SIZE:
                sample = tuple(dict.fromkeys((*sample, str(value)[:40])))
            self._unusable = UnusableCursors(self._unusable.rows + 1, sample)
        else:
            self._remember(value, digest)
        return digest not in self._remembered_hashes

    def is_after_upto(self, value: Any) -> bool:
        moment = as_instant(value) if self.upto is not None and self.is_timed else None
        return moment is not None and self.upto is not None and moment > self.upto

    def is_usable(self, value: Any) -> bool:
        """Has it a place in the order of the values?"""
        if value is None or (self.is_timed and as_instant(value) is None):
            return False
        return not is_beyond_all(value) and self._is_comparable(value)

    def is_new(self, row: Sequence[Any]) -> bool:
        """Does it lie beyond all that was handed over up to the start? A row within the overlap may have come late, or come again."""
        value = row[self.cursor_index]
        return self._start_highest is not None and self.is_usable(value) and bool(value > self._start_highest)

    def can_end_before(self, row: Sequence[Any]) -> bool:
        """Could the next reading start after the rows so far? It needs a watermark above the start's, and no row left that shares it."""
        value = row[self.cursor_index]
        is_further = self.highest is not None and self.highest != self._start_highest
        return is_further and self.is_usable(value) and bool(value > self.highest) and not self.is_after_upto(value)

    def position(self) -> Position:
        whole = {name: value for name, value in self._position().items() if name != "carried"}
        if not self.is_partial:
            return whole
        known = () if self.start is None else self.start.get("carried", self.start["seen"])
        carried = sorted({*known, *self._unordered_hashes})[: 2 * MAX_REMEMBERED_HASHES]
        return whole | ({"carried": carried} if carried else {})

    def _position(self) -> Position:
        if (
            self._is_boundary_unchanged
            and self.start is not None
            and encode_value(self.highest) == self.start["watermark"]
        ):
            return {**self.start, "seen": sorted({*self.start["seen"], *self._unordered_hashes})}
        lower = self.read_from()
        near = [digest for value, digest in self._boundary_hashes if lower is None or value >= lower]
        new_position = {
            "watermark": encode_value(self.highest),
            "seen": sorted({*near[-MAX_REMEMBERED_HASHES:], *self._unordered_hashes}),
        }
        crowd = self._digest_from(lower)
        return new_position | ({"crowd": crowd.position()} if crowd.rows > MAX_REMEMBERED_HASHES else {})

    def read_from(self) -> Any:
        """The value to read from, itself included; None: from the beginning."""
        return self._lower

    def unusable_cursors(self) -> UnusableCursors:
        """The rows that were looked at so far whose cursor has a value, but none that the next reading could start from."""
        return self._unusable

    @property
    def boundary_digest(self) -> Position | None:
        """The sum over the rows from where this reading starts, where they were too many to remember."""
        return None if self.start is None else self.start.get("crowd")

    def fork(self) -> WatermarkTracker:
        """A second bookkeeping from the same start, for a look at the crowd alone."""
        return WatermarkTracker(self.cursor_index, self.is_timed, self.start, self.upto, self.overlap)

    def reuse_boundary_if_unchanged(self, looked: WatermarkTracker) -> bool:
        """Has the look at the crowd found just the rows that were handed over? Then they are remembered as before."""
        if looked._digest_from(looked.read_from()).position() != self.boundary_digest:
            return False
        self._is_boundary_unchanged = True
        self._boundary_hashes = looked._boundary_hashes + self._boundary_hashes
        for at, sum_ in looked._digests_by_value.items():
            self._digests_by_value.setdefault(at, ContentDigest(None)).merge(sum_)
        return True

    def _digest_from(self, lower: Any) -> ContentDigest:
        crowd = ContentDigest(None)
        for at, sum_ in self._digests_by_value.items():
            if at >= lower:
                crowd.merge(sum_)
        return crowd

    def _advance_to(self, value: Any) -> None:
        self.highest = value
        self._lower = floor_to_second(moved_back(value, self.overlap)) if self._has_overlap else value

    def _remember(self, value: Any, digest: str) -> None:
        if self.highest is None or value > self.highest:
            self._advance_to(value)
        if value >= self._lower:
            self._boundary_hashes.append((value, digest))
            at = floor_to_second(value) if self._has_overlap else value
            self._digests_by_value.setdefault(at, ContentDigest(None)).add(digest)
        if len(self._digests_by_value) > self._prune_digests_at:
            self._prune_digests()
        if len(self._boundary_hashes) > 4 * MAX_REMEMBERED_HASHES:
            self._boundary_hashes = sorted(self._boundary_hashes, key=lambda pair: pair[0])[-MAX_REMEMBERED_HASHES:]

    def _prune_digests(self) -> None:
        """Next at twice of what is left: an overlap of hours has more seconds than any fixed bound, and would be walked with each row."""
        self._digests_by_value = {at: sum_ for at, sum_ in self._digests_by_value.items() if at >= self._lower}
        self._prune_digests_at = max(self._prune_digests_at, 2 * len(self._digests_by_value))

    @property
    def _has_overlap(self) -> bool:
        return self.is_timed and bool(self.overlap)

    def _is_comparable(self, value: Any) -> bool:
        numbers = (int, float, Decimal)
        return (
            self.highest is None
            or type(value) is type(self.highest)
            or (isinstance(value, numbers) and isinstance(self.highest, numbers))
        )


@dataclass
class ContentDigest:
    """For a table with no cursor: everything is read, and a sum over the rows (in any order) tells whether it was all there before."""

    start: Position | None
    rows: int = 0
    total: int = 0

    def admit(self, row: Sequence[Any]) -> bool:
        self.add(row_hash(row))
        return True

    def add(self, digest: str) -> None:
        self.rows += 1
        self.total = (self.total + int(digest, 16)) % 2**64

    def merge(self, other: ContentDigest) -> None:
        self.rows += other.rows
        self.total = (self.total + other.total) % 2**64

    def position(self) -> Position:
        return {"rows": self.rows, "digest": f"{self.total:016x}"}

    def is_unchanged(self) -> bool:
        return self.start is not None and self.position() == dict(self.start)


def row_hash(row: Sequence[Any]) -> str:
    return hashlib.blake2b(repr(tuple(row)).encode(), digest_size=8).hexdigest()


def as_instant(value: Any) -> datetime | None:
    """An instant in UTC from what databases call a time; None where it is none."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def moved_back(value: Any, by: timedelta) -> Any:
    """`value` moved back, in its own form: a text stays comparable as text because it is cut to whole seconds."""
    if isinstance(value, str):
        moment = as_instant(value)
        return (
            value
            if moment is None
            else f"{datetime.fromisoformat(value).replace(tzinfo=None) - by:%Y-%m-%d{value[10:11] or ' '}%H:%M:%S}"
        )
    return value - by if isinstance(value, datetime | date) else value


def floor_to_second(value: Any) -> Any:
    """The second that a time lies in, in its own form. A text is cut before its fraction and its offset, so it sorts no later."""
    if isinstance(value, str):
        return value[:19]
    return value.replace(microsecond=0) if isinstance(value, datetime) else value


def is_beyond_all(value: Any) -> bool:
    """NaN and infinity: as a watermark nothing could ever be greater, so no change would be read again."""
    if isinstance(value, Decimal):
        return value.is_nan() or value == Decimal("Infinity")
    return isinstance(value, float) and (math.isnan(value) or value == math.inf)


def encode_value(value: Any) -> dict[str, str] | None:
    """A watermark as JSON that keeps its type."""
    if value is None:
        return None
    if isinstance(value, datetime | date):
        return {"type": type(value).__name__, "value": value.isoformat()}
    return {"type": type(value).__name__, "value": str(value)}


def can_be_kept(value: Any) -> bool:
    """Can a position hold it?"""
    return type(value).__name__ in _DECODERS


def decode_value(value: dict[str, str] | None) -> Any:
    return None if value is None else _DECODERS[value["type"]](value["value"])


_DECODERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "UUID": UUID,
}
