"""The files that a commit writes anew: those that hold its rows, and those that new rows go to."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.rewriting import BLOOM_FILTER, FILTER_TYPE, footer_to_rewrite
from ingestion.spark.tables.timeline import open_storage

_READERS = 8
_MAX_FILTER_LENGTH = 64
"""Of a Bloom filter as text. With a larger one other writers leave out files that do not hold a key: it would have to know the new ones."""


@dataclass(frozen=True)
class StoredFile:
    """`bloom_filter`: as its footer has it, and of what kind; empty: it has none."""

    file: BaseFile
    rows: int
    bloom_filter: tuple[str, ...] = ()

    def has_room_for(self, rows: int, *, largest: int) -> bool:
        """In bytes. One that is half full gets none, as where Hudi chooses."""
        size = self.file.size
        return (
            all(len(text) <= _MAX_FILTER_LENGTH for text in self.bloom_filter)
            and size < largest // 2
            and size * (1 + rows / max(1, self.rows)) <= largest
        )


def read_footers(uri: str, files: Collection[BaseFile], columns: pa.Schema) -> dict[FileGroup, StoredFile] | None:
    """By their groups. None: only Hudi can write one of them anew."""
    filesystem, root = open_storage(uri)

    def look(file: BaseFile) -> StoredFile | None:
        footer = footer_to_rewrite(filesystem, f"{root}/{file.path}", columns)
        if footer is None:
            return None
        own = footer.own
        bloom_filter = (own[name].decode() for name in (BLOOM_FILTER, FILTER_TYPE) if BLOOM_FILTER in own)
        return StoredFile(file, footer.rows, tuple(bloom_filter))

    with ThreadPoolExecutor(_READERS) as readers:
        looked_at = [*readers.map(look, files)]
    stored = {each.file.group: each for each in looked_at if each is not None}
    return stored if len(stored) == len(looked_at) else None


def smallest_files(files: Iterable[BaseFile], partitions: Container[str]) -> dict[str, BaseFile]:
    """Of each of these partitions that has any."""
    largest_first = sorted(files, key=lambda file: (file.size, file.group), reverse=True)
    return {file.group.partition: file for file in largest_first if file.group.partition in partitions}


def groups_for_new_rows(
    new_rows: Mapping[str, int], smallest: Iterable[StoredFile], *, largest: int
) -> dict[str, FileGroup]:
    """By partition the group that takes its new rows: that of its smallest file, if all find room in it. Those of other partitions are written to files of their own."""
    return {
        group.partition: group
        for group, stored in ((stored.file.group, stored) for stored in smallest)
        if stored.has_room_for(new_rows[group.partition], largest=largest)
    }
