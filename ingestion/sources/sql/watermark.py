"""Following a column that grows with each change, without missing rows that share a value of it.

The next reading starts *at* the last value, not after it, because more rows may have got that value since. The position remembers the rows seen there by a short hash
of their content, so they are handed over once. Of more than can be remembered it has sums: where these have changed, some rows come again and the job
counts them as redelivered. So it is with the rows whose cursor has no place in the order, such as null: each reading looks at all of them.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from ingestion.domain.checkpoint import Position
from ingestion.sources import UnusableCursors
from ingestion.sources.sql.row_sums import RowSums, part_of, row_hash

MAX_REMEMBERED_HASHES = 2000
"""Hashes that a position holds at most."""
_MAX_VALUES = 1024
"""Of so many values, at most, the sums are kept by parts: an overlap of hours has more seconds."""
_SAMPLE_SIZE = 5


@dataclass
class WatermarkTracker:
    """One reading's bookkeeping. `cursor_index`: the cursor's place in a row; `is_timed`: its values are instants, in whatever form the source has them.

    A crowd is more rows than can be remembered from where the next reading starts: sums over them tell whether it is still the same. Where there are as
    many without a place in the order, the position has sums of these too, and none is handed over until `unordered_parts` has told which have changed.
    """

    cursor_index: int
    is_timed: bool
    start: Position | None
    upto: datetime | None
    overlap: timedelta = timedelta()
    highest: Any = None
    is_partial: bool = False
    """The reading ended before all rows were looked at that have no place in the order: none was handed over, and what is known of them is carried on."""
    withholds_unordered: bool = False
    """They are handed over at a second look, by `admit_unordered`: always where the position has sums of them, and where a reading may end early."""
    _remembered_hashes: frozenset[str] = frozenset()
    _boundary_hashes: list[tuple[Any, str]] = field(default_factory=list)
    _unordered_hashes: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_REMEMBERED_HASHES))
    _unordered: RowSums = field(default_factory=RowSums)
    _new_parts: set[str] = field(default_factory=set)
    _sums_by_value: dict[Any, RowSums] = field(default_factory=dict)
    _prune_sums_at: int = _MAX_VALUES
    _keeps_whole_sums: bool = False
    _lower: Any = None
    _unusable: UnusableCursors = field(default_factory=UnusableCursors)
    _is_unchanged: bool = False
    _start_highest: Any = None
    _instant_of: Any = None
    _latest_instant: datetime | None = None

    def __post_init__(self) -> None:
        start = None if self.start is None else decode_value(self.start["watermark"])
        self._advance_to(None if is_beyond_all(start) else start)
        self._start_highest = self.highest
        if self.start is not None:
            self._remembered_hashes = frozenset(self.start["seen"]).union(self.start.get("carried", ()))
        self.withholds_unordered = self.unordered_sums is not None

    def admit(self, row: Sequence[Any]) -> bool:
        """Hand the row over? Not where it is later than `upto`, or was handed over as it is."""
        value = row[self.cursor_index]
        if self.is_after_upto(value):
            return False
        digest = row_hash(row)
        if self.is_usable(value):
            self._remember(value, digest)
        else:
            self._note_unordered(digest)
            if value is not None:
                self._count_unusable(value)
            if self.withholds_unordered:
                return False
        return digest not in self._remembered_hashes

    def admit_unordered(self, row: Sequence[Any], parts: frozenset[str]) -> bool:
        """At the second look at the rows that have no place in the order: hand it over? `parts`: in which they have changed."""
        digest = row_hash(row)
        if part_of(digest) not in parts or self.is_usable(row[self.cursor_index]):
            return False
        self._note_unordered(digest)
        return digest not in self._remembered_hashes

    def _note_unordered(self, digest: str) -> None:
        self._unordered_hashes.append(digest)
        self._unordered.add(digest)
        if digest not in self._remembered_hashes:
            self._new_parts.add(part_of(digest))

    def _count_unusable(self, value: Any) -> None:
        sample = self._unusable.sample
        if len(sample) < _SAMPLE_SIZE:
            sample = tuple(dict.fromkeys((*sample, str(value)[:40])))
        self._unusable = UnusableCursors(self._unusable.rows + 1, sample)

    def is_after_upto(self, value: Any) -> bool:
        moment = self._instant(value) if self.upto is not None and self.is_timed else None
        return moment is not None and self.upto is not None and moment > self.upto

    def is_usable(self, value: Any) -> bool:
        """Has it a place in the order of the values?"""
        if value is None or ((self.is_timed or isinstance(value, str)) and self._instant(value) is None):
            return False
        return not is_beyond_all(value) and self._is_comparable(value)

    def _instant(self, value: Any) -> datetime | None:
        """Each row is asked twice, and each look reads the rows of the overlap again."""
        if value is not self._instant_of:
            self._instant_of, self._latest_instant = value, as_instant(value)
        return self._latest_instant

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
        if self._is_unchanged and self.start is not None:
            return dict(self.start)
        position = self._ordered_position()
        if self.is_partial:
            known = () if self.start is None else self.start.get("carried", self.start["seen"])
            carried, sums = {"carried": list(known)} if known else {}, self.unordered_sums
            return {**position, **carried, **({} if sums is None else {"unordered": sums})}
        seen = sorted({*position["seen"], *self._unordered_hashes})
        sums = self._unordered.position() if self._unordered.rows > MAX_REMEMBERED_HASHES else None
        return {**position, "seen": seen, **({} if sums is None else {"unordered": sums})}

    def _ordered_position(self) -> Position:
        lower = self.read_from()
        near = [digest for value, digest in sorted(self._boundary_hashes) if lower is None or value >= lower]
        crowd = self._sums_from(lower)
        position = {"watermark": encode_value(self.highest), "seen": sorted(set(near[-MAX_REMEMBERED_HASHES:]))}
        return position | ({"crowd": crowd.position()} if crowd.rows > MAX_REMEMBERED_HASHES else {})

    def stay_at_start(self) -> None:
        """It is known by other means that nothing is to be handed over: not all rows were looked at."""
        self._is_unchanged = True

    def read_from(self) -> Any:
        """The value to read from, itself included; None: from the beginning."""
        return self._lower

    def unusable_cursors(self) -> UnusableCursors:
        """The rows that were looked at so far whose cursor has a value, but none that the next reading could start from."""
        return self._unusable

    @property
    def crowd_sums(self) -> Position | None:
        """Over the rows from where this reading starts, where they were too many to remember."""
        return None if self.start is None else self.start.get("crowd")

    @property
    def unordered_sums(self) -> Position | None:
        """Over the rows without a place in the order, where they were too many to remember."""
        return None if self.start is None else self.start.get("unordered")

    @property
    def has_sums(self) -> bool:
        return self.crowd_sums is not None or self.unordered_sums is not None

    def unordered_parts(self) -> frozenset[str]:
        """In which they have changed since the start; of these parts nothing is noted any more, as they are looked at once again."""
        sums, looked_at = self.unordered_sums, self._unordered
        changed = frozenset(self._new_parts) if sums is None else looked_at.changed_parts(sums)
        self._unordered = RowSums()
        self._unordered.merge(looked_at, without=changed)
        kept = [digest for digest in self._unordered_hashes if part_of(digest) not in changed]
        self._unordered_hashes = deque(kept, maxlen=MAX_REMEMBERED_HASHES)
        return changed

    def fork(self) -> WatermarkTracker:
        """A second bookkeeping from the same start, for a look at the crowd alone."""
        return WatermarkTracker(self.cursor_index, self.is_timed, self.start, self.upto, self.overlap)

    def crowd_parts(self, looked: WatermarkTracker) -> frozenset[str]:
        """In which the crowd is no longer the one that was handed over; what is in the others is remembered as before."""
        assert self.crowd_sums is not None
        changed = looked._sums_from(looked.read_from()).changed_parts(self.crowd_sums)
        unchanged = [(value, digest) for value, digest in looked._boundary_hashes if part_of(digest) not in changed]
        self._boundary_hashes = unchanged + self._boundary_hashes
        if looked._keeps_whole_sums:
            self._keep_whole_sums()
        for at, sums in looked._sums_by_value.items():
            self._sums_at(at).merge(sums, without=changed)
        return changed

    def _sums_from(self, lower: Any) -> RowSums:
        crowd = RowSums(self._keeps_whole_sums)
        for at, sums in self._sums_by_value.items():
            if at >= lower:
                crowd.merge(sums)
        return crowd

    def _sums_at(self, value: Any) -> RowSums:
        sums = self._sums_by_value.get(value)
        if sums is None:
            sums = self._sums_by_value[value] = RowSums(self._keeps_whole_sums)
        return sums

    def _advance_to(self, value: Any) -> None:
        self.highest = value
        self._lower = floor_to_second(moved_back(value, self.overlap)) if self._has_overlap else value

    def _remember(self, value: Any, digest: str) -> None:
        if self.highest is None or value > self.highest:
            self._advance_to(value)
        if value >= self._lower:
            self._boundary_hashes.append((value, digest))
            self._sums_at(floor_to_second(value) if self._has_overlap else value).add(digest)
        if len(self._sums_by_value) > self._prune_sums_at:
            self._prune_sums()
        if len(self._boundary_hashes) > 4 * MAX_REMEMBERED_HASHES:
            # By the hashes too: in whatever order the rows are read, the same of them are remembered.
            self._boundary_hashes = sorted(self._boundary_hashes)[-MAX_REMEMBERED_HASHES:]

    def _prune_sums(self) -> None:
        """Next at twice of what is left: an overlap of hours has more seconds than any fixed bound, and would be walked with each row."""
        self._sums_by_value = {at: sums for at, sums in self._sums_by_value.items() if at >= self._lower}
        self._prune_sums_at = max(self._prune_sums_at, 2 * len(self._sums_by_value))
        if len(self._sums_by_value) > _MAX_VALUES:
            self._keep_whole_sums()

    def _keep_whole_sums(self) -> None:
        if not self._keeps_whole_sums:
            self._keeps_whole_sums = True
            self._sums_by_value = {at: sums.made_whole() for at, sums in self._sums_by_value.items()}

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


def as_instant(value: Any) -> datetime | None:
    """An instant in UTC from what databases call a time; None where it is none, or beyond the years that Python counts."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        return None


