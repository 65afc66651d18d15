"""The rows of an error table, newest first, without a JVM: hudi-rs lists its files, DuckDB chooses rows, Arrow reads their raw texts.

Bounded in time, memory and length: a rejected row may be megabytes long, and a table may hold millions of them.
"""
# ruff: noqa: S608  # SQL is put together from our own words; values are bound

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from ingestion.lake.raw_texts import RawText, RowPlace, read_raw_texts
from ingestion.lake.table_files import query_files, read_files
from lakehub.kernel.errors import NotFound, Refused

MAX_ROWS = 200
"""Of one page."""
MAX_GROUPS = 50
MAX_SHOWN = 2_000
"""Characters of a raw row in a list."""
MAX_RAW = 5_000_000
"""Characters of a raw row that is asked for by itself."""
MAX_REASON = 500
_MAX_CURSOR_DIGITS = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TABLE = (
    "read_parquet($files, union_by_name = true, hive_partitioning = false, filename = true, file_row_number = true)"
)
_BAD_TYPE = ", which is no "
_BAD_NAME = ": a partition's name "
_KIND = f"""CASE
  WHEN reason IS NULL THEN ''
  WHEN contains(reason, '{_BAD_TYPE}')
  THEN 'not a valid ' || left(split_part(reason, '{_BAD_TYPE}', -1), {MAX_REASON})
  WHEN contains(reason, '{_BAD_NAME.replace("'", "''")}') THEN 'not a valid partition name'
  WHEN ends_with(reason, 'is null, but it is a key') THEN 'null in a key'
  WHEN ends_with(reason, 'is no column of the source''s schema') THEN 'not a column of the source''s schema'
  ELSE regexp_replace(left(reason, {MAX_REASON}), '[0-9][0-9,]*', 'N', 'g') END"""
"""The reason without the value: `amount` is 0.125 (float), which is no decimal(12,2) -> not a valid decimal(12,2)."""


@dataclass(frozen=True)
class ErrorFilters:
    """Empty: all. `reason` is a part of the reason, in any case; `run` is the key of a run."""

    column: str = ""
    reason: str = ""
    run: str = ""


