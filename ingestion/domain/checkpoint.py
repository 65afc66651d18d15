"""Which checkpoint counts. A checkpoint is stored in the commit that it belongs to; commits by other writers carry none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Position = Mapping[str, Any]
"""Where a source stands: opaque to everyone but the source, and plain JSON."""


@dataclass(frozen=True)
class CommitStamp:
    """What one completed commit says: when it was completed, and its checkpoint, if it carries one."""

    instant: str
    completed: str
    checkpoint: Position | None


@dataclass(frozen=True)
class Checkpoint:
    """A position, the commit that carries it, and how many later commits carry none."""

    position: Position
    instant: str
    commits_since: int


def latest_checkpoint(stamps: Iterable[CommitStamp]) -> Checkpoint | None:
    """Walk back in the order of completion (not of request) to the newest commit that carries a checkpoint."""
    newest_first = sorted(stamps, key=lambda stamp: (stamp.completed, stamp.instant), reverse=True)
    for distance, stamp in enumerate(newest_first):
        if stamp.checkpoint is not None:
            return Checkpoint(stamp.checkpoint, stamp.instant, distance)
    return None


def is_restamp_due(checkpoint: Checkpoint, *, commits_kept: int) -> bool:
    """Stamp again before the archive takes the commit that carries it: at half of what the timeline keeps."""
    return checkpoint.commits_since * 2 >= commits_kept
