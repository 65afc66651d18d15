"""The files of completed writes, and the commits that a process keeps of those that it has read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from ingestion.spark.tables.commits.lake_commit import LakeCommit

MAX_BYTES_KEPT, _MAX_RECORD_BYTES = 64 * 1024**2, 1024**2
"""Of the records of commits that a process keeps, all together and each: they never change, and each job walks over all of its table's."""


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


class KeptCommits:
    """Those that were asked for last. Safe to be asked by several threads; two that ask for the same at once may both read it."""

    def __init__(
        self, version_of: Callable[[CompletedFile], FileVersion], read: Callable[[CompletedFile], LakeCommit]
    ) -> None:
        self._version_of, self._read = version_of, read
        self._commits: OrderedDict[tuple[str, str, FileVersion], LakeCommit] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def get(self, file: CompletedFile) -> LakeCommit:
        version = file.version or self._version_of(file)
        key = (file.uri, file.name, version)
        with self._lock:
            if key in self._commits:
                self._commits.move_to_end(key)
                return self._commits[key]
        commit = self._read(file)
        if version.size <= _MAX_RECORD_BYTES:
            with self._lock:
                self._keep(key, commit)
        return commit

    def _keep(self, key: tuple[str, str, FileVersion], commit: LakeCommit) -> None:
        if key in self._commits:
            return
        self._commits[key] = commit
        self._bytes += key[2].size
        while self._bytes > MAX_BYTES_KEPT:
            (_, _, version), _ = self._commits.popitem(last=False)
            self._bytes -= version.size
