"""The state that a part of a table is in: while it is the same, so are the answers to all measures of it.

Of a Hudi table it is the files of that part, so that a commit to one partition leaves the others as they were; of files
their names, sizes and times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import TypeVar

from lakehub.catalog.metadata.tables import Files, HudiCopy
from quality.engines.scans.parts import OnePartition, Part
from quality.engines.storage.hudi_snapshot import FileSlice, read_snapshot
from quality.engines.storage.plain_files import files_version

K = TypeVar("K")


def part_states(table: HudiCopy | Files, parts: Collection[Part]) -> Mapping[Part, str]:
    """A digest for each part, in one look at the table; without those that are empty. Raises CannotRead."""
    if isinstance(table, HudiCopy):
        return _states_of_slices(table, parts)
    version = files_version(table)
    return dict.fromkeys(parts, version) if version else {}


def partition_states(uri: str) -> Mapping[str, str]:
    """A digest for each partition of a Hudi table that rows were written to. Raises CannotRead."""
    files: dict[str, list[FileSlice]] = defaultdict(list)
    for file_slice in read_snapshot(uri, logs=True).slices:
        if file_slice.partition is not None:
            files[file_slice.partition].append(file_slice)
    return _digests(files)


def _states_of_slices(target: HudiCopy, parts: Collection[Part]) -> dict[Part, str]:
    (only, *others) = parts
    if not others and isinstance(only, OnePartition):
        return _digests({only: read_snapshot(target.uri, column=only.column, value=only.value, logs=True).slices})
    listed = read_snapshot(target.uri, logs=True).slices
    by_partition: dict[str | None, list[FileSlice]] = defaultdict(list)
    for file_slice in listed:
        by_partition[file_slice.partition].append(file_slice)
    return _digests({part: by_partition[part.value] if isinstance(part, OnePartition) else listed for part in parts})


def _digests(slices: Mapping[K, Collection[FileSlice]]) -> dict[K, str]:
    """Hudi never writes to a file again: other data has other names."""
    names = {
        part: [name for file_slice in file_slices for name in (file_slice.path, *file_slice.log_files)]
        for part, file_slices in slices.items()
    }
    return {part: sha256("\n".join(files).encode()).hexdigest()[:32] for part, files in names.items() if files}
