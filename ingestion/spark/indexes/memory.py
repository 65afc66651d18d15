"""The keys of the tables in the memory of the process that writes them, for up to two million keys that do not say their partition.

No metadata table is kept up. A process that begins reads the keys of the whole table once, and of each commit those of the files that it wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.key_map import KeyMaps, TooManyKeys
from ingestion.spark.file_groups.lookups import newest_files_of
from ingestion.spark.file_groups.record_locations import options_without_index
from ingestion.spark.indexes import Permit, WholeIndex
from ingestion.spark.tables.hudi import has_metadata_table, read_table

_KEY_MAPS = KeyMaps()


class MemoryIndex(WholeIndex):
    def write_options(self, table: TableSpec) -> dict[str, str]:
        return options_without_index(table)

    def prepare(self, spark: SparkSession, table: TableSpec) -> None:
        """Its keys are read when they are asked for."""

    def settle(self, spark: SparkSession, table: TableSpec, rows: int) -> None:
        """Nothing is kept beside the table."""

    def is_up_to_date(self, table: TableSpec) -> bool:
        """A metadata table of another index is there until Spark's next commit removes it."""
        return not has_metadata_table(table.uri)

    def entries(self, spark: SparkSession, table: TableSpec, scratch: str) -> DataFrame | None:
        """Those of this process. A key that is gone may still be among them."""
        try:
            _KEY_MAPS.of(table.uri).write_entries(spark, scratch)
        except TooManyKeys:
            return None
        return spark.read.schema("key string, partition string, file_id string").parquet(scratch)

    def rebuild(self, spark: SparkSession, table: TableSpec, permit: Permit = nullcontext) -> None:
        with suppress(TooManyKeys):
            _KEY_MAPS.forget(table.uri).groups_of(spark, ())

    def limitation(self, table: TableSpec) -> str | None:
        return _KEY_MAPS.limitation(table.uri)

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        return batch.in_located_partitions(read_table(spark, table), partial(self._locate, spark, table))

    def base_files(
        self, spark: SparkSession, table: TableSpec, keys: Sequence[str], partitions: Collection[str]
    ) -> Sequence[BaseFile] | None:
        if not keys:
            return [] if self.is_up_to_date(table) else None
        groups = self._locate(spark, table, keys)
        if groups is None:
            return None
        return newest_files_of(spark, table.uri, groups)

    def _locate(self, spark: SparkSession, table: TableSpec, keys: Sequence[str]) -> set[FileGroup] | None:
        """None: the table has too many keys, or another index."""
        try:
            return _KEY_MAPS.of(table.uri).groups_of(spark, keys) if self.is_up_to_date(table) else None
        except TooManyKeys:
            return None
