"""Rows on their way from a source to Spark: Parquet files below one folder, a bounded chunk each, never the whole table in memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import SourceReading, UnusableCursors
from ingestion.spark.loading.fitting import FitResult, FitRules, RejectedRow, fit_rows
from ingestion.spark.tables.timeline import open_storage

SEQUENCE_COLUMN = "_lakehub_sequence"
"""The order in which rows were read: of equal reference keys the later wins."""
MAX_MISPLACED_VALUES = 1000
"""Beyond this many different values that are no partition further ones are counted by their rows only."""
MAX_NAMED_VALUES = 20
"""So many values that are no partition are named in a commit."""
MAX_PARTITIONS = 5000
"""Beyond this many, pruning by partition costs more than it saves."""


@dataclass
class StagedBatch:
    """What is in the folder. `partitions` None: too many to name."""

    uri: str
    schema: Schema
    read: int = 0
    rows: int = 0
    errors: int = 0
    misplaced: Counter[str] = field(default_factory=Counter)
    """Values that are no partition, with the number of their rows, which are among the errors."""
    misplaced_rows: int = 0
    """Of all such values, those beyond MAX_MISPLACED_VALUES too."""
    nulls: Counter[str] = field(default_factory=Counter)
    """By column the rows that are among the errors since it is null there, and must not be."""
    partitions: set[str] | None = field(default_factory=set)
    oldest: datetime | None = None
    newest: datetime | None = None
    position: Position = field(default_factory=dict)
    unusable_cursors: UnusableCursors | None = None
    """None: nothing was read."""

    @property
    def misplaced_facts(self) -> dict[str, Any]:
        """For the commit: the most frequent values that are no partition, and how many values and rows there are in all."""
        totals = {"values": len(self.misplaced), "rows": self.misplaced_rows}
        named = dict(self.misplaced.most_common(MAX_NAMED_VALUES))
        return {"misplaced": named} | ({"misplaced_totals": totals} if named else {})

    @property
    def rows_uri(self) -> str:
        return f"{self.uri}/rows"

    @property
    def errors_uri(self) -> str:
        return f"{self.uri}/errors"


@contextmanager
def temporary_folder(uri: str) -> Iterator[str]:
    """An empty folder that is gone afterwards. What a job that died has left there is removed first: the caller holds the table's fence."""
    filesystem, path = open_storage(uri)
    _delete_folder(filesystem, path)
    try:
        for part in ("rows", "errors"):
            filesystem.create_dir(f"{path}/{part}")
        yield uri
    finally:
        _delete_folder(filesystem, path)


def stage_rows(
    reading: SourceReading,
    rules: FitRules,
    uri: str,
    *,
    cursor_column: str | None,
    origin: str,
    alive: Callable[[], None],
    tell_rows: Callable[[int], None] = lambda rows: None,
) -> StagedBatch:
    """Write all chunks of `reading` below `uri`. `alive` raises when the job's time is up; `origin` names the source's object.

    `tell_rows` hears after each chunk how many rows were read.
    """
    filesystem, path = open_storage(uri)
    staged, digest_counts = StagedBatch(uri, rules.schema), Counter[str]()
    for number, chunk in enumerate(reading.chunks):
        alive()
        fitted = fit_rows(chunk, rules)
        _write(filesystem, f"{path}/rows/{number:06}.parquet", _with_sequence(fitted.rows, staged.read))
        _write(filesystem, f"{path}/errors/{number:06}.parquet", _error_rows(fitted.rejected, origin, digest_counts))
        _add_counts(
            staged, fitted, chunk.rows + len(chunk.unreadable) - fitted.skipped, rules.partition_column, cursor_column
        )
        tell_rows(staged.read)
    staged.position, staged.unusable_cursors = reading.position(), reading.unusable_cursors()
    return staged


def _add_counts(
    staged: StagedBatch, fitted: FitResult, read: int, partition_column: str | None, cursor_column: str | None
) -> None:
    staged.read += read
    staged.rows += fitted.rows.num_rows
    staged.errors += len(fitted.rejected)
    staged.nulls.update(fitted.nulls)
    staged.misplaced_rows += sum(fitted.misplaced.values())
    full = len(staged.misplaced) >= MAX_MISPLACED_VALUES
    staged.misplaced.update(
        {value: n for value, n in fitted.misplaced.items() if not full or value in staged.misplaced}
    )
    if partition_column is not None and staged.partitions is not None:
        staged.partitions.update(pc.unique(fitted.rows[partition_column]).to_pylist())
        staged.partitions = staged.partitions if len(staged.partitions) <= MAX_PARTITIONS else None
    if cursor_column is not None and staged.schema.types.get(cursor_column) == "timestamp" and fitted.rows.num_rows:
        span = pc.min_max(fitted.rows[cursor_column])
        staged.oldest = _choose_instant(staged.oldest, span["min"].as_py(), min)
        staged.newest = _choose_instant(staged.newest, span["max"].as_py(), max)


def _choose_instant(
    instant: datetime | None, other: datetime | None, choose: Callable[[datetime, datetime], datetime]
) -> datetime | None:
    if instant is None or other is None:
        return instant or other
    return choose(instant, other.astimezone(UTC))


def _with_sequence(rows: pa.Table, start: int) -> pa.Table:
    return rows.append_column(SEQUENCE_COLUMN, pa.array(range(start, start + rows.num_rows), pa.int64()))


def _error_rows(misfits: tuple[RejectedRow, ...], origin: str, digest_counts: Counter[str]) -> pa.Table:
    """`error_key` names the row by what was read, so that reading it again is the same error, and not one more."""
    rows: list[dict[str, Any]] = []
    for misfit in misfits:
        digest = hashlib.sha256(f"{origin}\0{misfit.raw}".encode()).hexdigest()
        rows.append(
            {
                "error_key": f"{digest}-{digest_counts[digest]}",
                "column": misfit.column,
                "reason": misfit.reason,
                "raw": misfit.raw,
                "source": origin,
            }
        )
        digest_counts[digest] += 1
    return pa.Table.from_pylist(
        rows, pa.schema([(name, pa.string()) for name in ("error_key", "column", "reason", "raw", "source")])
    )


def _write(filesystem: fs.FileSystem, path: str, rows: pa.Table) -> None:
    if rows.num_rows:
        pq.write_table(rows, path, filesystem=filesystem, compression="zstd", coerce_timestamps="us")


def _delete_folder(filesystem: fs.FileSystem, path: str) -> None:
    if filesystem.get_file_info(path).type != fs.FileType.NotFound:
        filesystem.delete_dir(path)
