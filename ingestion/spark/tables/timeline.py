"""The timeline of a Hudi table (version 9), read without a JVM: what was completed, what is pending, who is still alive.

Completed instants are files `<requested>_<completed>.<action>` with an Avro record inside; the completion time orders them, the requested one names them.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import fastavro

from ingestion.domain.checkpoint import Checkpoint, CommitStamp, latest_checkpoint, unfinished_snapshot
from ingestion.domain.log_moves import SCHEMA_VERSION
from ingestion.spark.tables.checkpoint_metadata import CHECKPOINT_KEY, RUN_KEY

if TYPE_CHECKING:  # loaded where a table is looked at: every process has this module, and few look at tables
    from pyarrow import fs

T = TypeVar("T")
WRITE_ACTIONS = ("commit", "deltacommit", "replacecommit")
COMPLETED_NAME = re.compile(rf"(\d+)_(\d+)\.({'|'.join(WRITE_ACTIONS)})", re.ASCII)
INSTANT_TIMES = re.compile(r"(\d{17})\d*(?:_(\d{17}))?[._]", re.ASCII)
TIMELINE_FOLDERS = (".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline")
"""Of the instants of a table, and of the table that it keeps about itself."""
TABLE_SERVICES = ("CLUSTER", "COMPACT")
"""Operations that move rows but change none: their statistics count all rows as inserts."""
MIN_COMMITS_KEPT = 60
"""The active timeline keeps at least this many; a checkpoint is stamped again at half of it."""
_MAX_BYTES_KEPT, _MAX_RECORD_BYTES = 64 * 1024**2, 1024**2
"""Of the records of commits that a process keeps, all together and each: they never change, and each job walks over all of its table's."""
_ESCAPED = re.compile(r"\\([:=#!\\ ])")
_MAX_READS = 4
"""A writer may be renaming what is being read: look again this often."""


class NotATable(ValueError):
    """A URI was given where no Hudi table is."""


class CommitArchived(LookupError):
    """A write was asked for that has left the timeline since it was listed."""


