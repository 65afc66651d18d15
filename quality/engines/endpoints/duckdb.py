"""A side in the lake or in files, read by DuckDB with no JVM: the keys are written by DuckDB and come in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import duckdb

from lakehub.catalog.metadata.tables import Files, HudiCopy
from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom.keys import NULL_PART, UnsupportedKeyType
from quality.engines.backends.duckdb_files import open_connection, open_files, parquet_table
from quality.engines.backends.duckdb_sql import error_line, quote_name
from quality.engines.endpoints.streamed import KeyBatch, RemainingTime, StreamedEndpoint
from quality.engines.scans.endpoint import FileVanished
from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.engines.scans.scan import Limits
from quality.engines.sql.measure_sql import TableExpression
from quality.engines.storage.hudi_snapshot import read_snapshot

_BATCH_ROWS = 100_000
_INSTANT_FORMAT = "'%Y-%m-%dT%H:%M:%S.%fZ'"


def open_endpoint(table: HudiCopy | Files, part: Part, columns: Sequence[str], limits: Limits) -> StreamedEndpoint:
    """Raises CannotRead where there is no such table."""
    if isinstance(table, HudiCopy):
        # Listed once, so that all the scans of an exchange see one state. Nothing is left to filter.
        listed = (
            read_snapshot(table.uri, column=part.column, value=part.value)
            if isinstance(part, OnePartition)
            else read_snapshot(table.uri)
        )
        paths = [file_slice.path for file_slice in listed.slices]
        read = _KeyReader(paths, None, columns, limits)
    else:
        read = _KeyReader(table, part if isinstance(part, OnePartition) else None, columns, limits)
    return StreamedEndpoint(columns, read.count, read.batches)


class _KeyReader:
    """The rows of one side: of files, or of the Parquet files of a Hudi table; `part` is what is left to filter."""

    def __init__(
        self, files: Files | Sequence[str], part: OnePartition | None, columns: Sequence[str], limits: Limits
    ) -> None:
        self._files = files
        self._part = part
        self._columns = columns
        self._remaining = RemainingTime(limits)

    def count(self) -> int:
        with self._rows() as rows:
            return 0 if rows is None else len(rows)

    def batches(self) -> Iterator[KeyBatch]:
        with self._rows() as rows:
            if rows is None:
                return
            written = rows.project(f"{_key_sql(rows, self._columns)} AS key")
            for batch in written.to_arrow_reader(_BATCH_ROWS):
                yield batch.column(0).cast("binary").to_pylist()

    @contextmanager
    def _rows(self) -> Iterator[duckdb.DuckDBPyRelation | None]:
        if not self._files:
            yield None
            return
        try:
            with open_connection(self._remaining.limits()) as connection, self._table(connection) as table:
                rows = connection.sql(f"SELECT * FROM {table.text}", params=dict(table.parameters))  # noqa: S608  # our own text
                yield rows if self._part is None else rows.filter(_in_partition(self._part))
        except duckdb.InterruptException as late:
            raise CannotRead("the exchange took longer than its timeout") from late
        except duckdb.IOException as gone:
            raise FileVanished(error_line(gone)) from gone
        except duckdb.Error as failed:
            raise CannotRead(f"the keys cannot be read: {error_line(failed)}") from failed

    def _table(self, connection: duckdb.DuckDBPyConnection) -> AbstractContextManager[TableExpression]:
        if isinstance(self._files, Files):
            return open_files(connection, self._files, self._remaining.limits())
        return nullcontext(parquet_table(self._files))


def _in_partition(part: OnePartition) -> duckdb.Expression:
    return duckdb.ColumnExpression(part.column) == duckdb.ConstantExpression(part.value)


def _key_sql(rows: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> str:
    kinds = {name: str(kind) for name, kind in zip(rows.columns, rows.types, strict=True)}
    return f"concat({', '.join(_part_sql(name, kinds) for name in columns)})"


def _part_sql(name: str, kinds: dict[str, str]) -> str:
    if name not in kinds:
        raise CannotRead(f"There is no column `{name}`.{did_you_mean(name, kinds)}")
    text = _value_sql(quote_name(name), kinds[name])
    if text is None:
        raise CannotRead(str(UnsupportedKeyType(name, kinds[name])))
    return f"CASE WHEN {quote_name(name)} IS NULL THEN '{NULL_PART}' ELSE concat(strlen({text}), ':', {text}, ',') END"


def _value_sql(column: str, kind: str) -> str | None:
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
