"""What an index is told of a batch: the partitions that it touches, and its keys where they are few enough to be named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.tables.record_locations import key_determines_partition, record_key

MAX_NAMED_KEYS = 1000
"""Each is a question to the JVM: of more, reading the partitions costs less."""
_NAMED_TYPES = frozenset({"string", "int", "bigint"})
"""Types that Hudi writes into a key as Spark casts them to text. A key that is written otherwise would not be found, and be inserted twice."""


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
        if self.rows > MAX_NAMED_KEYS or not {type_ for _, type_ in self.frame.dtypes} <= _NAMED_TYPES:
            return None
        # Hudi has a word of its own for an empty text within a key.
        is_empty = reduce(or_, (F.col(name).cast("string") == "" for name in self.table.record_key))
        keys = self.frame.select(record_key(self.table), is_empty).distinct().collect()
        return None if any(empty for _, empty in keys) else tuple(sorted(key for key, _ in keys))

    def in_partitions(self, rows: DataFrame) -> DataFrame:
        """`rows` of the partitions that can hold the keys."""
        column = self.table.partition_column
        if column is None or self.partitions is None or not key_determines_partition(self.table):
            return rows
        return rows.where(F.col(column).isin(*self.partitions))
