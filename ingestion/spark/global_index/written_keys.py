"""Which keys a commit has put into which file groups, and which it has removed, by its own metadata and the files that it wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.stored_rows import INSTANT, KEY
from ingestion.spark.tables.timeline import (
    TABLE_SERVICES,
    CompletedFile,
    Timeline,
    open_storage,
    write_stats_of,
)

_NO_COMMIT = "null"
_BASE_FILE = ".parquet"


class FileVersionGone(LookupError):
    """A version of a file was cleaned away: its group has a newer one."""

    def __init__(self, group: FileGroup) -> None:
        super().__init__(f"{group.partition}/{group.file_id}")
        self.group = group


class FileWrite(NamedTuple):
    """What a commit did to a file group. `path`, `previous`: within the table, of its version now and before; `previous` is empty for a new group."""

    group: FileGroup
    path: str
    previous: str
    inserts: int
    updates: int
    deletes: int

    @property
    def requests(self) -> int:
        """At most, to follow it: an entry is put for each row that the commit has written into a file with new ones; one is asked for and removed for each deleted."""
        rewritten = self.updates if self.inserts and self.previous else 0
        return self.inserts + rewritten + 2 * self.deletes


@dataclass(frozen=True)
class WrittenKeys:
    """Of a commit of the table at `uri`. `writes`: those that put a key somewhere, or remove one. `replaced`: the newest versions, each with its group, of
    groups whose place was taken: those that were not cleaned away by now. `by_service`: each row was in the table before, in another file."""

    uri: str
    instant: str
    writes: tuple[FileWrite, ...]
    replaced: tuple[tuple[FileGroup, str], ...] = ()
    by_service: bool = False

    @classmethod
    def of(cls, timeline: Timeline, file: CompletedFile, instants: Collection[str]) -> WrittenKeys:
        """`instants`: of all commits on the timeline. Raises CommitArchived."""
        record = timeline.record(file)
        writes = (_file_write(partition, stat) for partition, stat in write_stats_of(record))
        written = tuple(write for write in writes if write.inserts or write.deletes)
        by_service = record.get("operationType") in TABLE_SERVICES
        # What a table service has moved is all in its new files.
        groups = {} if by_service else record.get("partitionToReplaceFileIds") or {}
        replaced = (
            each for name, ids in groups.items() for each in _newest_versions(timeline.uri, name, ids, instants)
        )
        return cls(timeline.uri, file.instant, written, tuple(replaced), by_service)

    @property
    def requests(self) -> int:
        """At most, to follow it."""
        requests = sum(write.requests for write in self.writes)
        for group, path in self.replaced:
            with suppress(FileVersionGone):
                requests += 2 * rows_in(self.uri, group, path)
        return requests

    @property
    def new_rows(self) -> int:
        """At most."""
        return 0 if self.by_service else sum(write.inserts for write in self.writes)

    def keys_replaced(self) -> Iterator[tuple[FileGroup, list[str]]]:
        """In batches. They may be in other groups by now. What is cleaned away meanwhile is left out."""
        for group, path in self.replaced:
            with suppress(FileVersionGone):
                yield from ((group, keys) for keys in keys_in(self.uri, group, path))

    def added(self) -> Iterator[tuple[FileGroup, list[str]]]:
        """In batches. A file of a group that was there before holds rows that were only changed, too, and some of these may be among them.

        Raises FileVersionGone."""
        for write in self.writes:
            if write.inserts:
                since = self.instant if write.previous else ""
                yield from ((write.group, keys) for keys in keys_in(self.uri, write.group, write.path, instant=since))

    def removed(self) -> Iterator[tuple[FileGroup, set[str]]]:
        """Raises FileVersionGone."""
        for write in self.writes:
            if write.deletes and write.previous:
                before = {key for keys in keys_in(self.uri, write.group, write.previous) for key in keys}
                for keys in keys_in(self.uri, write.group, write.path):
                    before.difference_update(keys)
                yield write.group, before


def _newest_versions(
    uri: str, partition: str, file_ids: Collection[str], instants: Collection[str]
) -> Iterator[tuple[FileGroup, str]]:
    """Of these groups of a partition, as their files are named: id of the group, token of the task, instant. One of an instant that is not among `instants`, and
    not archived, was never committed."""
    filesystem, root = open_storage(uri)
    oldest, newest = min(instants), dict[str, tuple[str, str]]()
    folder = "/".join(filter(None, (root, partition)))
    for info in filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        words = info.base_name.removesuffix(_BASE_FILE).split("_")
        if len(words) != 3 or not info.base_name.endswith(_BASE_FILE) or words[0] not in file_ids:
            continue
        if words[2] in instants or words[2] < oldest:
            newest[words[0]] = max(newest.get(words[0], ("", "")), (words[2], info.base_name))
    for file_id, (_, name) in newest.items():
        yield FileGroup(partition, file_id), "/".join(filter(None, (partition, name)))


def _file_write(partition: str, stat: Mapping[str, Any]) -> FileWrite:
    before = stat.get("prevBaseFile") if stat.get("prevCommit") not in (None, "", _NO_COMMIT) else ""
    previous = "/".join(filter(None, (partition, str(before)))) if before else ""
    rows = (max(0, int(str(stat.get(name) or 0))) for name in ("numInserts", "numUpdateWrites", "numDeletes"))
    return FileWrite(FileGroup(partition, str(stat["fileId"])), str(stat["path"]), previous, *rows)


def keys_in(uri: str, group: FileGroup, path: str, *, instant: str = "") -> Iterator[list[str]]:
    """The keys of a base file in batches; with `instant` of the rows that this commit has written. Raises FileVersionGone."""
    with _opened(uri, group, path) as file:
        for batch in pq.ParquetFile(file).iter_batches(columns=[KEY, INSTANT] if instant else [KEY]):
            rows = batch.filter(pc.equal(batch[INSTANT], instant)) if instant else batch
            yield rows[KEY].to_pylist()


def rows_in(uri: str, group: FileGroup, path: str) -> int:
    """Of a base file. Raises FileVersionGone."""
    with _opened(uri, group, path) as file:
        rows: int = pq.ParquetFile(file).metadata.num_rows
        return rows


def _opened(uri: str, group: FileGroup, path: str) -> fs.NativeFile:
    filesystem, root = open_storage(uri)
    name = f"{root}/{path}"
    if filesystem.get_file_info(name).type == fs.FileType.NotFound:
        raise FileVersionGone(group)
    return filesystem.open_input_file(name)
