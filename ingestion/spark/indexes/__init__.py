"""Indexes: which rows of a batch the table holds already, and where. The index decides between insert and update.

To add one: a module here with a class that has the three methods of `Index`; a line in INDEXES; a row in tests/spark/test_indexes.py.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from ingestion.spark.contract.spec import TableSpec
from lakehub.kernel.registry import Registry

if TYPE_CHECKING:  # the names are asked for where no Spark is
    from pyspark.sql import DataFrame, SparkSession


class Index(Protocol):
    def write_options(self, table: TableSpec) -> dict[str, str]:
        """Write options that every commit of such a table needs, the first one too."""

    def stored_rows(self, spark: SparkSession, table: TableSpec, partitions: Collection[str] | None) -> DataFrame:
        """The rows of the table that may have the keys of a batch which touches `partitions` (None: many), with Hudi's own columns."""

    def tag_locations(self, rows: DataFrame, table: TableSpec) -> tuple[DataFrame, dict[str, str]]:
        """Rows joined with the location of the stored row (Hudi's own columns, null for a new key) -> the frame to upsert, and its options."""


INDEXES: Registry[type[Index]] = Registry(
    "index",
    {
        "simple": "ingestion.spark.indexes.simple:SimpleIndex",
        "record_index": "ingestion.spark.indexes.record_index:RecordIndex",
    },
)


def index_names() -> tuple[str, ...]:
    return tuple(INDEXES)


def key_determines_partition(table: TableSpec) -> bool:
    """A key can only lie in one partition: the table has none, or the partition column is a part of the key."""
    return table.partition_column is None or table.partition_column in table.record_key
