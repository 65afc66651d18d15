"""A snapshot in ranges of the record key, each read for a commit of its own; a later process goes on after the last one.

The database compares the keys, in its own order: a range holds all rows that it takes for equal, so that no key is in two of them. It is read in steps,
each of as many rows as the last one says that there is time and memory for, and ends behind the one that has reached a limit. Rows whose key has a
null come with the first range. What changes meanwhile is found by the look that follows: the changes begin at the watermark from before the first range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sa

from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import EventBatch, SourceReading, UnusableCursors
from ingestion.sources.sql.row_sums import ContentDigest
from ingestion.sources.sql.table import SqlTable
from ingestion.sources.sql.watermark import WatermarkTracker, can_be_kept, decode_value, encode_value
from ingestion.sources.sql.watermark_reading import admitted_batches

_KEY_TYPES = ("int", "long", "string", "date")
"""Of which two values that the database tells apart are two keys in the lake; so are decimals. Floats and times may be rounded on the way."""


@dataclass(frozen=True)
class KeyRanges:
    """`keys`: the record key. `first_step`: of how many rows the first step of a range is, and all others at least."""

    table: SqlTable
    keys: tuple[str, ...]
    cursor: str | None
    first_step: int

    def reading(
        self, keeper: WatermarkTracker | ContentDigest, after: Position | None, meter: BatchMeter
    ) -> SourceReading:
        """The next range. `keeper` admits its rows; `after`: where the last one ended; `meter` says when it is large enough."""
        known = UnusableCursors() if after is None else _decoded_cursors(after["unusable"])
        walk = _RangeWalk(
            self, keeper, meter, None if after is None else [decode_value(each) for each in after["after"]]
        )

        def unusable() -> UnusableCursors:
            return known if isinstance(keeper, ContentDigest) else _sum(known, keeper.unusable_cursors())

        def position() -> Position:
            # Not the highest watermark that was read: rows of earlier ranges may have changed before it.
            changes = keeper.position() if isinstance(keeper, ContentDigest) else dict(keeper.start or {})
            if not walk.has_more:
                return changes
            cursors = unusable()
            return {
                "after": [encode_value(value) for value in walk.end or ()],
                "changes": changes,
                "unusable": {"rows": cursors.rows, "sample": list(cursors.sample)},
            }

        return SourceReading(
            walk.batches(),
            position,
            unusable_cursors=unusable,
            total=lambda: self.table.count_if_quick(self.table.select()) if after is None else None,
            has_more=lambda: walk.has_more,
        )

    def end_of_step(self, lower: Sequence[Any] | None, rows: int) -> Sequence[Any] | None:
        """The key of the last of so many rows after `lower`; None: no other key follows, or nothing can be asked for after this one."""
        columns = self._columns
        statement = self.table.select(*columns).where(*(column.is_not(None) for column in columns))
        if lower is not None:
            statement = statement.where(_after(columns, lower))
        statement = statement.order_by(*columns).offset(rows - 1).limit(2)
        last_rows = self.table.few_rows(statement)
        return last_rows[0] if len(last_rows) > 1 and self._can_end_a_step(last_rows[0]) else None

    def _can_end_a_step(self, key: Sequence[Any]) -> bool:
        """Not what a position does not hold, such as lengths of time and addresses of a network. And no text for a value of another type, such as
        the date `infinity`: a database does not compare it with its column. SQLite has texts for dates, and compares them as such."""
        types = self.table.schema.types
        return all(
            can_be_kept(value) and (self.table.is_file or not isinstance(value, str) or types.get(name) == "string")
            for name, value in zip(self.keys, key, strict=True)
        )

    def step(self, lower: Sequence[Any] | None, upper: Sequence[Any] | None) -> sa.Select[Any]:
        return self.table.select().where(*self._within(lower, upper))

    def _within(self, lower: Sequence[Any] | None, upper: Sequence[Any] | None) -> list[sa.ColumnElement[bool]]:
        columns = self._columns
        no_key = sa.or_(*(column.is_(None) for column in columns))
        upto = [] if upper is None else [_upto(columns, upper)]
        if lower is None:
            return [sa.or_(no_key, *upto)] if upto else []
        return [sa.not_(no_key), _after(columns, lower), *upto]

    @property
    def _columns(self) -> list[sa.ColumnClause[Any]]:
        return [sa.column(name) for name in self.keys]


@dataclass
class _RangeWalk:
    """One range, step by step. `end`: the last key so far; None: the range begins with the table, or has no end."""

    ranges: KeyRanges
    keeper: WatermarkTracker | ContentDigest
    meter: BatchMeter
    end: Sequence[Any] | None
    has_more: bool = False

    def batches(self) -> Iterator[EventBatch]:
        rows = self._size_of_step(self.ranges.first_step)
        while True:
            upper = self.ranges.end_of_step(self.end, rows)
            for batch in self._step(upper):
                self.meter.add(0, 0 if self.meter.limits.bytes is None else batch.estimated_bytes)
                yield batch
            self.end, self.has_more = upper, upper is not None
            self.meter.add(rows, 0)
            if not self.has_more or self.meter.is_full():
                return
            rows = self._size_of_step(2 * rows)

    def _step(self, upper: Sequence[Any] | None) -> Iterator[EventBatch]:
        ranges = self.ranges
        return admitted_batches(ranges.table, ranges.step(self.end, upper), self.keeper, ranges.cursor)

    def _size_of_step(self, rows: int) -> int:
        """Small steps cost a statement each, so what is left for the last one is at least the first one's."""
        fitting = self.meter.rows_that_fit()
        rows = rows if fitting is None else max(min(rows, fitting), self.ranges.first_step)
        limit = self.meter.limits.rows
        return rows if limit is None else min(rows, limit - self.meter.rows)


