"""Whether a timeline may have commits that this process has not taken in: one whose folder is as it was is not listed again.

A file system may give two changes the same time, up to two seconds apart. So a folder counts as unchanged only once it was taken in
some seconds after its time was seen first: what came at the same time was there by then. No clock is compared with that of the files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ingestion.lake.lake_copies import table_uri
from lakehub.catalog.models import DatasetCopy
from lakehub.catalog.storages import local_path

SETTLED_AFTER_S = 5.0
TAKEN_IN_AGAIN_AFTER_S = 3600.0
"""Whatever the folder says: a file system may not keep such times."""


@dataclass(frozen=True)
class _FolderState:
    """`mark`: another one after each change that is far enough from the last. The times are monotonic, in seconds."""

    mark: tuple[str, int, int]
    seen_since: float
    settled_at: float | None = None


class TimelineChanges:
    """What one process has seen, by copy."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._states: dict[int, _FolderState] = {}

    def take_in(self, copy: DatasetCopy, record: Callable[[], object]) -> None:
        """Calls `record`, which takes the timeline of the copy in, unless it has nothing new. Raises what that raises."""
        mark, at = _mark_of(table_uri(copy)), self._monotonic()
        before = self._states.get(copy.pk)
        if before is None or before.mark != mark:
            before = None if mark is None else _FolderState(mark, seen_since=at)
        elif before.settled_at is not None and at - before.settled_at < TAKEN_IN_AGAIN_AFTER_S:
            return
        record()
        if before is not None:
            is_settled = at - before.seen_since >= SETTLED_AFTER_S
            self._states[copy.pk] = replace(before, settled_at=at if is_settled else None)


def _mark_of(uri: str) -> tuple[str, int, int] | None:
    """None: no folder of this machine, or none yet."""
    if not uri.startswith("file:"):
        return None
    try:
        folder = (local_path(uri) / ".hoodie" / "timeline").stat()
    except FileNotFoundError:
        return None
    return uri, folder.st_ino, folder.st_mtime_ns
