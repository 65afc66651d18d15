"""What becomes of each row of a small batch, decided by the rule itself (`ingestion.domain.accounting.fates_of`), and where each applied row goes.

`row_fates` is its twin for batches that Spark judges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.domain.accounting import Event, RowCounts, RowFate, fates_of
from ingestion.domain.write_races import WrittenSince
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.file_groups.record_locations import kept_partition_column
from ingestion.spark.file_groups.stored_rows import LOCATION
from ingestion.spark.loading.staging import SEQUENCE_COLUMN

Row = Mapping[str, Any]
_NAN = "nan"
"""In place of NaN, which is the same as itself here."""


class StoredRow(NamedTuple):
    """`instant`: of the commit that wrote it."""

    key: str
    group: FileGroup
    instant: str
    row: Row


@dataclass(frozen=True)
class Batch:
    """Rows as read, in order, in the table's types and as plain values (`plain_rows`); `keys`: of each as Hudi writes it; `arriving`: their columns."""

    rows: Sequence[Row]
    keys: Sequence[str]
    arriving: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """`rows`: what is to be written. `moved`: how many keys go to another partition, each of which is removed from where it was.

    `doubled`: keys that the table holds more than once; nothing may be written then.
    """

    counts: RowCounts
    rows: tuple[PlacedRow, ...]
    moved: int
    doubled: tuple[str, ...] = ()


def judge(
    batch: Batch,
    stored_rows: Sequence[StoredRow],
    table: TableSpec,
    *,
    read: int,
    errors: int,
    since: WrittenSince | None = None,
) -> Judged:
    """`stored_rows`: those of the table that have the batch's keys; of a key that is there twice the newest counts. Those written `since` the batch was read stand, unless the batch
    has a greater reference key."""
    stored = {row.key: row for row in sorted(stored_rows, key=lambda row: row.instant)}
    held = Counter(row.key for row in stored_rows)
    batch = _where_stored(batch, stored, table)
    fates = fates_of(
        (_event(key, row, batch.arriving, table) for key, row in zip(batch.keys, batch.rows, strict=True)),
        {key: _event(key, row.row, batch.arriving, table) for key, row in stored.items()},
        set() if since is None else {row.key for row in stored_rows if since.includes(row.instant)},
    )
    applied = [place for place, fate in enumerate(fates) if fate is RowFate.APPLIED]
    rows, moved = [], 0
    for place in applied:
        written = list(_placed(batch.keys[place], batch.rows[place], stored.get(batch.keys[place]), table))
        rows += written
        moved += len(written) - 1
    counts = RowCounts.of(fates) + RowCounts(read=read - len(fates), errors=errors)
    return Judged(counts, tuple(rows), moved, tuple(key for key, times in held.items() if times > 1))


def plain_rows(rows: pa.Table) -> list[Row]:
    """Rows by column as values that compare and that Avro takes: dates as days, timestamps as microseconds since 1970."""
    return [*_plain(rows).to_pylist()]


def stored_rows_of(rows: pa.Table) -> list[StoredRow]:
    """From what `read_stored_rows` returns."""
    located = zip(*(rows[name].to_pylist() for name in LOCATION.names), strict=True)
    values = plain_rows(rows.drop_columns(LOCATION.names))
    return [
        StoredRow(key, FileGroup(partition, file_id), instant, row)
        for (key, partition, instant, file_id), row in zip(located, values, strict=True)
    ]


def with_kept_partition(row: Row, stored: StoredRow | None, table: TableSpec) -> Row:
    """Where keys stay, with the partition value of the stored row."""
    column = kept_partition_column(table)
    if column is None or stored is None or stored.row[column] is None:
        return row
    return {**row, column: stored.row[column]}


def partition_path(row: Row, table: TableSpec) -> str:
    return "" if table.partition_column is None else f"{table.partition_column}={row[table.partition_column]}"


def _where_stored(batch: Batch, stored: Mapping[str, StoredRow], table: TableSpec) -> Batch:
    rows = zip(batch.keys, batch.rows, strict=True)
    return replace(batch, rows=[with_kept_partition(row, stored.get(key), table) for key, row in rows])


def _placed(key: str, row: Row, stored: StoredRow | None, table: TableSpec) -> Iterator[PlacedRow]:
    """A column that the batch lacks keeps its value."""
    partition = partition_path(row, table)
    if stored is None:
        yield PlacedRow(key, partition, None, row)
        return
    whole = {**stored.row, **row}
    if stored.group.partition == partition:
        yield PlacedRow(stored.key, partition, stored.group.file_id, whole)
    else:
        yield PlacedRow.removed(stored.key, stored.group)
        yield PlacedRow(stored.key, partition, None, whole)


def _event(key: str, row: Row, arriving: Sequence[str], table: TableSpec) -> Event:
    reference = None if table.reference_key is None else _orderable(row[table.reference_key])
    return Event(key, reference, tuple(_comparable(row[name]) for name in arriving))


def _orderable(value: Any) -> Any:
    """NaN is greater than every number."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


def _comparable(value: Any) -> Any:
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _plain(rows: pa.Table) -> pa.Table:
    columns = {name: _plain_column(rows[name]) for name in rows.column_names if name != SEQUENCE_COLUMN}
    return pa.table(columns)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date(column.type):
        return column.cast(pa.int32())
    return pc.cast(column, pa.int64()) if pa.types.is_timestamp(column.type) else column
