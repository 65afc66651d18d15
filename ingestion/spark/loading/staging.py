"""Rows on their way from a source to Spark: Parquet files below one folder, a bounded chunk each, never the whole table in memory."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from ingestion.domain.checkpoint import Position
from ingestion.domain.merging.events import Operation
from ingestion.domain.schema import Schema
from ingestion.sources import EventBatch, SourceError, SourceReading, UnusableCursors
from ingestion.spark.loading.fitting import FitResult, FitRules, RejectedRow, fit_rows
from ingestion.spark.rejected.error_table import STAGED_COLUMNS
from ingestion.spark.tables.timeline import open_storage

SEQUENCE_COLUMN = "_lakehub_sequence"
"""The order in which rows were read: of equal reference keys the later wins."""
STAGED_BY_SPARK = {"compression": "zstd", "parquet.enable.dictionary": "false"}
"""Options of Parquet files that are soon removed: dictionaries of their values would cost more time than they save, and zstd finds what is repeated as well."""
TABLE_AT_COLUMN = "_lakehub_table_at"
"""Of replayed rows: the newest completion of the table when they were rejected. What was written later is newer."""
MAX_MISPLACED_VALUES = 1000
"""Beyond this many different values that are no partition further ones are counted by their rows only."""
MAX_NAMED_VALUES = 20
"""So many values that are no partition are named in a commit."""
MAX_PARTITIONS = 5000
"""Beyond this many, pruning by partition costs more than it saves."""
_DIGESTS = 2**256
MAX_KNOWN_RANGES = 50
_UNTIL_FORMAT = "%Y%m%dT%H%M%SZ"
_FOLDER_NAME = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True)
class Layout:
    """How the rows of partitions lie in the staged files. `pieces`: for each partition the files that have rows of it, in all. `are_runs`: in each file those of a partition follow each other."""

    pieces: int
    are_runs: bool


@dataclass
class StagedBatch:
    """What is in the folder. `rows_by_partition` None: there are too many partitions to name. `layout` None: it was not looked at."""

    uri: str
    schema: Schema
    read: int = 0
    rows: int = 0
    row_bytes: int = 0
    """Of the rows in memory: their files say nothing about it, as they are compressed."""
    errors: int = 0
    noted: int = 0
    """Rows that are stored with null in place of values that did not fit. The notes are staged with the errors, and counted apart."""
    errors_digest: int = 0
    """Of the errors, in whatever order they were read."""
    misplaced: Counter[str] = field(default_factory=Counter)
    """Values that are no partition, with the number of their rows, which are among the errors."""
    misplaced_rows: int = 0
    """Of all such values, those beyond MAX_MISPLACED_VALUES too."""
    nulls: Counter[str] = field(default_factory=Counter)
    """By column the rows that are among the errors since it is null there, and must not be."""
    rows_by_partition: Counter[str] | None = field(default_factory=Counter)
    layout: Layout | None = None
    oldest: datetime | None = None
    newest: datetime | None = None
    position: Position = field(default_factory=dict)
    unusable_cursors: UnusableCursors | None = None
    """None: nothing was read."""
    is_replayed: bool = False
    """Its rows have TABLE_AT_COLUMN."""
    known: list[range] = field(default_factory=list)
    """By their sequence, the rows that may have been handed over before; all others are new for certain."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What else the commit is to tell."""
    has_more: bool = False
    """The reading ended at a limit: there may be more to read from `position` on."""

    def add_known(self, rows: range) -> None:
        """Ranges side by side are one, and many are taken for one: to look a new row up does no harm."""
        touches = self.known and (self.known[-1].stop == rows.start or len(self.known) >= MAX_KNOWN_RANGES)
        first = self.known.pop().start if touches else rows.start
        self.known.append(range(first, rows.stop))

    @property
    def partitions(self) -> set[str] | None:
        """None: too many to name."""
        return None if self.rows_by_partition is None else set(self.rows_by_partition)

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
def temporary_folder(uri: str, *, until: datetime, now: datetime) -> Iterator[str]:
    """A new folder below `uri` that is gone afterwards. What jobs that died have left there is removed first.

    Several jobs of a table read at once, so the name of a folder says until when it may be in use: `until`, the job's deadline and a margin.
    """
    filesystem, path = open_storage(uri)
    _sweep(filesystem, path, now=now)
    name = f"{until.astimezone(UTC):{_UNTIL_FORMAT}}-{uuid4().hex}"
    try:
        for part in ("rows", "errors"):
            filesystem.create_dir(f"{path}/{name}/{part}")
        yield f"{uri}/{name}"
    finally:
        _delete_folder(filesystem, f"{path}/{name}")


def keep_rows(batch: StagedBatch, uri: str) -> None:
    """A copy of the rows below `uri`, in place of what was kept there before."""
    remove_rows(uri)
    filesystem, path = open_storage(uri)
    filesystem.create_dir(path)
    source, rows = open_storage(batch.rows_uri)
    fs.copy_files(rows, path, source_filesystem=source, destination_filesystem=filesystem)


def remove_rows(uri: str) -> None:
    """Nothing where none were kept."""
    _delete_folder(*open_storage(uri))