@dataclass(frozen=True)
class ErrorCursor:
    """The last row of a page; the next page begins after it."""

    read_at_us: int
    error_key: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises Refused."""
        instant, dash, key = text.partition("-")
        if not (dash and key and instant.isascii() and instant.isdigit() and len(instant) <= _MAX_CURSOR_DIGITS):
            raise Refused.for_fields({"cursor": "This is not a cursor. Take `next_cursor` of the page before."})
        return cls(int(instant), key)

    def __str__(self) -> str:
        return f"{self.read_at_us}-{self.error_key}"


@dataclass(frozen=True)
class ErrorRow:
    """`raw` is cut; `raw_length` counts the characters of all of it. `run` is the key of the run that read the row last."""

    error_key: str
    column: str
    reason: str
    raw: str
    raw_length: int
    source: str
    run: str
    read_at: datetime

    @property
    def cursor(self) -> ErrorCursor:
        return ErrorCursor((self.read_at - _EPOCH) // timedelta(microseconds=1), self.error_key)

    @property
    def is_cut(self) -> bool:
        return len(self.raw) < self.raw_length


@dataclass(frozen=True)
class ErrorPage:
    rows: tuple[ErrorRow, ...] = ()
    next_cursor: str = ""
    """Empty: there is no further row."""


@dataclass(frozen=True)
class ErrorGroup:
    """Rows that one column rejects for one kind of reason, such as `not a valid decimal(12,2)`."""

    column: str
    kind: str
    rows: int
    newest_at: datetime


@dataclass(frozen=True)
class ErrorCounts:
    """The largest groups, and how many groups and rows there are in all."""

    groups: tuple[ErrorGroup, ...] = ()
    group_count: int = 0
    rows: int = 0


def read_error_page(
    uri: str, filters: ErrorFilters, *, after: ErrorCursor | None = None, limit: int = MAX_ROWS
) -> ErrorPage:
    """At most `limit` rows after the cursor, newest first; none where there is no table yet. Raises Refused and Busy."""
    limit = max(1, min(limit, MAX_ROWS))
    conditions, values = _conditions(filters)
    if after is not None:
        conditions.append("(epoch_us(read_at), error_key) < ($after_us, $after_key)")
        values |= {"after_us": after.read_at_us, "after_key": after.error_key}
    query = f"{_select_rows(conditions)} ORDER BY read_at DESC, error_key DESC LIMIT {limit + 1:d}"
    rows = _read_rows(uri, query, values, MAX_SHOWN, limit)
    return ErrorPage(tuple(rows[:limit]), str(rows[limit - 1].cursor) if len(rows) > limit else "")


def read_error_row(uri: str, error_key: str) -> ErrorRow:
    """One row with its raw text, up to MAX_RAW characters. Raises NotFound, Refused and Busy."""
    query = f"{_select_rows(['error_key = $error_key'])} LIMIT 1"
    rows = _read_rows(uri, query, {"error_key": error_key}, MAX_RAW, 1)
    if not rows:
        raise NotFound(f"The error table has no row `{error_key[:100]}`.")
    return rows[0]


def count_errors(uri: str, filters: ErrorFilters | None = None, *, limit: int = MAX_GROUPS) -> ErrorCounts:
    """By column and kind of reason, the largest groups first. Raises Refused and Busy."""
    conditions, values = _conditions(filters or ErrorFilters())
    query = f"""
        SELECT coalesce("column", '') AS in_column, {_KIND} AS kind, count(*) AS n,
          epoch_us(max(read_at)) AS newest, count(*) OVER () AS groups, sum(count(*)) OVER () AS total
        FROM {_TABLE} {_where(conditions)} GROUP BY in_column, kind
        ORDER BY n DESC, in_column, kind LIMIT {max(1, min(limit, MAX_GROUPS)):d}"""
    groups = read_files(uri, lambda files: query_files(query, files, values))
    if not groups:
        return ErrorCounts()
    return ErrorCounts(
        tuple(ErrorGroup(column, kind, rows, _instant(newest)) for column, kind, rows, newest, *_ in groups),
        int(groups[0][4]),
        int(groups[0][5]),
    )


def _select_rows(conditions: Sequence[str]) -> str:
    """Without `raw`: DuckDB reads 2,048 rows at a time, which may be gigabytes of it."""
    return f"""
        SELECT error_key, coalesce("column", ''), left(coalesce(reason, ''), {MAX_REASON:d}), coalesce(source, ''),
          coalesce(run, ''), epoch_us(read_at), filename, file_row_number
        FROM {_TABLE} {_where(conditions)}"""


def _conditions(filters: ErrorFilters) -> tuple[list[str], dict[str, Any]]:
    conditions, values = [], {}
    if filters.column:
        conditions.append('"column" = $column')
        values["column"] = filters.column
    if filters.reason:
        conditions.append("contains(lower(reason), lower($reason))")
        values["reason"] = filters.reason
    if filters.run:
        conditions.append("run = $run")
        values["run"] = filters.run
    return conditions, values


def _where(conditions: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def _read_rows(uri: str, query: str, values: dict[str, Any], max_length: int, limit: int) -> list[ErrorRow]:
    """The raw text is read of the first `limit` rows only."""

    def read(files: list[str]) -> list[ErrorRow]:
        chosen = query_files(query, files, values)
        places = [RowPlace(file, number) for *_, file, number in chosen]
        texts = read_raw_texts(places[:limit], max_length)
        return [_error_row(row, texts.get(place, RawText())) for row, place in zip(chosen, places, strict=True)]

    return read_files(uri, read)


def _error_row(chosen: tuple[Any, ...], raw: RawText) -> ErrorRow:
    key, column, reason, source, run, read_at_us, *_ = chosen
    return ErrorRow(key, column, reason, raw.text, raw.length, source, run, _instant(read_at_us))


def _instant(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
