"""File groups: the files of a table that hold rows by key. Which of them may hold given keys, the rows that they hold, and a commit of a few rows to them.

All without a Spark job: Hudi is asked in the driver's JVM, and files are read by Arrow. For a batch of a few thousand rows at most.
"""

from __future__ import annotations

from typing import NamedTuple


class FileGroup(NamedTuple):
    """`partition`: the path within the table, such as `day=2026-11-16`, empty for a table without partitions."""

    partition: str
    file_id: str


class BaseFile(NamedTuple):
    """A file of a group: its name in the folder of the partition, and its size in bytes."""

    group: FileGroup
    name: str
    size: int

    @property
    def path(self) -> str:
        """Within the table."""
        return "/".join(filter(None, (self.group.partition, self.name)))
