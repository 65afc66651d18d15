"""The rows of a part of a table as DuckDB reads them, and values in the texts of `quality.domain.bloom.keys`, in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import duckdb

from lakehub.catalog.metadata.tables import Files, HudiCopy
from quality.domain.bloom.keys import NULL_PART
from quality.engines.backends.duckdb_files import open_connection, open_files, parquet_table
from quality.engines.backends.duckdb_sql import DuckDbBackend, error_line, partition_literal_sql, quote_name
from quality.engines.scans.endpoint import FileVanished
from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.engines.scans.remaining_time import RemainingTime
from quality.engines.scans.scan import Limits
from quality.engines.sql.measure_sql import TableExpression
from quality.engines.storage.hudi_snapshot import read_part

_INSTANT_FORMAT = "'%Y-%m-%dT%H:%M:%S.%fZ'"


def open_part(table: HudiCopy | Files, part: Part, limits: Limits) -> PartReader:
    """Raises CannotRead where there is no such table."""
    if isinstance(table, HudiCopy):
        # Listed once, so that all the scans of an exchange see one state. Nothing is left to filter.
        listed = read_part(table.uri, part)
        rest = part if isinstance(part, OnePartition) and part.form is not None else None
        return PartReader([file_slice.path for file_slice in listed.slices], rest, limits)
    return PartReader(table, part if isinstance(part, OnePartition) else None, limits)


class PartReader:
    """The rows of one side: of files, or of the Parquet files of a Hudi table; `part` is what is left to filter."""

    def __init__(self, files: Files | Sequence[str], part: OnePartition | None, limits: Limits) -> None:
        self._files = files
        self._part = part
        self._remaining = RemainingTime(limits)

    @contextmanager
    def rows(self) -> Iterator[duckdb.DuckDBPyRelation | None]:
        """None: there are no files. Raises CannotRead, also for what fails while the rows are used."""
        if not self._files:
            yield None
            return
        try:
            with open_connection(self._remaining.limits()) as connection, self._table(connection) as table:
                rows = connection.sql(f"SELECT * FROM {table.text}", params=dict(table.parameters))  # noqa: S608  # our own text
                if self._part is not None:
                    rows = rows.filter(
                        partition_literal_sql(self._part, DuckDbBackend(connection).source(table).columns)
                    )
                yield rows
        except duckdb.InterruptException as late:
            raise CannotRead("the exchange took longer than its timeout") from late
        except duckdb.IOException as gone:
            raise FileVanished(error_line(gone)) from gone
        except duckdb.Error as failed:
            raise CannotRead(f"the rows cannot be read: {error_line(failed)}") from failed

    def _table(self, connection: duckdb.DuckDBPyConnection) -> AbstractContextManager[TableExpression]:
        if isinstance(self._files, Files):
            return open_files(connection, self._files, self._remaining.limits())
        return nullcontext(parquet_table(self._files))


def part_sql(name: str, text: str) -> str:
    """A column as a part of a key, by the SQL of its text."""
    return f"CASE WHEN {quote_name(name)} IS NULL THEN '{NULL_PART}' ELSE concat(strlen({text}), ':', {text}, ',') END"


def value_sql(column: str, kind: str) -> str | None:
    """A value as `quality.domain.bloom.keys` writes it; None of a type that is no key."""
    kind = kind.strip('"')
    if kind == "VARCHAR":
        return column
    if (
        kind in ("BOOLEAN", "DATE", "UUID", "NULL", "INTEGER", "UINTEGER")
        or kind.endswith("INT")
        or kind.startswith("ENUM")
    ):
        return f"{column}::VARCHAR"
    if kind.startswith("DECIMAL"):
        return f"{column}::VARCHAR" if kind.endswith(",0)") else f"rtrim(rtrim({column}::VARCHAR, '0'), '.')"
    if kind.startswith("TIMESTAMP"):
        zoned = "TZ" in kind or "TIME ZONE" in kind
        return f"strftime({column}::{'TIMESTAMPTZ' if zoned else 'TIMESTAMP'}, {_INSTANT_FORMAT})"
    return f"lower(hex({column}))" if kind == "BLOB" else None
