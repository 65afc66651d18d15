"""Writes that were begun and not completed: which there are, whether their writers are alive, and what those that died have cut off."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

from pyarrow import fs

from ingestion.spark.tables.timeline import (
    COMPLETED_NAME,
    INSTANT_TIMES,
    TIMELINE_FOLDERS,
    WRITE_ACTIONS,
    Timeline,
    open_storage,
    read_avro_record,
)

_PENDING = re.compile(rf"(\d+)\.(?:(?:{'|'.join(WRITE_ACTIONS)})\.(?:requested|inflight)|inflight)", re.ASCII)


def pending_writes(timeline: Timeline) -> dict[str, datetime | None]:
    """Of each the instant, and its writer's last heartbeat (None: it has none)."""
    names = timeline.list_names(".hoodie/timeline")
    completed = {match[1] for match in map(COMPLETED_NAME.fullmatch, names) if match}
    begun = {match[1] for match in map(_PENDING.fullmatch, names) if match}
    return {instant: _heartbeat(timeline, instant) for instant in sorted(begun - completed)}


def remove_heartbeat(timeline: Timeline, instant: str) -> None:
    """So that the next cleaning rolls the write back. Only for one whose writer has certainly ended."""
    with suppress(FileNotFoundError):
        remove_file(timeline, f".hoodie/.heartbeat/{instant}")


def remove_file(timeline: Timeline, name: str) -> None:
    """`name`: within the table."""
    filesystem, path = open_storage(timeline.uri)
    filesystem.delete_file(f"{path}/{name}")


def torn_files(timeline: Timeline, *, after: str) -> list[str]:
    """Of instants later than `after`: the files, within the table, that end too early to be read.

    Where a disk is full the table format gives a file its name although it could not write all of it. What is only planned may be empty.
    """
    return [
        f"{folder}/{name}"
        for folder in TIMELINE_FOLDERS
        for name in timeline.list_names(folder)
        if (match := INSTANT_TIMES.match(name))
        and match[1] > after
        and _is_torn(timeline.read_bytes(f"{folder}/{name}"), is_completed=bool(match[2]))
    ]


def _is_torn(content: bytes, *, is_completed: bool) -> bool:
    if not content:
        return is_completed
    try:
        read_avro_record(content)
    except Exception:  # whatever a decoder raises for what is cut off
        return True
    return False


def _heartbeat(timeline: Timeline, instant: str) -> datetime | None:
    filesystem, path = open_storage(timeline.uri)
    info = filesystem.get_file_info(f"{path}/.hoodie/.heartbeat/{instant}")
    return None if info.type == fs.FileType.NotFound else info.mtime
