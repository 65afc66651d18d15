"""The names of files of a Hudi table (version 9), as replication reads them: completed instants, pending ones, and data files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

REPLICATED_ACTIONS = ("commit", "deltacommit", "replacecommit", "clean")
"""What readers go by. Rollbacks and restores are taken over by what they took back, savepoints hold files of the source only."""
_COMPLETED = re.compile(rf"(\d+)_(\d+)\.({'|'.join(REPLICATED_ACTIONS)})", re.ASCII)
_WRITE_BEGUN = re.compile(
    r"(\d+)\.(?:(?:(?:delta|replace)?commit|clustering)\.(?:requested|inflight)|inflight)", re.ASCII
)
_BEGUN = re.compile(r"(\d+)\.(?:\w+\.)?(?:requested|inflight)", re.ASCII)
_BASE_FILE = re.compile(r"(?P<group>[^_]+)_[^_]+_(?P<instant>\d+)\.\w+", re.ASCII)
_LOG_FILE = re.compile(r"\.(?P<group>[^_]+)_(?P<instant>\d+)\.log\.\d+_[^_]*", re.ASCII)
"""Also the log of what a commit has changed, which readers of increments read."""


class CompletedInstant(NamedTuple):
    """`name`: of its file in the timeline. Ordered by completion."""

    completed: str
    requested: str
    action: str

    @property
    def name(self) -> str:
        return f"{self.requested}_{self.completed}.{self.action}"

    @property
    def is_write(self) -> bool:
        return self.action != "clean"


@dataclass(frozen=True)
class TimelineNames:
    """The files in the folder of a timeline, as it was listed once."""

    names: frozenset[str]

    @classmethod
    def of(cls, names: Iterable[str]) -> TimelineNames:
        return cls(frozenset(names))

    @cached_property
    def completed(self) -> tuple[CompletedInstant, ...]:
        """Those that are replicated, in the order of their completion."""
        matches = (_COMPLETED.fullmatch(name) for name in self.names)
        return tuple(sorted(CompletedInstant(match[2], match[1], match[3]) for match in matches if match))

    @property
    def writes(self) -> tuple[CompletedInstant, ...]:
        return tuple(instant for instant in self.completed if instant.is_write)

    @cached_property
    def pending(self) -> frozenset[str]:
        """When the writes were requested that are begun and not completed."""
        done = {instant.requested for instant in self.completed}
        return frozenset(match[1] for match in map(_WRITE_BEGUN.fullmatch, self.names) if match) - done

    @property
    def start(self) -> str:
        """The first request of a completed write: whatever was requested before is taken for completed by readers. Empty without one."""
        return min((instant.requested for instant in self.writes), default="")

    def files_of(self, instant: CompletedInstant) -> list[str]:
        """Its files in the order in which they are made: the one that completes it comes last."""
        return [*sorted(self._begun_files(instant.requested), key=lambda name: name.endswith("inflight")), instant.name]

    @property
    def pending_files(self) -> list[str]:
        """Of writes and cleanings that were begun and not completed."""
        completed = {instant.requested for instant in self.completed}
        return sorted(name for name in self.names if (begun := _BEGUN.fullmatch(name)) and begun[1] not in completed)

    def _begun_files(self, requested: str) -> list[str]:
        return [name for name in self.names if (begun := _BEGUN.fullmatch(name)) and begun[1] == requested]

    def is_committed(self, requested: str) -> bool:
        """Do readers of the table take a file of this instant for written?"""
        if not self.start or requested in self.pending:
            return False
        return requested < self.start or any(instant.requested == requested for instant in self.writes)


class DataFile(NamedTuple):
    """A file that holds rows, or the log of a change. `group`: with its partition, whose versions follow each other."""

    path: str
    group: str
    instant: str


def data_files(paths: Iterable[str]) -> list[DataFile]:
    """Those of `paths` within a table that are files of data."""
    files = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if not path.startswith(".hoodie/") and (match := _BASE_FILE.fullmatch(name) or _LOG_FILE.fullmatch(name)):
            files.append(DataFile(path, f"{folder}/{match['group']}", match["instant"]))
    return files


def replica_properties(properties: Mapping[str, str]) -> str:
    """`hoodie.properties` of the source as its replica has them: without the metadata table and its indexes, which are not copied."""
    left_out = ("hoodie.table.metadata.", "hoodie.table.index.")
    return "".join(f"{name}={value}\n" for name, value in properties.items() if not name.startswith(left_out))


def why_not_replicable(properties: Mapping[str, str]) -> str:
    """Empty: nothing is in the way."""
    kind, version = properties.get("hoodie.table.type", ""), properties.get("hoodie.table.version", "")
    if kind != "COPY_ON_WRITE":
        return f"its type is {kind or 'not known'}, and only COPY_ON_WRITE is replicated"
    return "" if version == "9" else f"its table version is {version or 'not known'}, and only version 9 is replicated"
