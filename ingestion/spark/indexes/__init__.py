"""Indexes: which rows of a batch the table holds already. What an index finds tells update from insert, and where each row lives.

To add one: a module here with a class that has the methods of `Index`; a line in INDEXES. tests/spark/test_indexes.py runs against each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ingestion.spark.contract.spec import TableSpec
from lakehub.kernel.registry import Registry

if TYPE_CHECKING:  # the names are asked for where no Spark is
    from pyspark.sql import DataFrame, SparkSession

    from ingestion.spark.tables.batch_keys import BatchKeys


class Index(Protocol):
    def write_options(self, table: TableSpec) -> dict[str, str]:
        """Write options that every commit of such a table needs, the first one too."""

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        """The rows of the table that may have the keys of the batch, with Hudi's own columns; those of the whole table at worst."""


INDEXES: Registry[type[Index]] = Registry(
    "index",
    {
        "simple": "ingestion.spark.indexes.simple:SimpleIndex",
        "record_index": "ingestion.spark.indexes.record_index:RecordIndex",
    },
)


def index_names() -> tuple[str, ...]:
    return tuple(INDEXES)