def has_splittable_key(table: SqlTable, keys: Sequence[str]) -> bool:
    """Do equal keys of the lake always lie in one range?"""
    types = table.schema.types
    if not keys or any(types.get(name, "") not in _KEY_TYPES and not _is_decimal(types, name) for name in keys):
        return False
    if not all(table.is_compared_as_read(name) for name in keys if types[name] == "string"):
        return False
    return not table.is_file or not _has_values_of_other_types(table, keys, table.schema)


def _has_values_of_other_types(table: SqlTable, keys: Sequence[str], schema: Schema) -> bool:
    """A column of SQLite may hold 1 and '1', which it tells apart."""
    kinds = {name: "integer" if schema.types[name] in ("int", "long") else "text" for name in keys}
    other = sa.or_(*(sa.func.typeof(sa.column(name)).not_in([kind, "null"]) for name, kind in kinds.items()))
    return table.first_value(table.select(sa.column("1", is_literal=True)).where(other).limit(1)) is not None


def start_of_changes(table: SqlTable, cursor: str, tracker: WatermarkTracker) -> Position | None:
    """The watermark before anything is read, at most `upto`. None: the greatest value of the cursor says nothing about where to go on."""
    highest = table.first_value(table.select(sa.func.max(sa.column(cursor))))
    if highest is None:
        return {"watermark": None, "seen": []}
    if not tracker.is_usable(highest):
        return None
    if tracker.is_after_upto(highest):
        if isinstance(highest, str) or tracker.upto is None:
            return None
        highest = _as_kind_of(highest, tracker.upto)
    return {"watermark": encode_value(highest), "seen": []}


def _as_kind_of(value: Any, upto: datetime) -> Any:
    if not isinstance(value, datetime):
        return upto.astimezone(UTC).date() if isinstance(value, date) else value
    return upto.astimezone(UTC) if value.tzinfo is not None else upto.astimezone(UTC).replace(tzinfo=None)


def _after(columns: Sequence[sa.ColumnClause[Any]], key: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Written out, as not every database compares tuples. The bound of the first column follows from the rest, and is what an index is used for."""
    return sa.and_(
        columns[0] >= key[0],
        sa.or_(
            *(
                sa.and_(*(columns[at] == key[at] for at in range(place)), columns[place] > key[place])
                for place in range(len(columns))
            )
        ),
    )


def _upto(columns: Sequence[sa.ColumnClause[Any]], key: Sequence[Any]) -> sa.ColumnElement[bool]:
    return sa.and_(
        columns[0] <= key[0],
        sa.or_(
            *(
                sa.and_(*(columns[at] == key[at] for at in range(place)), columns[place] < key[place])
                for place in range(len(columns))
            ),
            sa.and_(*(column == value for column, value in zip(columns, key, strict=True))),
        ),
    )


def _is_decimal(types: dict[str, str], name: str) -> bool:
    return types.get(name, "").startswith("decimal")


def _decoded_cursors(value: dict[str, Any]) -> UnusableCursors:
    return UnusableCursors(value["rows"], tuple(value["sample"]))


def _sum(known: UnusableCursors, more: UnusableCursors) -> UnusableCursors:
    return replace(more, rows=known.rows + more.rows, sample=tuple(dict.fromkeys((*known.sample, *more.sample)))[:5])
