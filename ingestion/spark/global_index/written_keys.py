"""Which keys a commit has put into which file groups, and which it has removed, by its own metadata and the files that it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.stored_rows import INSTANT, KEY
from ingestion.spark.tables.timeline import CompletedFile, Timeline, open_storage

_NO_COMMIT = "null"


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
        return (self.inserts + (self.updates if self.previous else 0) if self.inserts else 0) + 2 * self.deletes


@dataclass(frozen=True)
class WrittenKeys:
    """Of a commit of the table at `uri`. `writes`: those that put a key somewhere, or remove one."""

    uri: str
    instant: str
    writes: tuple[FileWrite, ...]

    @classmethod
    def of(cls, timeline: Timeline, file: CompletedFile) -> WrittenKeys:
        """Raises CommitArchived."""
        writes = (_file_write(partition, stat) for partition, stat in timeline.write_stats(file))
        return cls(timeline.uri, file.instant, tuple(write for write in writes if write.inserts or write.deletes))

    @property
    def requests(self) -> int:
        """At most, to follow it."""
        return sum(write.requests for write in self.writes)

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
