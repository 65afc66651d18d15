"""The timeline of a Hudi table (version 9), read without a JVM: what was completed, what is pending, who is still alive.

Completed instants are files `<requested>_<completed>.<action>` with an Avro record inside; the completion time orders them, the requested one names them.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import fastavro
from pyarrow import fs

from ingestion.domain.checkpoint import Checkpoint, CommitStamp, latest_checkpoint, unfinished_snapshot
from ingestion.domain.write_races import REPLACING_OPERATIONS
from ingestion.spark.tables.checkpoint_metadata import CHECKPOINT_KEY, RUN_KEY

T = TypeVar("T")
_WRITES = ("commit", "deltacommit", "replacecommit")
_COMPLETED = re.compile(rf"(\d+)_(\d+)\.({'|'.join(_WRITES)})")
_PENDING = re.compile(rf"(\d+)\.(?:(?:{'|'.join(_WRITES)})\.(?:requested|inflight)|inflight)")
_TIMES = re.compile(r"(\d{17})\d*(?:_(\d{17}))?[._]")
_LEGACY_INSTANT = re.compile(r"\d+\.\w+(\.(requested|inflight))?")
_FOLDERS = (".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline")
"""Of the instants of a table, and of the table that it keeps about itself."""
TABLE_SERVICES = ("CLUSTER", "COMPACT")
"""Operations that move rows but change none: their statistics count all rows as inserts."""
MIN_COMMITS_KEPT = 60
"""The active timeline keeps at least this many; a checkpoint is stamped again at half of it."""
_MAX_BYTES_KEPT, _MAX_RECORD_BYTES = 64 * 1024**2, 1024**2
"""Of the records of commits that a process keeps, all together and each: they never change, and each job walks over all of its table's."""
_MAX_READS = 4
"""A writer may be renaming what is being read: look again this often."""


class NotATable(ValueError):
    """A URI was given where no Hudi table is."""


class CommitArchived(LookupError):
    """A write was asked for that has left the timeline since it was listed."""