class DamagedTable(ValueError):
    """A file of a table's timeline is not what its name says. `fault`: that alone, in a sentence, for who knows another remedy."""

    def __init__(self, uri: str, name: str, fault: object) -> None:
        self.fault = f"The file {uri}/{name} cannot be read: {fault or 'it is not the record of a commit'}."
        super().__init__(
            f"{self.fault} Restore it from a backup; or drop the copy and bootstrap it again from its source."
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


class FileVersion(NamedTuple):
    size: int
    mtime_ns: int


class CompletedFile(NamedTuple):
    """A file of a completed write. All of it is its identity: a table that was dropped and made again has other files.

    `version` None: not asked for yet. The names of a folder of this machine are listed in a fraction of the time that versions take.
    """

    uri: str
    name: str
    version: FileVersion | None

    @property
    def instant(self) -> str:
        return self.name.partition("_")[0]

    @property
    def completed(self) -> str:
        return self.name.partition("_")[2].partition(".")[0]


class RecentCommits(NamedTuple):
    """The writes that were completed after an instant. `oldest`: the first completion that the archive has not taken, empty where there is none."""

    commits: tuple[LakeCommit, ...]
    oldest: str


@dataclass(frozen=True)
class Timeline:
    """The table at `uri`. Each look lists the storage again; records that were read before are kept.

    A followed table has tens of thousands of commits. What happens with each batch reads those that are new to it, which their names tell.
    """

    uri: str

    @property
    def exists(self) -> bool:
        from pyarrow import fs

        filesystem, path = self._storage
        return bool(filesystem.get_file_info(f"{path}/.hoodie/hoodie.properties").type == fs.FileType.File)

    def require(self) -> Timeline:
        """Itself, or NotATable with what is there instead."""
        from pyarrow import fs

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
        # Java writes what it could take for the end of a name with a backslash.
        return {name.strip(): _ESCAPED.sub(r"\1", value.strip()) for name, _, value in lines}

    def _read_properties(self) -> str:
        name = ".hoodie/hoodie.properties"
        try:
            text = self.read_bytes(name).decode()
        except UnicodeDecodeError as problem:
            raise DamagedTable(self.uri, name, problem) from problem
        if not text.strip():
            # A writer that renews it may be at work: it is looked at again.
            raise DamagedTable(self.uri, name, "it is empty")
        return text

    def commits(self) -> tuple[LakeCommit, ...]:
        """Completed writes in the order of completion. Reads all of them."""
        return self._retry_read(lambda: self.read(self.completed()))

    def read(self, files: Iterable[CompletedFile]) -> tuple[LakeCommit, ...]:
        """Raises FileNotFoundError where one has left the timeline since it was listed."""
        return tuple(self._retry_read(partial(_commits.get, file)) for file in files)

    def commits_since(self, began: str) -> RecentCommits:
        """In the order of completion; no other is read. `began`: an instant, empty for all."""

        def look() -> RecentCommits:
            files = self.completed()
            since = (file for file in files if file.completed > began)
            return RecentCommits(self.read(since), files[0].completed if files else "")

        return self._retry_read(look)

    def latest_completion(self) -> str:
        """When the newest write was completed, as an instant; empty where there is none."""
        return max((file.completed for file in self.completed()), default="")

    def latest_time(self) -> str:
        """Of all instants, requested or completed, of writes and of services, of the table and of its metadata table; empty where there is none."""
        matches = (INSTANT_TIMES.match(name) for folder in TIMELINE_FOLDERS for name in self.list_names(folder))
        return max((max(match[1], match[2] or "") for match in matches if match), default="")

    def checkpoint(self) -> Checkpoint | None:
        """Reads no commit that is older than the one that carries it."""
        return self._retry_read(
            lambda: latest_checkpoint(CommitStamp(commit.instant, commit.checkpoint) for commit in self.newest_first())
        )

    def commit_of_run(self, run_id: str, *, after: str = "") -> LakeCommit | None:
        """The commit that a run made; newest first, because it is mostly asked right after a write. `after`: of those completed after it."""
        return next((commit for commit in self.newest_first(after=after) if commit.run.get("run_id") == run_id), None)

    def newest_first(self, *, after: str = "") -> Iterator[LakeCommit]:
        """Completed writes from the last that was completed on, back to the instant `after`; each is read when it is asked for."""
        for file in reversed(self.completed()):
            if file.completed > after:
                yield self._retry_read(partial(_commits.get, file))

    def written_files(self, file: CompletedFile) -> list[tuple[str, str, str]]:
        """The data files that a completed write has written, in no order: path of the partition, id of the file group, path within the
        table. Raises CommitArchived."""
        return [(partition, stat["fileId"], stat["path"]) for partition, stat in self.write_stats(file)]

    def write_stats(self, file: CompletedFile) -> list[tuple[str, Mapping[str, Any]]]:
        """The table format's statistics of each of them, with the path of its partition. Raises CommitArchived."""
        return write_stats_of(self.record(file))

    def record(self, file: CompletedFile) -> Mapping[str, Any]:
        """Of a completed write, as the table format has it. Raises DamagedTable, and CommitArchived where it is not on the timeline any more: what it did is not known then."""
        name = f".hoodie/timeline/{file.name}"
        try:
            return self._retry_read(lambda: _parsed(self.uri, name, self.read_bytes(name), read_avro_record))
        except FileNotFoundError as problem:
            raise CommitArchived(f"The commit {file.instant} is no longer on the timeline of {self.uri}.") from problem

    def completed(self) -> list[CompletedFile]:
        """The files of the completed writes that are not archived, in the order of completion: one listing, and nothing is read."""
        versions = self._list(".hoodie/timeline")
        matches = sorted((match[2], match[0]) for match in map(COMPLETED_NAME.fullmatch, versions) if match)
        return [CompletedFile(self.uri, name, versions[name]) for _, name in matches]

    def list_names(self, folder: str) -> list[str]:
        return [*self._list(folder)]

    def _list(self, folder: str) -> dict[str, FileVersion | None]:
        """By name."""
        from pyarrow import fs

        filesystem, path = self._storage
        if isinstance(filesystem, fs.LocalFileSystem):
            with suppress(FileNotFoundError), os.scandir(f"{path}/{folder}") as entries:
                return dict.fromkeys(entry.name for entry in entries)
            return {}
        infos = filesystem.get_file_info(fs.FileSelector(f"{path}/{folder}", allow_not_found=True))
        return {info.base_name: FileVersion(info.size, info.mtime_ns) for info in infos}

    def read_bytes(self, name: str) -> bytes:
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
    from pyarrow import fs

    filesystem, path = fs.FileSystem.from_uri(uri.replace("s3a://", "s3://", 1))
    return filesystem, path.rstrip("/")


def instant_to_datetime(instant: str) -> datetime:
    """A Hudi instant (UTC, yyyyMMddHHmmssSSS) as a time."""
    return datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(
        microsecond=int(instant[14:17] or 0) * 1000, tzinfo=UTC
    )


def _version_of(file: CompletedFile) -> FileVersion:
    from pyarrow import fs

    filesystem, path = open_storage(file.uri)
    info = filesystem.get_file_info(f"{path}/.hoodie/timeline/{file.name}")
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"{file.uri}/.hoodie/timeline/{file.name} has left the timeline.")
    return FileVersion(info.size, info.mtime_ns)


