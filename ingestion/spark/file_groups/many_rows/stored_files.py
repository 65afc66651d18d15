"""The files that a commit writes anew: those that hold its rows, and those that new rows go to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

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
        rows = pq.read_metadata(f"{root}/{file.path}", filesystem=filesystem).num_rows
        bloom_filter = (footer[name].decode() for name in (BLOOM_FILTER, FILTER_TYPE) if BLOOM_FILTER in footer)
        return StoredFile(file, rows, tuple(bloom_filter))

    with ThreadPoolExecutor(_READERS) as readers:
        looked_at = [*readers.map(look, files)]
    stored = {each.file.group: each for each in looked_at if each is not None}
    return stored if len(stored) == len(looked_at) else None


def groups_for_new_rows(
    new_rows: Mapping[str, int], files: Iterable[StoredFile], *, largest: int
) -> dict[str, FileGroup]:
    """By partition the group that takes its new rows: the smallest, if all find room in it. Those of other partitions are written to files of their own."""
    by_partition = defaultdict[str, list[StoredFile]](list)
    for each in files:
        by_partition[each.file.group.partition].append(each)
    smallest = {
        partition: min(by_partition[partition], key=lambda each: (each.file.size, each.file.group))
        for partition in new_rows.keys() & by_partition.keys()
    }
    return {
        partition: stored.file.group
        for partition, stored in smallest.items()
        if stored.has_room_for(new_rows[partition], largest=largest)
    }
