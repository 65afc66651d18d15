"""The files of a Hudi table as hudi-rs lists them, and the states that they stand for: no JVM, tens of milliseconds."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from hudi import HudiReadOptions, HudiTable

from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.engines.storage.damaged_tables import explain_damaged_table

T = TypeVar("T")
K = TypeVar("K")

_MAX_ATTEMPTS = 3
_WAIT_S = 0.05
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FileSlice:
    """One base file, the value of its partition (None: rows without one), and the logs of later changes to it."""

    path: str
    partition: str | None
    log_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableSnapshot:
    """The newest state: its files, its commit (empty: there is none yet) and when that commit was made."""

    slices: tuple[FileSlice, ...]
    instant: str
    committed_at: datetime | None


def read_snapshot(uri: str, *, column: str = "", value: str | None = None, logs: bool = False) -> TableSnapshot:
    """The files of the table at `uri`, or of the one partition where `column` is `value`. Raises CannotRead.

    With `logs` also of a merge-on-read table whose rows are not in its base files alone.
    """
    filters = None if value is None else [(column, "=", value)]
    listed = _with_retries(lambda: _list_files(uri, filters), uri)
    if value is not None:
        # hudi-rs lists all partitions where it cannot read the filter's column off the newest file's schema.
        listed = replace(
            listed, slices=tuple(file_slice for file_slice in listed.slices if file_slice.partition == value)
        )
    if not logs and any(file_slice.log_files for file_slice in listed.slices):
        raise CannotRead(
            f"{uri} is a merge-on-read table with log files, which are read by Spark only. "
            "Write the test with engine=spark, or compact the table."
        )
    return listed


def read_part(uri: str, part: Part, *, logs: bool = False) -> TableSnapshot:
    """The files of the partitions of `part` where their folders have their names; else those of the whole table. Raises CannotRead."""
    if not isinstance(part, OnePartition) or part.form is not None:
        return read_snapshot(uri, logs=logs)
    if not part.also:
        return read_snapshot(uri, column=part.column, value=part.value, logs=logs)
    listed = read_snapshot(uri, logs=logs)
    return replace(listed, slices=tuple(slice_ for slice_ in listed.slices if slice_.partition in part.values))


def part_states(uri: str, parts: Collection[Part]) -> dict[Part, str]:
    """A digest for each part, in one look at the table; without those that are empty. Raises CannotRead.

    A commit to one partition leaves those of the others as they were.
    """
    (only, *others) = parts
    if not others and isinstance(only, OnePartition) and only.form is None and not only.also:
        return _digests({only: read_part(uri, only, logs=True).slices})
    listed = read_snapshot(uri, logs=True).slices
    by_partition = _by_partition(listed)
    return _digests(
        {
            part: [file_slice for value in part.values for file_slice in by_partition.get(value, [])]
            if isinstance(part, OnePartition) and part.form is None
            else listed
            for part in parts
        }
    )


def partition_states(uri: str) -> dict[str, str]:
    """A digest for each partition that rows were written to. Raises CannotRead."""
    states = _digests(_by_partition(read_snapshot(uri, logs=True).slices))
    return {partition: state for partition, state in states.items() if partition is not None}


def _by_partition(slices: Collection[FileSlice]) -> dict[str | None, list[FileSlice]]:
    by_partition: dict[str | None, list[FileSlice]] = defaultdict(list)
    for file_slice in slices:
        by_partition[file_slice.partition].append(file_slice)
    return by_partition


def _digests(slices: Mapping[K, Collection[FileSlice]]) -> dict[K, str]:
    """Of names, sizes and times. Hudi never writes to a file again; but one may be damaged, or restored from a backup."""
    marks = {part: list(map(_slice_mark, file_slices)) for part, file_slices in slices.items()}
    return {part: sha256("\n".join(files).encode()).hexdigest()[:32] for part, files in marks.items() if files}


def _slice_mark(file_slice: FileSlice) -> str:
    """In an object store by name alone: what lies there is replaced whole or not at all."""
    names = (file_slice.path, *file_slice.log_files)
    try:
        stat = Path(file_slice.path).stat()
    except OSError:  # not on this machine, or gone
        return " ".join(names)
    return " ".join((*names, str(stat.st_size), str(stat.st_mtime_ns)))


def _list_files(uri: str, filters: list[tuple[str, str, str]] | None) -> TableSnapshot:
    table = HudiTable(uri)
    newest = _latest_write(table.get_timeline())
    if newest is None:
        return TableSnapshot((), "", None)
    options = HudiReadOptions(filters=filters) if filters else HudiReadOptions()
    base = local_path(uri).rstrip("/")
    slices = (
        FileSlice(
            f"{base}/{hudi_slice.base_file_relative_path()}",
            _partition_value(hudi_slice.partition_path),
            tuple(sorted(hudi_slice.log_files_relative_paths())) if hudi_slice.has_log_files() else (),
        )
        for hudi_slice in table.get_file_slices(options)
    )
    made_at = datetime.fromtimestamp(newest.epoch_mills / 1000, UTC)
    return TableSnapshot(tuple(sorted(slices, key=lambda file_slice: file_slice.path)), newest.timestamp, made_at)


def _latest_write(timeline: Any) -> Any:
    """The last completed write, or None; clustering rewrites files but brings no data."""
    done = [
        *timeline.get_completed_commits(),
        *timeline.get_completed_deltacommits(),
        *timeline.get_completed_replacecommits(),
    ]
    return max(done, key=lambda instant: instant.timestamp, default=None)


def _partition_value(partition_path: str) -> str | None:
    """The value in `flight_date=2026-11-16`; tables without Hive-style paths have the value alone."""
    value = unquote(partition_path.rpartition("=")[2])
    return None if value == _NO_PARTITION else value


def local_path(uri: str) -> str:
    """A file: URI as a path; other schemes as they are."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def _with_retries(read: Callable[[], T], uri: str) -> T:
    """A writer that cleans or rolls back may take a file away between listing and reading it: look again."""
    for last in (False,) * (_MAX_ATTEMPTS - 1) + (True,):
        try:
            return read()
        except Exception as failed:
            # hudi-rs raises HudiCoreError but does not export it.
            if type(failed).__name__ != "HudiCoreError":
                raise
            _refuse_missing_table(uri, failed)
            if last:
                raise CannotRead(explain_damaged_table(failed, _local_folder(uri), uri)) from failed
            time.sleep(_WAIT_S)
    raise AssertionError("the last try returns or raises")


def _local_folder(uri: str) -> Path | None:
    return Path(local_path(uri)) if urlsplit(uri).scheme in ("file", "") else None


def _refuse_missing_table(uri: str, failed: Exception) -> None:
    path = Path(local_path(uri))
    if urlsplit(uri).scheme in ("file", "") and not (path / ".hoodie").is_dir():
        problem = "is not a Hudi table: it has no .hoodie folder" if path.is_dir() else "does not exist"
        raise CannotRead(f"{uri} {problem}. Bootstrap the dataset, or correct the URI of this copy.") from failed