def _read_commit(file: CompletedFile) -> LakeCommit:
    name = f".hoodie/timeline/{file.name}"
    match = COMPLETED_NAME.fullmatch(file.name)
    assert match is not None
    return _parsed(file.uri, name, Timeline(file.uri).read_bytes(name), partial(_parse_commit, match))


def _parsed(uri: str, name: str, content: bytes, parse: Callable[[bytes], T]) -> T:
    """Raises DamagedTable."""
    try:
        return parse(content)
    except Exception as problem:  # whatever a decoder raises for bytes that mean nothing
        fault = f"it is {len(content)} bytes long, and not the record of a commit: {type(problem).__name__}: {problem}"
        raise DamagedTable(uri, name, fault) from problem


def _parse_commit(name: re.Match[str], content: bytes) -> LakeCommit:
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


class _KeptCommits:
    """Those that were asked for last. Safe to be asked by several threads; two that ask for the same at once may both read it."""

    def __init__(self) -> None:
        self._commits: OrderedDict[tuple[str, str, FileVersion], LakeCommit] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def get(self, file: CompletedFile) -> LakeCommit:
        version = file.version or _version_of(file)
        key = (file.uri, file.name, version)
        with self._lock:
            if key in self._commits:
                self._commits.move_to_end(key)
                return self._commits[key]
        commit = _read_commit(file)
        if version.size <= _MAX_RECORD_BYTES:
            with self._lock:
                self._keep(key, commit)
        return commit

    def _keep(self, key: tuple[str, str, FileVersion], commit: LakeCommit) -> None:
        if key in self._commits:
            return
        self._commits[key] = commit
        self._bytes += key[2].size
        while self._bytes > _MAX_BYTES_KEPT:
            (_, _, version), _ = self._commits.popitem(last=False)
            self._bytes -= version.size


_commits = _KeptCommits()


def read_avro_record(content: bytes) -> Mapping[str, Any]:
    (record,) = fastavro.reader(io.BytesIO(content))
    assert isinstance(record, Mapping)
    return record


def write_stats_of(record: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    stats = (record.get("partitionToWriteStats") or {}).items()
    return [(partition, stat) for partition, those in stats for stat in those]


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
