"""Any database that SQLAlchemy reaches: a snapshot is one statement, the changes are the rows at or after a watermark, which are upserts.

Deleted rows are not seen by a watermark. A transaction that commits late with an early watermark is, within `overlap_s`.
The database is asked for the table's columns when rows come, not for each look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits, BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import SourceConfig, SourceReading
from ingestion.sources.sql.content_checks import ContentChecks
from ingestion.sources.sql.key_ranges import KeyRanges, has_splittable_key, start_of_changes
from ingestion.sources.sql.row_sums import ContentDigest
from ingestion.sources.sql.table import SqlTable
from ingestion.sources.sql.watermark import WatermarkTracker, decode_value
from ingestion.sources.sql.watermark_reading import WatermarkReading, admitted_batches


class SqlSource:
    def __init__(self, config: SourceConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._table = SqlTable(config)
        self._checks = ContentChecks(clock)

    def schema(self) -> Schema:
        return self._table.schema

    def snapshot(
        self,
        *,
        upto: datetime | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
        after: Position | None = None,
        limits: BatchLimits = UNLIMITED,
    ) -> SourceReading:
        if after is not None or not (limits.is_unlimited or only):
            ranges = self._ranges(upto, after, limits)
            if ranges is not None:
                return ranges
        schema, cursor = self._table.schema, self._config.cursor_column
        schema.require(only or (), self._table.display_name)
        chosen = [
            sa.column(name).in_([_parse_literal(text, schema.types[name]) for text in values])
            for name, values in (only or {}).items()
        ]
        statement = self._table.select().where(*chosen)
        reading = self._whole(statement, ContentDigest(None) if cursor is None else self._tracker(cursor, None, upto))
        return replace(reading, total=lambda: self._table.count_if_quick(statement))

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading:
        cursor = self._config.cursor_column
        if cursor is None:
            return self._whole(self._table.select(), ContentDigest(position))
        keeper = self._tracker(cursor, position, upto)
        is_ordered = not limits.is_unlimited and self._is_ordered(cursor, keeper.highest)
        meter = BatchMeter(limits, self._clock)
        return WatermarkReading(self._table, cursor, keeper, meter, is_ordered, self._checks).reading()

    def _ranges(self, upto: datetime | None, after: Position | None, limits: BatchLimits) -> SourceReading | None:
        """The next range of keys; None: this table is read in one piece."""
        config, cursor = self._config, self._config.cursor_column
        if after is None and not has_splittable_key(self._table, config.key_columns):
            return None
        ranges = KeyRanges(self._table, config.key_columns, cursor, config.chunk_rows)
        meter = BatchMeter(limits, self._clock)
        if cursor is None:
            changes: Position = {"rows": 0, "digest": "0"} if after is None else after["changes"]
            return ranges.reading(ContentDigest(None, changes["rows"], int(changes["digest"], 16)), after, meter)
        start = after["changes"] if after is not None else self._start_of_changes(cursor, upto)
        return None if start is None else ranges.reading(self._tracker(cursor, start, upto), after, meter)

    def _start_of_changes(self, cursor: str, upto: datetime | None) -> Position | None:
        return start_of_changes(self._table, cursor, self._tracker(cursor, None, upto))

    def _whole(self, statement: sa.Select[Any], keeper: WatermarkTracker | ContentDigest) -> SourceReading:
        batches = admitted_batches(self._table, statement, keeper, self._config.cursor_column)
        if isinstance(keeper, ContentDigest):
            return SourceReading(batches, keeper.position, keeper.is_unchanged)
        return SourceReading(batches, keeper.position, unusable_cursors=keeper.unusable_cursors)

    def _tracker(self, cursor: str, start: Position | None, upto: datetime | None) -> WatermarkTracker:
        watermark = None if start is None else decode_value(start["watermark"])
        is_timed = isinstance(watermark, str | date) or (watermark is None and self._type_of(cursor) in _TIMED)
        return WatermarkTracker(0, is_timed, start, upto, timedelta(seconds=self._config.overlap_s))

    def _is_ordered(self, cursor: str, watermark: Any) -> bool:
        if watermark is None:
            return self._type_of(cursor) != "string" or self._table.is_file
        return not isinstance(watermark, str) or self._table.is_file

    def _type_of(self, column: str) -> str:
        self._table.require_column(column)
        return self._table.schema.types[column]


_TIMED = ("timestamp", "date", "string")
"""Columns whose values are instants: a text that is none is no watermark."""


def _parse_literal(text: str, type_: str) -> object:
    if type_ == "date":
        return date.fromisoformat(text)
    return int(text) if type_ in ("int", "long", "double") or type_.startswith("decimal") else text