def _sweep(filesystem: fs.FileSystem, path: str, *, now: datetime) -> None:
    """Folders whose jobs are past their deadline, and what was written before folders had such names."""
    for info in filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True)):
        until = _FOLDER_NAME.fullmatch(info.base_name)
        if until is None or datetime.strptime(until[1], _UNTIL_FORMAT).replace(tzinfo=UTC) < now:
            with suppress(FileNotFoundError):  # another job sweeps as well
                _delete_folder(filesystem, info.path)


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
    """Write all batches of `reading` below `uri`. `alive` raises when the job's time is up; `origin` names the source's object.

    `tell_rows` hears after each batch how many rows were read. Raises SourceError for a batch that the jobs cannot apply.
    """
    filesystem, path = open_storage(uri)
    staged, digest_counts, versions = StagedBatch(uri, rules.schema), Counter[str](), set[int]()
    for number, chunk in enumerate(reading.batches):
        alive()
        versions.add(chunk.schema_version)
        _require_upserts_of_one_schema(chunk, versions, origin)
        fitted = fit_rows(chunk, rules)
        write_staged(filesystem, f"{path}/rows/{number:06}.parquet", with_sequence(fitted.rows, staged.read))
        errors = _error_rows((*fitted.rejected, *fitted.nulled), origin, digest_counts)
        staged.errors_digest = add_digests(staged.errors_digest, errors)
        write_staged(filesystem, f"{path}/errors/{number:06}.parquet", errors)
        if not chunk.is_new and fitted.rows.num_rows:
            staged.add_known(range(staged.read, staged.read + fitted.rows.num_rows))
        add_counts(
            staged, fitted, chunk.rows + len(chunk.unreadable) - fitted.skipped, rules.partition_column, cursor_column
        )
        tell_rows(staged.read)
    staged.position, staged.unusable_cursors = reading.position(), reading.unusable_cursors()
    staged.has_more = reading.has_more()
    return staged


def begin_reading(reading: SourceReading) -> tuple[Schema | None, SourceReading]:
    """The schema of what the reading hands over, and the reading with its first batch still to come. None: there is nothing to read."""
    first = next(reading.batches, None)
    if first is None:
        return None, reading
    return first.schema, replace(reading, batches=chain([first], reading.batches))


def _require_upserts_of_one_schema(batch: EventBatch, versions: set[int], origin: str) -> None:
    """Rows of another schema would lose the columns that came, and a delete would write the row that it removes."""
    if len(versions) > 1:
        raise SourceError(
            f"The source changed the schema of `{origin}` within one reading (versions {sorted(versions)}); nothing was written. "
            "A source ends its reading before the first row of another schema."
        )
    if batch.operations is not None and Operation.DELETE in batch.operations:
        raise SourceError(
            f"The source hands over deletes of `{origin}`, and the jobs apply inserts and updates only; nothing was written. "
            "Let the source leave deletes out, and delete rows by key."
        )


def add_counts(
    staged: StagedBatch, fitted: FitResult, read: int, partition_column: str | None, cursor_column: str | None
) -> None:
    staged.read += read
    staged.rows += fitted.rows.num_rows
    staged.row_bytes += fitted.rows.nbytes
    staged.errors += len(fitted.rejected)
    staged.noted += len(fitted.nulled)
    staged.nulls.update(fitted.nulls)
    staged.misplaced_rows += sum(fitted.misplaced.values())
    full = len(staged.misplaced) >= MAX_MISPLACED_VALUES
    staged.misplaced.update(
        {value: n for value, n in fitted.misplaced.items() if not full or value in staged.misplaced}
    )
    if partition_column is not None and staged.rows_by_partition is not None:
        counted = pc.value_counts(fitted.rows[partition_column])
        staged.rows_by_partition.update(dict(zip(*(part.to_pylist() for part in counted.flatten()), strict=True)))
        few = len(staged.rows_by_partition) <= MAX_PARTITIONS
        staged.rows_by_partition = staged.rows_by_partition if few else None
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


def with_sequence(rows: pa.Table, start: int) -> pa.Table:
    return rows.append_column(SEQUENCE_COLUMN, pa.array(range(start, start + rows.num_rows), pa.int64()))


def _error_rows(misfits: tuple[RejectedRow, ...], origin: str, digest_counts: Counter[str]) -> pa.Table:
    """`error_key` names the row by what was read, so that reading it again is the same error, and not one more."""
    rows: list[dict[str, Any]] = []
    for misfit in misfits:
        digest = hashlib.sha256(f"{origin}\0{misfit.raw}".encode(errors="backslashreplace")).hexdigest()
        row = {"error_key": f"{digest}-{digest_counts[digest]}", "source": origin}
        rows.append(row | {"column": misfit.column, "reason": misfit.reason, "raw": misfit.raw})
        digest_counts[digest] += 1
    return error_rows_table(rows)


def error_rows_table(rows: Sequence[Mapping[str, str | None]]) -> pa.Table:
    """Half characters, which no file can hold, are written out."""
    texts = [
        {name: text and text.encode(errors="backslashreplace").decode() for name, text in row.items()} for row in rows
    ]
    return pa.Table.from_pylist(texts, pa.schema([(name, pa.string()) for name in STAGED_COLUMNS]))


def add_digests(digest: int, errors: pa.Table) -> int:
    """With those of more errors; the sum is the same in any order."""
    names = zip(*(errors[name].to_pylist() for name in ("error_key", "column", "reason")), strict=True)
    digests = (hashlib.sha256("\0".join(map(str, each)).encode()).digest() for each in names)
    return sum((int.from_bytes(each) for each in digests), digest) % _DIGESTS


def write_staged(filesystem: fs.FileSystem, path: str, rows: pa.Table) -> None:
    if rows.num_rows:
        pq.write_table(rows, path, filesystem=filesystem, compression="zstd", coerce_timestamps="us")


def write_staged_table(uri: str, rows: pa.Table) -> None:
    """The rows as one file in the folder `uri`, which is made where it is not there."""
    filesystem, path = open_storage(uri)
    filesystem.create_dir(path)
    write_staged(filesystem, f"{path}/000000.parquet", rows)


def _delete_folder(filesystem: fs.FileSystem, path: str) -> None:
    if filesystem.get_file_info(path).type != fs.FileType.NotFound:
        filesystem.delete_dir(path)