def moved_back(value: Any, by: timedelta) -> Any:
    """`value` moved back, in its own form; a date by whole days, as a part of one would leave it where it is. What cannot be is left."""
    with suppress(OverflowError):
        if isinstance(value, str):
            return _text_moved_back(value, by)
        if isinstance(value, datetime):
            return value - by
        return value - _whole_days(by) if isinstance(value, date) else value
    return value


def _text_moved_back(text: str, by: timedelta) -> str:
    """It stays comparable as text because it is cut to whole seconds."""
    form = _TEXT_FORM.fullmatch(text)
    if form is None or as_instant(text) is None:
        return text
    moment = datetime.fromisoformat(text).replace(tzinfo=None)
    moved = moment - (_whole_days(by) if form["time"] is None else by)
    is_compact = "-" not in form["date"]
    day = moved.date().isoformat().replace("-", "" if is_compact else "-")
    if form["time"] is None:
        return day
    clock = moved.time().isoformat("seconds")
    return f"{day}{form['separator']}{clock.replace(':', '') if is_compact and ':' not in form['time'] else clock}"


def _whole_days(by: timedelta) -> timedelta:
    return timedelta(days=math.ceil(by / timedelta(days=1)))


def floor_to_second(value: Any) -> Any:
    """The second that a time lies in, in its own form. A text is cut before its fraction and its offset, so it sorts no later."""
    if isinstance(value, str):
        form = _TEXT_FORM.fullmatch(value)
        return value if form is None else value[: form.end("date" if form["time"] is None else "time")]
    return value.replace(microsecond=0) if isinstance(value, datetime) else value


_TEXT_FORM = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d|\d{8})(?:(?P<separator>\D)(?P<time>\d\d(?::\d\d(?::\d\d)?|\d\d(?:\d\d)?)?).*)?",
    re.ASCII | re.DOTALL,
)
"""`2026-11-16 08:30:00.5+01:00`, `20261116T083000`, a date alone. Weeks and other forms have no overlap."""


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
