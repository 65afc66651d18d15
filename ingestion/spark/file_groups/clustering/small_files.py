"""Which small files are worth putting together: where a partition has many of them, and nobody has written them lately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ingestion.spark.file_groups import BaseFile

_SMALL_SHARE = 4
"""A file of less than a fourth of the largest size is small."""
MAX_FILES = 256
"""In one run: Spark finds the rows of each by a condition of its own."""


@dataclass(frozen=True)
class ClusterLimits:
    """`min_files`: of so many small files in a partition at least. `max_bytes`: of all that are chosen together.

    `quiet_since`: an instant; a file written after it is left alone, since it is likely to be written again.
    """

    max_file_bytes: int
    min_files: int
    max_bytes: int
    quiet_since: str


def choose_small_files(files: Iterable[BaseFile], limits: ClusterLimits) -> list[BaseFile]:
    """Of the newest base files of a table, by partition: the partitions with the most small files first, as far as the bytes go.

    A part of a partition's files is chosen where all are too many, as long as it is `min_files` of them.
    """
    small_by_partition: dict[str, list[BaseFile]] = defaultdict(list)
    for file in files:
        if file.size * _SMALL_SHARE < limits.max_file_bytes and instant_of(file) <= limits.quiet_since:
            small_by_partition[file.group.partition].append(file)
    chosen: list[BaseFile] = []
    bytes_left = limits.max_bytes
    for small in sorted(small_by_partition.values(), key=lambda small: (-len(small), small[0].group.partition)):
        fitting = _smallest_within(small, bytes_left)[: MAX_FILES - len(chosen)]
        if len(fitting) >= limits.min_files:
            chosen += fitting
            bytes_left -= sum(file.size for file in fitting)
    return chosen


def instant_of(file: BaseFile) -> str:
    """Of the commit that wrote it."""
    return file.name.rpartition(".")[0].rpartition("_")[2]


def is_worth_it(before: Sequence[BaseFile], files_after: int) -> bool:
    """Files that compress well stay small however they are written: then nothing is won, and they would be chosen again and again."""
    return files_after * 2 <= len(before)


def _smallest_within(files: Iterable[BaseFile], most_bytes: int) -> list[BaseFile]:
    fitting, total = [], 0
    for file in sorted(files, key=lambda file: (file.size, file.name)):
        total += file.size
        if total > most_bytes:
            break
        fitting.append(file)
    return fitting