class DamagedTable(ValueError):
    """A file of a table's timeline is not what its name says."""

    def __init__(self, uri: str, name: str, fault: object) -> None:
        super().__init__(
            f"The file {uri}/{name} cannot be read: {fault or 'it is not the record of a commit'}. Restore it from a backup; "
            "or drop the copy and bootstrap it again from its source."
        )


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

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Parsed anew each time."""
        position: dict[str, Any] | None = json.loads(self.checkpoint_json or "null")
        return position

    @property
    def is_part_of_load(self) -> bool:
        """The table was not loaded as a whole yet."""
        return unfinished_snapshot(self.checkpoint or {}) is not None


class _CompletedFile(NamedTuple):
    """A file of a completed write. All of it is its identity: a table that was dropped and made again has other files."""

    uri: str
    name: str
    size: int
    mtime_ns: int

    @property
    def instant(self) -> str:
        return self.name.partition("_")[0]

    @property
    def completed(self) -> str:
        return self.name.partition("_")[2].partition(".")[0]


@dataclass(frozen=True)
class Timeline:
    """The table at `uri`. Each look lists the storage again; records that were read before are kept."""

    uri: str

    @property
    def exists(self) -> bool:
        filesystem, path = self._storage
        return bool(filesystem.get_file_info(f"{path}/.hoodie/hoodie.properties").type == fs.FileType.File)

    def require(self) -> Timeline:
        """Itself, or NotATable with what is there instead."""
        if self.exists:
            return self
        filesystem, path = self._storage
        there = filesystem.get_file_info(path).type != fs.FileType.NotFound
        raise NotATable(
            f"{self.uri} {'is a folder' if there else 'does not exist, so it is no table'}"
            f"{' but not a Hudi table: it has no .hoodie/hoodie.properties' if there else ''}. Correct the URI, or bootstrap the dataset first."
        )

    @property
    def properties(self) -> dict[str, str]:
        text = self._retry_read(self._read_properties)
        lines = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
        return {name.strip(): value.strip() for name, _, value in lines}

    def _read_properties(self) -> str:
        name = ".hoodie/hoodie.properties"
        try:
            text = self._read_bytes(name).decode()
        except UnicodeDecodeError as problem:
            raise DamagedTable(self.uri, name, problem) from problem
        if not text.strip():
            # A writer that renews it may be at work: it is looked at again.
            raise DamagedTable(self.uri, name, "it is empty")
        return text

    def commits(self, *, but: Collection[str] = ()) -> tuple[LakeCommit, ...]:
        """Completed writes in the order of completion, without those whose instants are in `but`: they are not even read."""
        return self._retry_read(
            lambda: tuple(self._commit(file) for file in self._completed() if file.instant not in but)
        )

    def instants(self) -> list[str]:
        """Of the completed writes that are not archived."""
        return [file.instant for file in self._completed()]

    def latest_completion(self) -> str:
        """When the newest write was completed, as an instant; empty where there is none."""
        return max((file.completed for file in self._completed()), default="")

    def latest_time(self) -> str:
        """Of all instants, requested or completed, of writes and of services, of the table and of its metadata table; empty where there is none."""
        matches = (_TIMES.match(name) for folder in _FOLDERS for name in self._list_names(folder))
        return max((max(match[1], match[2] or "") for match in matches if match), default="")

    def torn_files(self, *, after: str) -> list[str]:
        """Of instants later than `after`: the files, within the table, that end too early to be read.

        Where a disk is full the table format gives a file its name although it could not write all of it. What is only planned may be empty.
        """
        return [
            f"{folder}/{name}"
            for folder in _FOLDERS
            for name in self._list_names(folder)
            if (match := _TIMES.match(name)) and match[1] > after and self._is_torn(f"{folder}/{name}", bool(match[2]))
        ]

    def _is_torn(self, name: str, is_completed: bool) -> bool:
        content = self._read_bytes(name)
        if not content:
            return is_completed
        try:
            _read_avro_record(content)
        except Exception:  # whatever a decoder raises for what is cut off
            return True
        return False

    def remove_file(self, name: str) -> None:
        """`name`: within the table."""
        filesystem, path = self._storage
        filesystem.delete_file(f"{path}/{name}")

    def checkpoint(self) -> Checkpoint | None:
        """Reads no commit that is older than the one that carries it."""
        return self._retry_read(
            lambda: latest_checkpoint(
                CommitStamp(commit.instant, commit.completed, commit.checkpoint) for commit in self.newest_first()
            )
        )

    def commit_of_run(self, run_id: str) -> LakeCommit | None:
        """The commit that a run made; newest first, because it is mostly asked right after a write."""
        return next((commit for commit in self.newest_first() if commit.run.get("run_id") == run_id), None)

    def parts_of_load(self, last: LakeCommit) -> list[LakeCommit]:
        """The earlier commits of a first load in several commits, where `last` has made it whole."""
        if (
            last.is_part_of_load
            or last.run.get("kind") != "bootstrap"
            or last.operation.lower() in REPLACING_OPERATIONS
        ):
            return []
        return [each for each in self.commits() if each.completed < last.completed and each.is_part_of_load]

    def newest_first(self) -> Iterator[LakeCommit]:
        """Completed writes from the last that was completed on, each read when it is asked for."""
        for file in reversed(self._completed()):
            yield self._retry_read(partial(self._commit, file))

    def written_files(self, instant: str) -> list[tuple[str, str, str]]:
        """The data files that a completed write has written, in no order: path of the partition, id of the file group, path within the
        table. Raises CommitArchived where the write is not on the timeline any more: which files it wrote is not known then."""
        file = next((file for file in self._completed() if file.instant == instant), None)
        if file is None:
            raise CommitArchived(f"The commit {instant} is no longer on the timeline of {self.uri}.")
        try:
            record = _read_avro_record(self._retry_read(partial(self._read_bytes, f".hoodie/timeline/{file.name}")))
        except FileNotFoundError as problem:
            raise CommitArchived(f"The commit {instant} has just left the timeline of {self.uri}.") from problem
        stats = (record.get("partitionToWriteStats") or {}).items()
        return [(partition, stat["fileId"], stat["path"]) for partition, those in stats for stat in those]

    def pending(self) -> dict[str, datetime | None]:
        """Writes that were begun and not completed: the instant, and its writer's last heartbeat (None: it has none)."""
        names = self._list_names(".hoodie/timeline")
        completed = {match[1] for match in map(_COMPLETED.fullmatch, names) if match}
        begun = {match[1] for match in map(_PENDING.fullmatch, names) if match}
        return {instant: self._heartbeat(instant) for instant in sorted(begun - completed)}

    def remove_heartbeat(self, instant: str) -> None:
        """So that the next cleaning rolls the write back. Only for one whose writer has certainly ended."""
        with suppress(FileNotFoundError):
            self.remove_file(f".hoodie/.heartbeat/{instant}")

    def legacy_instants(self) -> list[str]:
        """Instants as tables before version 8 keep them, beside the folder of the timeline."""
        return sorted(name for name in self._list_names(".hoodie") if _LEGACY_INSTANT.fullmatch(name))

    def _completed(self) -> list[_CompletedFile]:
        """In the order of completion."""
        matches = ((info, _COMPLETED.fullmatch(info.base_name)) for info in self._list(".hoodie/timeline"))
        files = [
            (match[2], _CompletedFile(self.uri, info.base_name, info.size, info.mtime_ns))
            for info, match in matches
            if match
        ]
        return [file for _, file in sorted(files)]

    def _commit(self, file: _CompletedFile) -> LakeCommit:
        return _commits.get(file)

    def _heartbeat(self, instant: str) -> datetime | None:
        filesystem, path = self._storage
        info = filesystem.get_file_info(f"{path}/.hoodie/.heartbeat/{instant}")
        return None if info.type == fs.FileType.NotFound else info.mtime

    def _list_names(self, folder: str) -> list[str]:
        return [info.base_name for info in self._list(folder)]

    def _list(self, folder: str) -> list[fs.FileInfo]:
        filesystem, path = self._storage
        infos: list[fs.FileInfo] = filesystem.get_file_info(fs.FileSelector(f"{path}/{folder}", allow_not_found=True))
        return infos

    def _read_bytes(self, name: str) -> bytes:
        filesystem, path = self._storage
        with filesystem.open_input_stream(f"{path}/{name}") as file:
            content: bytes = file.read()
            return content

    def _retry_read(self, look: Callable[[], T]) -> T:
        for attempt in range(_MAX_READS):
            try:
                return look()
            except (OSError, ValueError, EOFError, StopIteration):
                if attempt == _MAX_READS - 1:
                    raise
        raise AssertionError("unreachable")

    @cached_property
    def _storage(self) -> tuple[fs.FileSystem, str]:
        return open_storage(self.uri)


