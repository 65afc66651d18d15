"""The timeline of a Hudi table (version 9), read without a JVM: what was completed, what is pending, who is still alive.

Completed instants are files `<requested>_<completed>.<action>` with an Avro record inside; the completion time orders them, the requested one names them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ingestion.domain.checkpoint import Checkpoint, CommitStamp, latest_checkpoint
from ingestion.spark.tables.commits.kept_commits import CompletedFile, FileVersion, KeptCommits
from ingestion.spark.tables.commits.lake_commit import LakeCommit, parse_commit, read_avro_record

if TYPE_CHECKING:  # loaded where a table is looked at: every process has this module, and few look at tables
    from pyarrow import fs

T = TypeVar("T")
WRITE_ACTIONS = ("commit", "deltacommit", "replacecommit")
COMPLETED_NAME = re.compile(rf"(\d+)_(\d+)\.({'|'.join(WRITE_ACTIONS)})", re.ASCII)
INSTANT_TIMES = re.compile(r"(\d{17})\d*(?:_(\d{17}))?[._]", re.ASCII)
TIMELINE_FOLDERS = (".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline")
"""Of the instants of a table, and of the table that it keeps about itself."""
MIN_COMMITS_KEPT = 60
"""The active timeline keeps at least this many; a checkpoint is stamped again at half of it."""
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
        return {name.strip(): value.strip() for name, _, value in lines}

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
        table. Raises CommitArchived where the write is not on the timeline any more: which files it wrote is not known then."""
        try:
            record = read_avro_record(self._retry_read(partial(self.read_bytes, f".hoodie/timeline/{file.name}")))
        except FileNotFoundError as problem:
            raise CommitArchived(f"The commit {file.instant} is no longer on the timeline of {self.uri}.") from problem
        stats = (record.get("partitionToWriteStats") or {}).items()
        return [(partition, stat["fileId"], stat["path"]) for partition, those in stats for stat in those]

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
    content = Timeline(file.uri).read_bytes(name)
    try:
        return parse_commit(match, content)
    except Exception as problem:  # whatever a decoder raises for bytes that mean nothing
        fault = f"it is {len(content)} bytes long, and not the record of a commit: {type(problem).__name__}: {problem}"
        raise DamagedTable(file.uri, name, fault) from problem


_commits = KeptCommits(_version_of, _read_commit)
