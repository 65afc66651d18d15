"""What is left of deleted rows, in a table of its own beside the lake's: readers of the table do not see them, and a change that comes late is not
taken for a new row.

By key the newest only. They are written before the rows go: whoever dies in between finds the rows again, which say more.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ingestion.domain.merging.events import Version
from ingestion.domain.merging.row_state import RowState
from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import direct_write
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.file_groups.stored_rows import FILE_ID, KEY, read_stored_rows
from ingestion.spark.indexes import INDEXES
from ingestion.spark.loading.small_batches import columns_to_write, files_of_keys
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.timeline import Timeline

_INDEX = "memory"
_SCHEMA = Schema.of({"key": "string", "state": "string", "deleted_at": "timestamp"})
_COLUMNS = pa.schema([("state", pa.string())])
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


@dataclass(frozen=True)
class Tombstones:
    """Of the keys that were asked for. `file_ids`: where each lies."""

    states: Mapping[str, RowState]
    file_ids: Mapping[str, str]


NONE = Tombstones({}, {})


def tombstone_table_spec(table: TableSpec) -> TableSpec:
    return TableSpec(
        name=f"{table.name}_tombstones",
        uri=table.tombstone_uri,
        error_uri=table.tombstone_uri,
        record_key=("key",),
        index=_INDEX,
        retention_hours=1,
        change_log=False,
    )


def read_tombstones(spark: SparkSession, table: TableSpec, keys: Collection[str]) -> Tombstones:
    """`keys`: as Hudi writes them."""
    graves = tombstone_table_spec(table)
    if not keys or not Timeline(graves.uri).exists:
        return NONE
    files = files_of_keys(spark, graves, INDEXES.get(_INDEX)(), sorted(keys), ())
    rows = read_stored_rows(graves.uri, files, keys, _COLUMNS).to_pylist()
    return Tombstones(
        {row[KEY]: _state(json.loads(row["state"])) for row in rows}, {row[KEY]: row[FILE_ID] for row in rows}
    )


def write_tombstones(
    spark: SparkSession, table: TableSpec, dead: Mapping[str, RowState], before: Tombstones, *, run: str, now: datetime
) -> None:
    """One commit. `before`: what `read_tombstones` says of these keys; `now`: aware UTC."""
    graves = tombstone_table_spec(table)
    index = INDEXES.get(_INDEX)()
    options, marks = (
        index.write_options(graves),
        commit_metadata(run={"run_id": run, "kind": "tombstones"}, checkpoint=None),
    )
    deleted_at = (now - _EPOCH) // _MICROSECOND
    rows = [
        PlacedRow(key, "", before.file_ids.get(key), {"key": key, "state": _as_json(state), "deleted_at": deleted_at})
        for key, state in dead.items()
    ]
    if columns_to_write(spark, graves, _SCHEMA) is None:
        hudi.write_commit(hudi.empty_frame(spark, _SCHEMA), graves, "upsert", options, marks)
    columns = columns_to_write(spark, graves, _SCHEMA)
    assert columns is not None
    direct_write.write_rows(spark, graves, rows, columns, options, marks)


def _as_json(state: RowState) -> str:
    version = state.tombstone
    assert version is not None
    key = version.reference_key
    facts: dict[str, Any] = {
        "reference_key": {"bytes": key.hex()} if isinstance(key, bytes) else key,
        "data_center": version.data_center,
        "position": [*version.position],
        "forced": {center: [*at] for center, at in state.forced.items()},
    }
    return json.dumps(facts, separators=(",", ":"))


def _state(facts: Mapping[str, Any]) -> RowState:
    key = facts["reference_key"]
    reference = bytes.fromhex(key["bytes"]) if isinstance(key, dict) else key
    version = Version(reference, facts["data_center"], tuple(facts["position"]))
    return RowState({}, version, {center: tuple(at) for center, at in facts["forced"].items()})
