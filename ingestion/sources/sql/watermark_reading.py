"""The rows at or after a watermark, in the order of the cursor where it can be trusted, so that a reading may end before all were read.

It ends at a change of the value only, once a value above the start was read: each reading gets further, and rows that share a value stay together.
Rows of which the position has sums only, because they were too many to remember, are handed over after the others, and only where the sums have changed.
Rows without a place in the order come with the last of several readings: one that ended before would not know which of them it has not seen.
A database may order texts by other rules than Python's: such a cursor is read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, EventBatch, SourceError, SourceReading
from ingestion.sources.sql.content_checks import ContentChecks
from ingestion.sources.sql.row_sums import ContentDigest, part_of, row_hash
from ingestion.sources.sql.table import Page, SqlTable
from ingestion.sources.sql.watermark import WatermarkTracker, is_beyond_all


@dataclass
class WatermarkReading:
    """One reading from where `keeper` starts. `is_ordered`: the database orders the cursor's values as Python does. `checks`: what earlier readings of
    the same process know of the rows that only their content tells apart."""

    table: SqlTable
    cursor_name: str
    keeper: WatermarkTracker
    meter: BatchMeter
    is_ordered: bool
    checks: ContentChecks
    has_more: bool = False
    _previous: Any = None
    _rows_looked_at: int = 0

    def reading(self) -> SourceReading:
        return SourceReading(
            self._batches(),
            self._position,
            unusable_cursors=self.keeper.unusable_cursors,
            has_more=lambda: self.has_more,
        )

    def _position(self) -> Position:
        return self.keeper.position()

    def _batches(self) -> Iterator[EventBatch]:
        try:
            yield from self._events()
        except SourceError:
            # The table may have lost the cursor since the position was made: that says more than the database's own words.
            self.table.require_column(self.cursor_name)
            raise

    def _events(self) -> Iterator[EventBatch]:
        keeper, cursor = self.keeper, self._cursor
        at, lower = keeper.highest, keeper.read_from()
        keeper.withholds_unordered |= self._may_end
        if keeper.crowd_sums is not None:
            yield from self._in_order(cursor > at)
        else:
            yield from self._in_order(None if lower is None else cursor >= lower)
        if self._is_known_to_be_unchanged(lower):
            keeper.stay_at_start()
            return
        if keeper.crowd_sums is not None:
            yield from self._crowd(self.table.select().where(cursor >= lower, cursor <= at))
        if keeper.withholds_unordered and not self.has_more:
            yield from self._unordered(lower)
        if keeper.has_sums and not self.meter.rows and not self.has_more and keeper.start is not None:
            self.checks.note(keeper.start, self._rows_looked_at)

    def _is_known_to_be_unchanged(self, lower: Any) -> bool:
        """The database counts what it would have to hand over to be compared."""
        start = self.keeper.start
        if not self.keeper.has_sums or self.meter.rows or self.has_more or start is None or self.checks.is_due(start):
            return False
        counted = self._looking_at(self.table.select(sa.func.count()), lower)
        return self.checks.has_as_many(self.table.first_value(counted))

    def _crowd(self, statement: sa.Select[Any]) -> Iterator[EventBatch]:
        """The many rows just up to the watermark: those of the parts in which they are no longer the same."""
        keeper, looked = self.keeper, self.keeper.fork()
        for page in self._pages(statement):
            looked.cursor_index = keeper.cursor_index
            unordered = []
            for row in page.rows:
                if keeper.is_usable(row[keeper.cursor_index]):
                    looked.admit(row)
                elif keeper.admit(row):
                    unordered.append(row)
            yield from self._batch(page, unordered)
            self._rows_looked_at += len(page.rows)
        changed = keeper.crowd_parts(looked)
        for page in self._pages(statement) if changed else ():
            rows = [row for row in page.rows if part_of(row_hash(row)) in changed]
            usable = [row for row in rows if keeper.is_usable(row[keeper.cursor_index])]
            yield from self._batch(page, [row for row in usable if keeper.admit(row)])

    def _unordered(self, lower: Any) -> Iterator[EventBatch]:
        """The many rows without a place in the order, which were looked at but not handed over so far."""
        keeper, no_value = self.keeper, self.table.select().where(self._cursor.is_(None))
        for page in self._pages(no_value):
            self._rows_looked_at += len(page.rows)
            for row in page.rows:
                keeper.admit(row)
        changed = keeper.unordered_parts()
        if not changed:
            return
        has_others = keeper.unusable_cursors().rows > 0
        for page in self._pages(self._looking_at(self.table.select(), lower) if has_others else no_value):
            yield from self._batch(page, [row for row in page.rows if keeper.admit_unordered(row, changed)])

    def _looking_at(self, statement: sa.Select[Any], lower: Any) -> sa.Select[Any]:
        """All rows that a reading from `lower` on looks at."""
        return statement if lower is None else statement.where(sa.or_(self._cursor.is_(None), self._cursor >= lower))

    def _pages(self, statement: sa.Select[Any]) -> Iterator[Page]:
        for page in self.table.pages(statement):
            locate_cursor(self.keeper, self.table, page, self.cursor_name)
            yield page

    def _batch(self, page: Page, rows: Sequence[Sequence[Any]]) -> Iterator[EventBatch]:
        if rows:
            yield self._metered(batch_of(self.table, page.names, rows))

    def _metered(self, batch: EventBatch) -> EventBatch:
        self.meter.add(batch.rows, 0 if self.meter.limits.bytes is None else batch.estimated_bytes)
        return batch

    def _in_order(self, above: sa.ColumnElement[bool] | None) -> Iterator[EventBatch]:
        """Rows without a watermark come with each reading, unless they are withheld: only their content tells whether they are new."""
        cursor, end = self._cursor, self._end_by_rows()
        within = [condition for condition in (above, None if end is None else cursor <= end) if condition is not None]
        statement = self.table.select()
        if self.keeper.withholds_unordered:
            statement = statement.where(cursor.is_not(None), *within)
        elif within:
            statement = statement.where(sa.or_(sa.and_(*within), cursor.is_(None)))
        self.keeper.is_partial = self.has_more = end is not None
        yield from self._walk(statement.order_by(cursor) if self._may_end else statement)
        if end is not None and not self.is_ordered:
            # What is below the watermark in Python's order, and above it in that of the database, no later reading would find.
            self.keeper.is_partial = self.has_more = False
            yield from self._walk(self.table.select().where(cursor > end))

    def _walk(self, statement: sa.Select[Any]) -> Iterator[EventBatch]:
        for page in self._pages(statement):
            self._rows_looked_at += len(page.rows)
            rows, has_ended = self._admit(page.rows)
            for batch in self._by_age(page, rows):
                yield self._metered(batch)
            if has_ended:
                self.has_more = self.keeper.is_partial = True
                return

    def _by_age(self, page: Page, rows: Sequence[Sequence[Any]]) -> Iterator[EventBatch]:
        """Those that may have come before, then those that are new for certain."""
        for is_new in (False, True):
            chosen = [row for row in rows if self.keeper.is_new(row) is is_new]
            if chosen:
                yield batch_of(self.table, page.names, chosen, is_new=is_new)

    def _admit(self, rows: Sequence[Sequence[Any]]) -> tuple[list[Sequence[Any]], bool]:
        """Those to hand over, and whether the reading ends before the next."""
        keeper = self.keeper
        admitted: list[Sequence[Any]] = []
        is_full = self._may_end and self.meter.is_full()
        for row in rows:
            if is_full and self.is_ordered and keeper.can_end_before(row):
                return admitted, True
            self._watch_order(row[keeper.cursor_index])
            if keeper.admit(row):
                admitted.append(row)
        return admitted, False

    def _watch_order(self, value: Any) -> None:
        """A column of SQLite may have an order of its own: after a value that is less than the one before, everything is read."""
        if value is None or is_beyond_all(value):
            return
        if type(value) is type(self._previous) and value < self._previous:
            self.is_ordered = False
        self._previous = value

    def _end_by_rows(self) -> Any:
        """The value up to which there are about as many rows as the limit says; None: all are to be read."""
        rows, highest = self.meter.limits.rows, self.keeper.highest
        if rows is None or not self._may_end:
            return None
        above = self._cursor.is_not(None) if highest is None else self._cursor > highest
        value = self.table.first_value(
            self.table.select(self._cursor).where(above).order_by(self._cursor).offset(rows - 1).limit(1)
        )
        # Fewer are there up to `upto`: nothing is left to read after them.
        return value if self.keeper.is_usable(value) and not self.keeper.is_after_upto(value) else None

    @property
    def _may_end(self) -> bool:
        return self.is_ordered and not self.meter.limits.is_unlimited

    @property
    def _cursor(self) -> sa.ColumnClause[Any]:
        return sa.column(self.cursor_name)


def admitted_batches(
    table: SqlTable, statement: sa.Select[Any], keeper: WatermarkTracker | ContentDigest, cursor_name: str | None
) -> Iterator[EventBatch]:
    """All rows of the statement that were not handed over before."""
    for page in table.pages(statement):
        if isinstance(keeper, WatermarkTracker):
            locate_cursor(keeper, table, page, str(cursor_name))
        rows = [row for row in page.rows if keeper.admit(row)]
        if rows:
            yield batch_of(table, page.names, rows)


def locate_cursor(keeper: WatermarkTracker, table: SqlTable, page: Page, cursor_name: str) -> None:
    """Raises UnknownColumn, or SourceError where `select *` leaves it out."""
    if cursor_name not in page.names:
        table.require_column(cursor_name)
        raise SourceError(
            f"{table.display_name} has the cursor column `{cursor_name}`, but does not show it to `select *`. Make it visible, or choose another cursor."
        )
    keeper.cursor_index = page.names.index(cursor_name)


def batch_of(
    table: SqlTable, names: Sequence[str], rows: Sequence[Sequence[Any]], *, is_new: bool = False
) -> EventBatch:
    """The database is asked for the types once there are rows."""
    types = table.schema.types
    schema = Schema.of({name: types[name] for name in names if name in types})
    return EventBatch.of(Chunk(dict(zip(names, zip(*rows, strict=True), strict=True))), schema, is_new=is_new)
