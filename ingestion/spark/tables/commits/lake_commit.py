"""A completed write of a Hudi table, and how its record in the timeline is read."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import fastavro

from ingestion.domain.checkpoint import unfinished_snapshot
from ingestion.domain.log_moves import SCHEMA_VERSION
from ingestion.spark.tables.checkpoint_metadata import CHECKPOINT_KEY, RUN_KEY

TABLE_SERVICES = ("CLUSTER", "COMPACT")
"""Operations that move rows but change none: their statistics count all rows as inserts."""


class PartitionChange(NamedTuple):
    """Rows that a commit wrote in one partition, by the table format's own statistics; their sum is the rows that changed."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0


@dataclass(frozen=True)
class LakeCommit:
    """One completed write. `checkpoint` and `run` are what our own jobs left in it."""

    instant: str
    completed: str
    """The instant of its completion: it orders the commits."""
    completed_at: datetime
    """By the platform's clock, which the run has told where it differs from the wall's."""
    operation: str
    partitions: dict[str, PartitionChange]
    checkpoint_json: str
    """Empty: it carries none. Kept as text, which is a quarter of what it takes as Python's values: of all commits but one nobody asks."""
    run: dict[str, Any]
    written: PartitionChange
    """Keys written in all partitions. One that moved is an insert: that it was removed from where it was is not counted again."""
    avro_schema: str = ""
    """The table's columns as it wrote them, as JSON; empty where it says nothing of them."""
    is_part_of_load: bool = False
    """The table was not loaded as a whole yet."""
    has_digest_of_source: bool = False
    """In its checkpoint: the source was read as a whole."""
    schema_version: int | None = None
    """In its checkpoint: the version of the subject that the columns of the table follow."""

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Parsed anew each time."""
        position: dict[str, Any] | None = json.loads(self.checkpoint_json or "null")
        return position


def instant_to_datetime(instant: str) -> datetime:
    """A Hudi instant (UTC, yyyyMMddHHmmssSSS) as a time."""
    return datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(
        microsecond=int(instant[14:17] or 0) * 1000, tzinfo=UTC
    )


def parse_commit(name: re.Match[str], content: bytes) -> LakeCommit:
    record = read_avro_record(content)
    extra = record.get("extraMetadata") or {}
    run, partitions = json.loads(extra.get(RUN_KEY, "{}")), _partition_changes(record)
    checkpoint_json = _checkpoint_json(extra)
    position = json.loads(checkpoint_json or "null")
    position = position if isinstance(position, dict) else {}
    return LakeCommit(
        instant=name[1],
        completed=name[2],
        completed_at=instant_to_datetime(name[2]) + timedelta(seconds=run.get("clock_ahead_s", 0.0)),
        operation=record.get("operationType") or "UNKNOWN",
        partitions=partitions,
        written=_keys_written(partitions, moved=run.get("moved", 0)),
        checkpoint_json=checkpoint_json,
        run=run,
        # The same text in nearly all commits of a table.
        avro_schema=sys.intern(extra.get("schema") or ""),
        is_part_of_load=unfinished_snapshot(position) is not None,
        has_digest_of_source="digest" in position,
        schema_version=position.get(SCHEMA_VERSION),
    )


def _checkpoint_json(extra: Mapping[str, str]) -> str:
    text = extra.get(CHECKPOINT_KEY, "null")
    return "" if json.loads(text) is None else text  # what is no JSON is damaged


def read_avro_record(content: bytes) -> Mapping[str, Any]:
    (record,) = fastavro.reader(io.BytesIO(content))
    assert isinstance(record, Mapping)
    return record


def _partition_changes(record: Mapping[str, Any]) -> dict[str, PartitionChange]:
    if record.get("operationType") in TABLE_SERVICES:
        return {}
    touched = {
        _partition_value(name): _sum_stats(stats) for name, stats in (record.get("partitionToWriteStats") or {}).items()
    }
    for name in record.get("partitionToReplaceFileIds") or {}:
        touched.setdefault(_partition_value(name), PartitionChange())
    return dict(sorted(touched.items()))


def _keys_written(partitions: Mapping[str, PartitionChange], *, moved: int) -> PartitionChange:
    inserts, updates, deletes = map(sum, zip(*partitions.values(), strict=True)) if partitions else (0, 0, 0)
    return PartitionChange(inserts, updates, deletes - moved)


def _sum_stats(stats: list[Mapping[str, Any]]) -> PartitionChange:
    return PartitionChange(
        *(
            sum(max(0, stat[stat_name] or 0) for stat in stats)
            for stat_name in ("numInserts", "numUpdateWrites", "numDeletes")
        )
    )


def _partition_value(partition_path: str) -> str:
    """`flight_date=2026-11-16` -> `2026-11-16`."""
    return partition_path.partition("=")[2] or partition_path
