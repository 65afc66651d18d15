"""What is left of deleted rows, in a table of its own beside the lake's: readers of the table do not see them, and a change that comes late is not
taken for a new row.

By key the newest only. They are written before the rows go: whoever dies in between finds the rows again, which say more. They are kept for longer
than the log keeps events: no older event comes then.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ingestion.domain.merging.events import Version
from ingestion.domain.merging.row_state import RowState
from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile, direct_write
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.file_groups.key_map import KeyMaps, TooManyKeys
from ingestion.spark.file_groups.lookups import newest_base_files, partition_paths
from ingestion.spark.file_groups.stored_rows import FILE_ID, KEY, read_stored_rows
from ingestion.spark.loading.small_batches import columns_to_write
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.timeline import Timeline, open_storage

_KEY_MAPS = KeyMaps()
"""Of their own: where there are many, the tables themselves keep their place in memory."""
_OPTIONS = {"hoodie.metadata.enable": "false", "hoodie.index.type": "SIMPLE"}
_COMMITS_BETWEEN_REMOVALS = 100
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
        index="memory",
        retention_hours=1,
        change_log=False,
    )


def read_tombstones(spark: SparkSession, table: TableSpec, keys: Collection[str]) -> Tombstones:
    """`keys`: as Hudi writes them."""
    graves = tombstone_table_spec(table)
    if not keys or not Timeline(graves.uri).exists:
        return NONE
    rows = read_stored_rows(graves.uri, _files_of(spark, graves.uri, keys), keys, _COLUMNS).to_pylist()
    return Tombstones(
        {row[KEY]: _state(json.loads(row["state"])) for row in rows}, {row[KEY]: row[FILE_ID] for row in rows}
    )


def _files_of(spark: SparkSession, uri: str, keys: Collection[str]) -> list[BaseFile]:
    """That may hold the keys."""
    files = newest_base_files(spark, uri, partition_paths(spark, uri))
    try:
        groups = _KEY_MAPS.of(uri).groups_of(spark, sorted(keys))
    except TooManyKeys:
        return files
    return [file for file in files if file.group in groups]


def write_tombstones(
    spark: SparkSession,
    table: TableSpec,
    dead: Mapping[str, RowState],
    before: Tombstones,
    *,
    run: str,
    now: datetime,
    kept_for: timedelta,
) -> None:
    """One commit. `before`: what `read_tombstones` says of these keys; `now`: aware UTC. Now and then it removes those that are older than `kept_for`."""
    graves = tombstone_table_spec(table)
    marks = commit_metadata(run={"run_id": run, "kind": "tombstones"}, checkpoint=None)
    rows = [
        PlacedRow(key, "", before.file_ids.get(key), {"key": key, "state": _as_json(state), "deleted_at": _micros(now)})
        for key, state in dead.items()
    ]
    if columns_to_write(spark, graves, _SCHEMA) is None:
        hudi.write_commit(hudi.empty_frame(spark, _SCHEMA), graves, "upsert", _OPTIONS, marks)
    columns = columns_to_write(spark, graves, _SCHEMA)
    assert columns is not None
    if _is_removal_due(graves.uri):
        rows += [row for row in _outlived(spark, graves.uri, now - kept_for) if row.key not in dead]
    direct_write.write_rows(spark, graves, rows, columns, _OPTIONS, marks)


def _is_removal_due(uri: str) -> bool:
    """By the time of the newest commit, so that no count has to be kept."""
    newest = next(iter(Timeline(uri).newest_first()), None)
    return newest is not None and int(newest.instant) % _COMMITS_BETWEEN_REMOVALS == 0


def _outlived(spark: SparkSession, uri: str, upto: datetime) -> list[PlacedRow]:
    """What no event of the log can be older than."""
    filesystem, root = open_storage(uri)
    old = pc.field("deleted_at") < pa.scalar(_micros(upto), pa.timestamp("us", tz="UTC"))
    rows = list[PlacedRow]()
    for file in newest_base_files(spark, uri, partition_paths(spark, uri)):
        keys = pq.read_table(f"{root}/{file.path}", filesystem=filesystem, columns=[KEY], filters=old)[KEY]
        rows += [PlacedRow.removed(key, file.group) for key in keys.to_pylist()]
    return rows


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


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
