"""How far each topic of a log is committed, and where its producers stand: one small file, which is replaced as a whole by each commit."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ingestion.changelog import ChangelogError, ProducerPosition

_FILE = "marks.json"


@dataclass(frozen=True)
class TopicMark:
    """`first` and `next`: the offsets of the oldest message that is kept, and of the one to come. `segment`: the offset by which the newest segment is
    named; `bytes` of it are committed."""

    first: int = 0
    next: int = 0
    segment: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class ProducerMark:
    """`opened`: how often it was; who holds another number is shut out."""

    opened: int = 0
    position: ProducerPosition | None = None


@dataclass
class Marks:
    topics: dict[str, TopicMark] = field(default_factory=dict)
    producers: dict[str, ProducerMark] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> Marks:
        """Raises ChangelogError."""
        file = root / _FILE
        try:
            stored = json.loads(file.read_bytes())
            return cls(
                {name: TopicMark(**mark) for name, mark in stored["topics"].items()},
                {name: ProducerMark(**mark) for name, mark in stored["producers"].items()},
            )
        except FileNotFoundError:
            if any(root.glob("topic-*")):
                raise ChangelogError(
                    f"The marks of the changelog, {file}, are gone, and its topics are there. Restore the file from a backup of the folder; "
                    "without it nobody knows what was committed."
                ) from None
            return cls()
        except (ValueError, TypeError, KeyError) as problem:
            raise ChangelogError(
                f"The marks of the changelog, {file}, cannot be read ({problem}). Restore the file from a backup of the folder."
            ) from problem

    @classmethod
    def seen(cls, root: Path) -> Marks:
        """For readers, who change nothing of it: read again only where it was replaced since. Raises ChangelogError."""
        try:
            status = (root / _FILE).stat()
        except FileNotFoundError:
            return cls.read(root)
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        known = _SEEN.get(root)
        if known is not None and known[0] == version:
            return known[1]
        marks = cls.read(root)
        if time.time_ns() - status.st_mtime_ns > _TICK_NS:
            _SEEN[root] = (version, marks)
        return marks

    def write(self, root: Path) -> None:
        """On disk when it returns."""
        content: dict[str, Any] = asdict(self)
        new = root / f".{_FILE}.new"
        with new.open("wb") as file:
            file.write(json.dumps(content, ensure_ascii=False).encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(root / _FILE)
        sync_folder(root)


_TICK_NS = 100_000_000
"""Two commits in so short a time may leave files that cannot be told apart: nothing of them is kept."""
_SEEN: dict[Path, tuple[tuple[int, int, int], Marks]] = {}
"""By log, with what tells one version of the file from another. A log that many look at is read once for all of them."""


def sync_folder(folder: Path) -> None:
    """The names of its files are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
