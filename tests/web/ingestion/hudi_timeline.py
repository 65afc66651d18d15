"""The timeline of a Hudi table made by hand: what our own reader sees, with no JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import fastavro

from ingestion.lake.lake_copies import table_uri
from lakehub.catalog.models import DatasetCopy

_STAT = {
    "type": "record",
    "name": "HoodieWriteStat",
    "fields": [{"name": name, "type": "long"} for name in ("numInserts", "numUpdateWrites", "numDeletes")],
}
_SCHEMA = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [
        {"name": "partitionToWriteStats", "type": {"type": "map", "values": {"type": "array", "items": _STAT}}},
        {"name": "extraMetadata", "type": {"type": "map", "values": "string"}},
        {"name": "operationType", "type": "string"},
    ],
}


def commit(
    copy: DatasetCopy,
    instant: str,
    partitions: Mapping[str, tuple[int, int, int]],
    *,
    operation: str = "UPSERT",
    run: Mapping[str, Any] | None = None,
    checkpoint: Mapping[str, Any] | None = None,
) -> None:
    """A completed commit; `partitions`: value -> (inserts, updates, deletes)."""
    meta = Path(unquote(urlsplit(table_uri(copy)).path)) / ".hoodie"
    (meta / "timeline").mkdir(parents=True, exist_ok=True)
    (meta / "hoodie.properties").write_text("hoodie.table.version=9\n")
    column = copy.dataset.partition_column
    names = ("numInserts", "numUpdateWrites", "numDeletes")
    stats = {
        f"{column}={value}" if value else "": [dict(zip(names, change, strict=True))]
        for value, change in partitions.items()
    }
    extra = {"lakehub.run": run, "lakehub.checkpoint": checkpoint}
    metadata = {name: json.dumps(value) for name, value in extra.items() if value is not None}
    record = {"partitionToWriteStats": stats, "extraMetadata": metadata, "operationType": operation}
    with (meta / "timeline" / f"{instant}_{int(instant) + 500}.commit").open("wb") as file:
        fastavro.writer(file, _SCHEMA, [record])


def told_by(run_id: str, *, read: int = 0, applied: int = 0, errors: int = 0, **facts: Any) -> dict[str, Any]:
    """What a job of ours leaves in its commit."""
    counts = {"read": read, "applied": applied, "superseded": 0, "redelivered": 0, "errors": errors}
    return {"run_id": run_id, "counts": counts, "schema": {"conflicts": []}, "source_committed_upto": None, **facts}
