"""Which checkpoint counts. A checkpoint is stored in the commit that it belongs to; commits by other writers carry none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_COMMIT_MARK = "#"


def next_commit_id(commit_id: str) -> str:
    """A run that commits several times: its commits are known by RUN, RUN#2, RUN#3."""
    return commit_id_of(run_of_commit(commit_id), number_of_commit(commit_id) + 1)


def commit_id_of(run: str, number: int) -> str:
    """`number`: from 1 on."""
    return run if number == 1 else f"{run}{_COMMIT_MARK}{number}"


def number_of_commit(commit_id: str) -> int:
    """Of a load its number among the commits of all runs that have worked on it."""
    return int(commit_id.partition(_COMMIT_MARK)[2] or 1)


def run_of_commit(commit_id: str) -> str:
    """The run that made it."""
    return commit_id.partition(_COMMIT_MARK)[0]


Position = Mapping[str, Any]
"""Where a source stands: opaque to everyone but the source, and plain JSON."""


_UNFINISHED_KEY = "unfinished_snapshot"
"""The checkpoint of a table that a bootstrap has loaded in part has only this key."""


@dataclass(frozen=True)
class UnfinishedSnapshot:
    """Where a bootstrap goes on: `rows` of `total` (None: not known) were read in so many `commits`; `after` is the source's own.

    Not all of the commits need be on the timeline: of a long load the archive has taken the first ones."""

    after: Position
    rows: int
    total: int | None = None
    commits: int = 0

    @property
    def position(self) -> Position:
        facts = {"after": self.after, "rows": self.rows, "total": self.total, "commits": self.commits}
        return {_UNFINISHED_KEY: facts}


def unfinished_snapshot(position: Position) -> UnfinishedSnapshot | None:
    """None: the table was loaded as a whole, and `position` is where its changes go on."""
    facts = position.get(_UNFINISHED_KEY)
    return None if facts is None else UnfinishedSnapshot(**facts)


_STORED_KEY = "stored_rows"
"""Beside the keys of the source in the checkpoint of an append-only table, which is inserted into without a look at its rows."""


def source_position(position: Position) -> Position:
    """What the source made of it, without the note of our own."""
    return {name: value for name, value in position.items() if name != _STORED_KEY}


def holds_nothing_beyond(position: Position) -> bool:
    """Is it certain that the table holds no row that the source will hand over as new from here on?"""
    return bool(position.get(_STORED_KEY, {}).get("nothing_beyond"))


def has_stored_note(position: Position) -> bool:
    return _STORED_KEY in position


def with_rows_loaded_upto(position: Position, upto: str | None) -> Position:
    """After a load that may have read what lies beyond the position: all that the source had, as far as `upto` (ISO 8601 in UTC, None: no limit)."""
    return {**source_position(position), _STORED_KEY: {"loaded_upto": upto}}


def with_rows_followed(position: Position, before: Position, *, upto: str | None, is_whole: bool) -> Position:
    """After the changes from `before` to `position`. `is_whole`: the source had no more than what was read, as far as `upto`.

    A whole reading has passed all that an earlier load can have read, unless that read to a later time.
    """
    note = before.get(_STORED_KEY, {"loaded_upto": ""})
    if not note.get("nothing_beyond") and is_whole and _reaches(upto, note["loaded_upto"]):
        note = {"nothing_beyond": True}
    return {**source_position(position), _STORED_KEY: note}


def _reaches(upto: str | None, loaded_upto: str | None) -> bool:
    if upto is None or loaded_upto is None:
        return upto is None
    return not loaded_upto or datetime.fromisoformat(upto) >= datetime.fromisoformat(loaded_upto)


@dataclass(frozen=True)
class CommitStamp:
    """What one completed commit says: its instant, and its checkpoint, if it carries one."""

    instant: str
    checkpoint: Position | None


@dataclass(frozen=True)
class Checkpoint:
    """A position, the commit that carries it, and how many later commits carry none."""

    position: Position
    instant: str
    commits_since: int


def latest_checkpoint(stamps: Iterable[CommitStamp]) -> Checkpoint | None:
    """That of the newest commit which carries one. `stamps`: from the last that was completed (not requested) on; none that is
    older than that commit is asked for."""
    for distance, stamp in enumerate(stamps):
        if stamp.checkpoint is not None:
            return Checkpoint(stamp.checkpoint, stamp.instant, distance)
    return None


def is_restamp_due(checkpoint: Checkpoint, *, commits_kept: int) -> bool:
    """Stamp again before the archive takes the commit that carries it: at half of what the timeline keeps."""
    return checkpoint.commits_since * 2 >= commits_kept
