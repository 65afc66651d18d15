"""A side in the lake or in files, read by DuckDB with no JVM: the keys are written by DuckDB and come in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb

from lakehub.catalog.metadata.tables import Files, HudiCopy
from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom.keys import UnsupportedKeyType
from quality.engines.backends.duckdb_parts import PartReader, open_part, part_sql, value_sql
from quality.engines.backends.duckdb_sql import quote_name
from quality.engines.endpoints.streamed import KeyBatch, StreamedEndpoint
from quality.engines.scans.parts import CannotRead, Part
from quality.engines.scans.scan import Limits

_BATCH_ROWS = 100_000


def open_endpoint(table: HudiCopy | Files, part: Part, columns: Sequence[str], limits: Limits) -> StreamedEndpoint:
    """Raises CannotRead where there is no such table."""
    read = _KeyReader(open_part(table, part, limits), columns)
    return StreamedEndpoint(columns, read.count, read.batches, threads=limits.threads)


class _KeyReader:
    def __init__(self, part: PartReader, columns: Sequence[str]) -> None:
        self._part = part
        self._columns = columns

    def count(self) -> int:
        with self._part.rows() as rows:
            return 0 if rows is None else len(rows)

    def batches(self) -> Iterator[KeyBatch]:
        with self._part.rows() as rows:
            if rows is None:
                return
            key = _key_sql(rows, self._columns)
            whole = " AND ".join(f"{quote_name(name)} IS NOT NULL" for name in self._columns)
            written = rows.filter(whole).project(f"{key} AS key")
            for batch in written.to_arrow_reader(_BATCH_ROWS):
                yield batch.column(0).cast("binary").to_numpy(zero_copy_only=False).tolist()


def _key_sql(rows: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> str:
    kinds = {name: str(kind) for name, kind in zip(rows.columns, rows.types, strict=True)}
    return f"concat({', '.join(_part_sql(name, kinds) for name in columns)})"


def _part_sql(name: str, kinds: dict[str, str]) -> str:
    if name not in kinds:
        raise CannotRead(f"There is no column `{name}`.{did_you_mean(name, kinds)}")
    text = value_sql(quote_name(name), kinds[name])
    if text is None:
        raise CannotRead(str(UnsupportedKeyType(name, kinds[name])))
    return part_sql(name, text)
