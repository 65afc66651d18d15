"""A side in the lake or in files, read by DuckDB with no JVM: the keys are written by DuckDB and come in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import duckdb

from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom_keys import NULL, NoKey
from quality.engines.duck import cause, quoted
from quality.engines.duckdb import connected
from quality.engines.files import opened, parquet
from quality.engines.scan import CannotRead, Files, HudiCopy, Limits, One, Part, Target
from quality.engines.select import Table
from quality.engines.slices import snapshot
from quality.exchanges.sides import Keys, Left, Streamed, Vanished

_BATCH = 100_000
_INSTANT = "'%Y-%m-%dT%H:%M:%S.%fZ'"


def side(target: Target, part: Part, columns: Sequence[str], limits: Limits) -> Streamed:
    """Raises CannotRead where there is no such table."""
    if isinstance(target, HudiCopy):
        # Listed once, so that all the scans of an exchange see one state. Nothing is left to filter.
        listed = (
            snapshot(target.uri, column=part.column, value=part.value)
            if isinstance(part, One)
            else snapshot(target.uri)
        )
        paths = [one.path for one in listed.slices]
        read = _Read(paths, None, columns, limits)
    elif isinstance(target, Files):
        read = _Read(target, part if isinstance(part, One) else None, columns, limits)
    else:
        raise CannotRead("DuckDB reads Hudi tables and files; for a table of a database choose engine=sqlalchemy.")
    return Streamed(columns, read.count, read.batches)


class _Read:
    """The rows of one side: of files, or of the Parquet files of a Hudi table; `part` is what is left to filter."""

    def __init__(self, files: Files | Sequence[str], part: One | None, columns: Sequence[str], limits: Limits) -> None:
        self._files = files
        self._part = part
        self._columns = columns
        self._left = Left(limits)

    def count(self) -> int:
        with self._rows() as rows:
            return 0 if rows is None else len(rows)

    def batches(self) -> Iterator[Keys]:
        with self._rows() as rows:
            if rows is None:
                return
            written = rows.project(f"{_key(rows, self._columns)} AS key")
            for batch in written.to_arrow_reader(_BATCH):
                yield batch.column(0).cast("binary").to_pylist()

    @contextmanager
    def _rows(self) -> Iterator[duckdb.DuckDBPyRelation | None]:
        if not self._files:
            yield None
            return
        try:
            with connected(self._left.limits()) as connection, self._table(connection) as table:
                rows = connection.sql(f"SELECT * FROM {table.text}", params=dict(table.parameters))  # noqa: S608  # our own text
                yield rows if self._part is None else rows.filter(_is_in(self._part))
        except duckdb.InterruptException as late:
            raise CannotRead("the exchange took longer than its timeout") from late
        except duckdb.IOException as gone:
            raise Vanished(cause(gone)) from gone
        except duckdb.Error as failed:
            raise CannotRead(f"the keys cannot be read: {cause(failed)}") from failed

    def _table(self, connection: duckdb.DuckDBPyConnection) -> AbstractContextManager[Table]:
        if isinstance(self._files, Files):
            return opened(connection, self._files, self._left.limits())
        return nullcontext(parquet(self._files))


def _is_in(part: One) -> duckdb.Expression:
    return duckdb.ColumnExpression(part.column) == duckdb.ConstantExpression(part.value)


def _key(rows: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> str:
    kinds = {name: str(kind) for name, kind in zip(rows.columns, rows.types, strict=True)}
    return f"concat({', '.join(_part_of(name, kinds) for name in columns)})"


def _part_of(name: str, kinds: dict[str, str]) -> str:
    if name not in kinds:
        raise CannotRead(f"There is no column `{name}`.{did_you_mean(name, kinds)}")
    text = _written(quoted(name), kinds[name])
    if text is None:
        raise CannotRead(str(NoKey(name, kinds[name])))
    return f"CASE WHEN {quoted(name)} IS NULL THEN '{NULL}' ELSE concat(strlen({text}), ':', {text}, ',') END"


def _written(column: str, kind: str) -> str | None:
    """A value as `quality.domain.bloom_keys` writes it; None of a type that is no key."""
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
        return f"strftime({column}::{'TIMESTAMPTZ' if zoned else 'TIMESTAMP'}, {_INSTANT})"
    return f"lower(hex({column}))" if kind == "BLOB" else None