def open_storage(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system behind a URI, and the path in it without a slash at the end."""
    filesystem, path = fs.FileSystem.from_uri(uri.replace("s3a://", "s3://", 1))
    return filesystem, path.rstrip("/")


def instant_to_datetime(instant: str) -> datetime:
    """A Hudi instant (UTC, yyyyMMddHHmmssSSS) as a time."""
    return datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(
        microsecond=int(instant[14:17] or 0) * 1000, tzinfo=UTC
    )


def _read_commit(file: _CompletedFile) -> LakeCommit:
    name = f".hoodie/timeline/{file.name}"
    match = _COMPLETED.fullmatch(file.name)
    assert match is not None
    content = Timeline(file.uri)._read_bytes(name)
    try:
        return _parse_commit(match, content)
    except Exception as problem:  # whatever a decoder raises for bytes that mean nothing
        fault = f"it is {len(content)} bytes long, and not the record of a commit: {type(problem).__name__}: {problem}"
        raise DamagedTable(file.uri, name, fault) from problem


def _parse_commit(name: re.Match[str], content: bytes) -> LakeCommit:
    record = _read_avro_record(content)
    extra = record.get("extraMetadata") or {}
    run, partitions = json.loads(extra.get(RUN_KEY, "{}")), _partition_changes(record)
    return LakeCommit(
        instant=name[1],
        completed=name[2],
        completed_at=instant_to_datetime(name[2]) + timedelta(seconds=run.get("clock_ahead_s", 0.0)),
        operation=record.get("operationType") or "UNKNOWN",
        partitions=partitions,
        written=_keys_written(partitions, moved=run.get("moved", 0)),
        checkpoint_json=_checkpoint_json(extra),
        run=run,
        # The same text in nearly all commits of a table.
        avro_schema=sys.intern(extra.get("schema") or ""),
    )


def _checkpoint_json(extra: Mapping[str, str]) -> str:
    text = extra.get(CHECKPOINT_KEY, "null")
    return "" if json.loads(text) is None else text  # what is no JSON is damaged


class _KeptCommits:
    """Those that were asked for last. Safe to be asked by several threads; two that ask for the same at once may both read it."""

    def __init__(self) -> None:
        self._commits: OrderedDict[_CompletedFile, LakeCommit] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def get(self, file: _CompletedFile) -> LakeCommit:
        with self._lock:
            if file in self._commits:
                self._commits.move_to_end(file)
                return self._commits[file]
        commit = _read_commit(file)
        if file.size <= _MAX_RECORD_BYTES:
            with self._lock:
                self._keep(file, commit)
        return commit

    def _keep(self, file: _CompletedFile, commit: LakeCommit) -> None:
        if file in self._commits:
            return
        self._commits[file] = commit
        self._bytes += file.size
        while self._bytes > _MAX_BYTES_KEPT:
            oldest, _ = self._commits.popitem(last=False)
            self._bytes -= oldest.size


_commits = _KeptCommits()


def _read_avro_record(content: bytes) -> Mapping[str, Any]:
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
