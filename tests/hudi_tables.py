"""Small Hudi tables made by hand, in milliseconds and with no JVM: one commit of Parquet files and its record in the timeline.

They have table version 6, whose timeline is plain JSON; hudi-rs, DuckDB and Spark read them as they read the tables that Spark writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

INSTANT = "20261116120000000"


def hudi_table(
    folder: Path,
    partitions: Mapping[str | None, pa.Table],
    *,
    column: str = "",
    instant: str = INSTANT,
    key: str = "id",
) -> str:
    """Makes a table with a file for each partition (None: the rows without one) and returns its URI."""
    meta = folder / ".hoodie"
    meta.mkdir(parents=True)
    (meta / "hoodie.properties").write_text(_properties(column, key))
    commit(folder, partitions, column=column, instant=instant)
    return folder.as_uri()


def commit(folder: Path, partitions: Mapping[str | None, pa.Table], *, column: str = "", instant: str) -> None:
    """One more commit with a new file for each partition: rows are added."""
    stats = {}
    for value, rows in partitions.items():
        path = f"{column}={value or '__HIVE_DEFAULT_PARTITION__'}" if column else ""
        stats[path] = [_write(folder, path, rows, instant)]
    record = {"partitionToWriteStats": stats, "compacted": False, "extraMetadata": {}, "operationType": "BULK_INSERT"}
    for ending in (".commit.requested", ".inflight"):
        (folder / ".hoodie" / f"{instant}{ending}").touch()
    (folder / ".hoodie" / f"{instant}.commit").write_text(json.dumps(record))


def overwrite(folder: Path, partition: str, rows: pa.Table, *, column: str, instant: str) -> None:
    """The file of `partition` in a new version, as an update writes it."""
    path = f"{column}={partition}"
    (file_id,) = {file.name.split("_")[0] for file in (folder / path).glob("*.parquet")}
    stat = _write(folder, path, rows, instant, file_id)
    record = {
        "partitionToWriteStats": {path: [stat]},
        "compacted": False,
        "extraMetadata": {},
        "operationType": "UPSERT",
    }
    for ending in (".commit.requested", ".inflight"):
        (folder / ".hoodie" / f"{instant}{ending}").touch()
    (folder / ".hoodie" / f"{instant}.commit").write_text(json.dumps(record))


def _write(folder: Path, path: str, rows: pa.Table, instant: str, file_id: str = "") -> dict[str, Any]:
    file_id = file_id or f"{uuid4()}-0"
    name = f"{file_id}_0-0-0_{instant}.parquet"
    (folder / path).mkdir(parents=True, exist_ok=True)
    (folder / path / ".hoodie_partition_metadata").write_text(
        f"commitTime={instant}\npartitionDepth={1 if path else 0}\n"
    )
    pq.write_table(_with_meta_columns(rows, path, name, instant), folder / path / name)
    return {
        "fileId": file_id,
        "path": f"{path}/{name}" if path else name,
        "prevCommit": "null",
        "numWrites": rows.num_rows,
        "numInserts": rows.num_rows,
        "partitionPath": path,
        "fileSizeInBytes": (folder / path / name).stat().st_size,
    }


def _with_meta_columns(rows: pa.Table, path: str, file_name: str, instant: str) -> pa.Table:
    meta = {
        "_hoodie_commit_time": [instant] * rows.num_rows,
        "_hoodie_commit_seqno": [f"{instant}_0_{number}" for number in range(rows.num_rows)],
        "_hoodie_record_key": [str(number) for number in range(rows.num_rows)],
        "_hoodie_partition_path": [path] * rows.num_rows,
        "_hoodie_file_name": [file_name] * rows.num_rows,
    }
    columns = {name: pa.array(values, pa.string()) for name, values in meta.items()}
    return pa.table({**columns, **{name: rows.column(name) for name in rows.column_names}})


def _properties(column: str, key: str) -> str:
    properties = {
        "hoodie.table.name": "made_by_hand",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.recordkey.fields": key,
        "hoodie.table.partition.fields": column,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.metadata.partitions": "",
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items())
