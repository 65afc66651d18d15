"""What an index is told of a batch: the partitions that it touches, and its keys where they are few enough to be named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.lookups import SEPARATOR
from ingestion.spark.file_groups.record_locations import (
    is_certain_type,
    is_empty_key,
    key_determines_partition,
    record_key,
)

MAX_NAMED_KEYS = 50_000
"""Of more, reading the whole table costs less than collecting them and looking each up."""


Locate = Callable[[Sequence[str]], "Iterable[FileGroup] | None"]
"""Keys -> the file groups that may hold them; None: it is not known."""


@dataclass(frozen=True)
class BatchKeys:
    """`frame`: rows with the table's key columns, in the types of the table. `partitions` None: too many to name."""

    frame: DataFrame
    rows: int
    partitions: Collection[str] | None
    table: TableSpec

    @cached_property
    def named(self) -> tuple[str, ...] | None:
        """Each key as Hudi writes it; None where there are too many, or how it writes them is not certain. One Spark job."""
        if self.rows > MAX_NAMED_KEYS or not all(is_certain_type(type_) for _, type_ in self.frame.dtypes):
            return None
        keys = self.frame.select(record_key(self.table), is_empty_key(self.table)).distinct().collect()
        if any(empty or SEPARATOR in key for key, empty in keys):
            return None
        return tuple(sorted(key for key, _ in keys))

    def in_located_partitions(self, rows: DataFrame, locate: Locate) -> DataFrame:
        """`rows` of the partitions that can hold the keys: by the keys themselves, or where `locate` finds some."""
        column = self.table.partition_column
        if column is None or key_determines_partition(self.table):
            return self.in_partitions(rows)
        groups = None if self.named is None else locate(self.named)
        if groups is None:
            return rows
        return rows.where(F.col(column).isin(*{group.partition.partition("=")[2] for group in groups}))

    def in_partitions(self, rows: DataFrame) -> DataFrame:
        """`rows` of the partitions that can hold the keys."""
        column = self.table.partition_column
        if column is None or self.partitions is None or not key_determines_partition(self.table):
            return rows
        return rows.where(F.col(column).isin(*self.partitions))
