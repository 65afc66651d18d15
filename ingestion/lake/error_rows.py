"""The rows of an error table, newest first, without a JVM: hudi-rs lists its files, DuckDB chooses rows, Arrow reads their raw texts.

Bounded in time, memory and length: a rejected row may be megabytes long, and a table may hold millions of them.
"""
# ruff: noqa: S608  # SQL is put together from our own words; values are bound

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from ingestion.capture.null_instead import NOTE
from ingestion.lake.files.table_files import query_files, read_files
from ingestion.lake.raw_texts import RawText, RowPlace, read_raw_texts
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

_FILES = (
    "read_parquet($files, union_by_name = true, hive_partitioning = false, filename = true, file_row_number = true)"
)
_LATER_COLUMNS = "NULL::VARCHAR AS fixed, NULL::TIMESTAMPTZ AS resolved_at, NULL::VARCHAR AS resolved_by"
"""Tables of older versions have none of them."""
_LOG = f"(SELECT * EXCLUDE (raw) FROM {_FILES} UNION ALL BY NAME SELECT {_LATER_COLUMNS} WHERE false)"
_AGAIN = f"""
  SELECT error_key, max(_hoodie_commit_time) AS newest FROM {_LOG}
  WHERE hash(error_key) IN (SELECT hash(error_key) FROM {_LOG} GROUP BY hash(error_key) HAVING count(*) > 1)
  GROUP BY error_key"""
"""Keys that were appended more than once. Few are, so hashes, which are small, name those that may be."""
_TABLE = f"""(
  SELECT * FROM {_LOG} LEFT JOIN ({_AGAIN}) USING (error_key) WHERE newest IS NULL OR newest = _hoodie_commit_time)"""
"""The error table is a log: of each row what was appended last is what holds."""
_RUN_KEY = "split_part(coalesce(run, ''), '.', 1)"
"""What follows the key is the batch of a follow run."""
_BAD_TYPE = ", which is no "
_BAD_NAME = ": a partition's name "
_KIND = f"""CASE
  WHEN reason IS NULL THEN ''
  WHEN starts_with(reason, '{NOTE}: ') THEN '{NOTE}'
  WHEN contains(reason, '{_BAD_TYPE}')
  THEN 'not a valid ' || left(split_part(reason, '{_BAD_TYPE}', -1), {MAX_REASON})
  WHEN contains(reason, '{_BAD_NAME.replace("'", "''")}') THEN 'not a valid partition name'
  WHEN ends_with(reason, 'is null, but it is a key') THEN 'null in a key'
  WHEN ends_with(reason, 'is no column of the source''s schema') THEN 'not a column of the source''s schema'
  WHEN regexp_matches(reason, '^broken message [(][a-z ]+[)]: ') THEN split_part(reason, ': ', 1)
  ELSE regexp_replace(left(reason, {MAX_REASON}), '[0-9][0-9,]*', 'N', 'g') END"""
"""The reason without the value: `amount` is 0.125 (float), which is no decimal(12,2) -> not a valid decimal(12,2)."""


class ErrorState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"
    ALL = "all"


@dataclass(frozen=True)
class ErrorFilters:
    """Empty: all. `reason` is a part of the reason, in any case; `run` is the key of a run. With `kind` the rows of one group of `count_errors`,
    whose column may be empty."""

    column: str = ""
    reason: str = ""
    run: str = ""
    state: ErrorState = ErrorState.OPEN
    kind: str | None = None
    keys: tuple[str, ...] = ()


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
    """`raw` is cut; `raw_length` counts the characters of all of it. `run` is the key of the run that read the row last, or replayed it.

    `fixed`: the values that the last replay was given for it, as JSON; empty: none. `resolved_at` None: it is rejected still.
    """

    error_key: str
    column: str
    reason: str
    raw: str
    raw_length: int
    source: str
    run: str
    read_at: datetime
    fixed: str = ""
    resolved_at: datetime | None = None
    resolved_by: str = ""

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
    query = f"{_select_rows(['error_key = $error_key'], _LOG)} ORDER BY _hoodie_commit_time DESC LIMIT 1"
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


def read_error_keys(uri: str, filters: ErrorFilters, *, limit: int) -> list[str]:
    """Of the rows that match, in the order of pages. Raises Refused and Busy."""
    conditions, values = _conditions(filters)
    query = f"SELECT error_key FROM {_TABLE} {_where(conditions)} ORDER BY read_at DESC, error_key DESC LIMIT {limit:d}"
    return [key for (key,) in read_files(uri, lambda files: query_files(query, files, values))]


def _select_rows(conditions: Sequence[str], table: str = _TABLE) -> str:
    """Without `raw`: DuckDB reads 2,048 rows at a time, which may be gigabytes of it."""
    return f"""
        SELECT error_key, coalesce("column", ''), left(coalesce(reason, ''), {MAX_REASON:d}), coalesce(source, ''),
          {_RUN_KEY}, epoch_us(read_at), coalesce(fixed, ''), epoch_us(resolved_at), coalesce(resolved_by, ''),
          filename, file_row_number
        FROM {table} {_where(conditions)}"""


def _conditions(filters: ErrorFilters) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if filters.state != ErrorState.ALL:
        conditions.append(f"resolved_at IS {'NULL' if filters.state == ErrorState.OPEN else 'NOT NULL'}")
    if filters.keys:
        conditions.append("error_key IN (SELECT unnest($keys))")
        values["keys"] = list(filters.keys)
    if filters.kind is not None:
        conditions.append(f"({_KIND}) = $kind AND coalesce(\"column\", '') = $column")
        values |= {"kind": filters.kind, "column": filters.column}
    elif filters.column:
        conditions.append('"column" = $column')
        values["column"] = filters.column
    if filters.reason:
        conditions.append("contains(lower(reason), lower($reason))")
        values["reason"] = filters.reason
    if filters.run:
        conditions.append(f"{_RUN_KEY} = $run")
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
    key, column, reason, source, run, read_at_us, fixed, resolved_at_us, resolved_by, *_ = chosen
    resolved_at = None if resolved_at_us is None else _instant(resolved_at_us)
    return ErrorRow(
        key, column, reason, raw.text, raw.length, source, run, _instant(read_at_us), fixed, resolved_at, resolved_by
    )


def _instant(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
