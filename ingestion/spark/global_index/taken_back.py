"""Commits that were rolled back, alone or by a restore: which file groups they had written, as the timeline says."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ingestion.spark.file_groups import FileGroup
from ingestion.spark.tables.timeline import Timeline, read_avro_record

_FOLDER = ".hoodie/timeline"
_NAME = re.compile(r"\d+_\d+\.(rollback|restore)", re.ASCII)


class TakenBack(NamedTuple):
    """`groups`: whose newest version is an older one again, or which are gone. `completed`: when the last of the commits was taken back."""

    groups: set[FileGroup]
    completed: str


def rollbacks_on(timeline: Timeline) -> set[str]:
    """Their files: also of writes that were never completed, which look the same."""
    return {name for name in timeline.list_names(_FOLDER) if _NAME.fullmatch(name)}


def completion_of(name: str) -> str:
    """Of a file of `rollbacks_on`."""
    return name.partition("_")[2].partition(".")[0]


def taken_back(timeline: Timeline, instants: Collection[str]) -> TakenBack | None:
    """None: the timeline does not say it of all these commits. Of one that took the place of files it never does: these come back, and are not named."""
    known, groups, completed = set[str](), set[FileGroup](), ""
    for name in rollbacks_on(timeline):
        try:
            record = read_avro_record(timeline.read_bytes(f"{_FOLDER}/{name}"))
        except FileNotFoundError:
            continue  # archived just now
        for rollback in _rollbacks(record):
            commits = {each["commitTime"] for each in rollback["instantsRollback"] if each["action"] == "commit"}
            if commits.intersection(instants):
                known |= commits
                groups |= {*_groups(rollback)}
                completed = max(completed, completion_of(name))
    return TakenBack(groups, completed) if known.issuperset(instants) else None


def _rollbacks(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A restore has several."""
    restored = record.get("hoodieRestoreMetadata")
    if restored is None:
        yield record
    else:
        for rollbacks in restored.values():
            yield from rollbacks


def _groups(rollback: Mapping[str, Any]) -> Iterator[FileGroup]:
    for partition, deleted in rollback["partitionMetadata"].items():
        for path in (*deleted["successDeleteFiles"], *deleted["failedDeleteFiles"]):
            yield FileGroup(partition, path.rpartition("/")[2].partition("_")[0])
