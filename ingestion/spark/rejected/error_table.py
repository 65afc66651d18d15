"""A dataset's error table: a log of the rows that did not fit, each with the reason.

Rows are appended and never looked up, so a batch costs by its own errors whatever the table holds. A row is known by `error_key`, and the row that was
appended last says what became of it: rejected, rejected again for another reason, or resolved (ingestion.lake.error_rows reads it so).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import direct_write
from ingestion.spark.file_groups.java_client import has_client
from ingestion.spark.rejected.repeated_rows import COMMITS_COMPARED, repeats_rows, sketch_of, stage_unknown_rows
from ingestion.spark.tables import avro_schema, hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.timeline import Timeline, open_storage

STAGED_COLUMNS = ("error_key", "column", "reason", "raw", "source", "fixed")
"""What a batch says of each row. `fixed`: the values that a replay was given for it, as JSON; null where it was read from the source."""
_FACT_COLUMNS = {"run": "string", "read_at": "timestamp", "table_at": "string"}
_RESOLUTION_COLUMNS = {"resolved_at": "timestamp", "resolved_by": "string"}
_TYPES = {**dict.fromkeys(STAGED_COLUMNS, "string"), **_FACT_COLUMNS, **_RESOLUTION_COLUMNS}
SCHEMA = Schema(tuple(SchemaColumn(name, type_) for name, type_ in _TYPES.items()))
_MAX_DIRECT_ROWS, _MAX_DIRECT_BYTES = 10_000, 16 * 1024 * 1024
"""Rows of a batch, and their bytes in memory, that this process appends without Spark."""
_ROWS_AT_A_TIME = 64
_ROWS_PER_FILE = 200_000
_OPTIONS = {
    "hoodie.metadata.enable": "false",
    # A commit goes on in a file below this size, and reads no more than that; larger ones are left alone.
    "hoodie.parquet.small.file.limit": str(1024 * 1024),
    # Sorting would be a Spark job more, and nobody looks a key up.
    "hoodie.bulkinsert.sort.mode": "NONE",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class ErrorFacts:
    """What all rows of a batch share. `run`: the run that read them; `table_at`: the newest completion of the table when it began to read,
    empty where it had the table to itself. `resolved_at` and `resolved_by`: of a replay that applied them."""

    run: str
    read_at: datetime
    table_at: str = ""
    resolved_at: datetime | None = None
    resolved_by: str | None = None


def error_table_spec(table: TableSpec) -> TableSpec:
    """A Hudi table too, whose key may occur several times: see above."""
    return TableSpec(
        name=f"{table.name}_errors",
        uri=table.error_uri,
        error_uri=table.error_uri,
        record_key=("error_key",),
        retention_hours=table.retention_hours,
        change_log=False,
    )


def append_errors(
    spark: SparkSession,
    table: TableSpec,
    staged_uri: str,
    rows: int,
    facts: ErrorFacts,
    *,
    batch: str,
    may_repeat: bool = False,
) -> None:
    """One commit with the `rows` rows staged at `staged_uri`; none where one of the newest commits shows that the same `batch` was appended.

    So a job that dies between this commit and that of its data, and is run again, does not append the rows twice. With `may_repeat`
    rows that the table has as they are, from an earlier batch, are left out."""
    target = error_table_spec(table)
    timeline = Timeline(target.uri)
    commits = [*islice(timeline.newest_first(), COMMITS_COMPARED)]
    if any(commit.run.get("batch") == batch for commit in commits):
        return
    sketch = sketch_of(staged_uri)
    if may_repeat and repeats_rows(sketch, commits):
        staged_uri, rows = stage_unknown_rows(spark, target.uri, staged_uri, rows)
        if not rows:
            return
    run = {"run_id": facts.run, "kind": "errors", "batch": batch, "sketch": sketch}
    marks = commit_metadata(run=run, checkpoint=None)
    columns = _stored_columns(timeline)
    staged = _read_few(staged_uri) if rows <= _MAX_DIRECT_ROWS and columns and has_client(spark) else None
    if columns and staged is not None:
        placed = [
            direct_write.PlacedRow(row["error_key"], "", None, row | _as_stored(facts)) for row in staged.to_pylist()
        ]
        direct_write.write_rows(spark, target, placed, columns, _OPTIONS, marks)
    else:
        _append_by_spark(spark, target, staged_uri, rows, facts, marks)


def open_rows(spark: SparkSession, table: TableSpec, keys: Sequence[str], *, max_raw: int) -> DataFrame:
    """Those of the rows with these keys that are not resolved, in the order of their keys: error_key, column, reason, raw (cut behind
    `max_raw` characters), source, table_at."""
    rows = hudi.read_table(spark, error_table_spec(table))
    rows = rows.join(F.broadcast(spark.createDataFrame([(key,) for key in keys], "error_key string")), "error_key")
    later = [F.lit(None).cast(type_).alias(name) for name, type_ in _TYPES.items() if name not in rows.columns]
    newest_first = Window.partitionBy("error_key").orderBy(F.col("_hoodie_commit_time").desc())
    newest = rows.select("*", *later, F.row_number().over(newest_first).alias("_place")).where("_place = 1")
    raw, table_at = F.substring("raw", 1, max_raw + 1).alias("raw"), F.coalesce("table_at", F.lit("")).alias("table_at")
    return (
        newest.where("resolved_at is null")
        .select("error_key", "column", "reason", raw, "source", table_at)
        .orderBy("error_key")
    )


def _append_by_spark(
    spark: SparkSession, target: TableSpec, staged_uri: str, rows: int, facts: ErrorFacts, marks: Mapping[str, str]
) -> None:
    # Told rather than inferred: that would be a Spark job more.
    staged = spark.read.schema(", ".join(f"`{name}` string" for name in STAGED_COLUMNS)).parquet(staged_uri)
    given = asdict(facts) | {"run": facts.run or None}
    # Nullable, as a column that an older table lacks has to be.
    shared = [
        F.when(F.lit(True), F.lit(given[name])).cast(_TYPES[name]).alias(name)
        for name in (*_FACT_COLUMNS, *_RESOLUTION_COLUMNS)
    ]
    frame = staged.select("*", *shared).coalesce(1 + rows // _ROWS_PER_FILE)
    hudi.write_commit(frame, target, "bulk_insert", _OPTIONS, marks)


def _stored_columns(timeline: Timeline) -> str:
    """The table's columns as its newest commit has them; empty where there is no table yet, or an older program made it with fewer."""
    named = next((commit.avro_schema for commit in timeline.newest_first() if commit.avro_schema), "")
    return named if named and avro_schema.schema_of(named, without=hudi.META_COLUMNS) == SCHEMA else ""


def _read_few(staged_uri: str) -> pa.Table | None:
    """None: their texts are too long for one process."""
    filesystem, path = open_storage(staged_uri)
    pieces, left = [], _MAX_DIRECT_BYTES
    for info in sorted(filesystem.get_file_info(fs.FileSelector(path)), key=lambda info: str(info.path)):
        with filesystem.open_input_file(info.path) as file:
            # Their files are compressed: 10,000 equal texts of a megabyte are 100 kB there.
            for piece in pq.ParquetFile(file).iter_batches(_ROWS_AT_A_TIME, use_threads=False):
                left -= piece.nbytes
                if left < 0:
                    return None
                pieces.append(piece)
    return pa.Table.from_batches(pieces, pa.schema([(name, pa.string()) for name in STAGED_COLUMNS]))


def _as_stored(facts: ErrorFacts) -> dict[str, Any]:
    values = asdict(facts) | {"run": facts.run or None}
    return {
        name: (value - _EPOCH) // _MICROSECOND if isinstance(value, datetime) else value
        for name, value in values.items()
    }
