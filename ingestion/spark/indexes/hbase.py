"""The Global Index: where each key lives is in HBase, for tables that are too large for any other look-up.

It is built from the table by HFiles, and goes after the table's timeline before it is asked. What it says is where to look, so an entry that is out of date
does no harm; a key without one would be inserted twice, so what was committed is followed first, whoever committed it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from ingestion.index.client import IndexClient, IndexTableMissing
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.lookups import newest_files_of
from ingestion.spark.file_groups.record_locations import options_without_index
from ingestion.spark.global_index.building import build
from ingestion.spark.global_index.following import NotFollowed, follow, groups_of
from ingestion.spark.global_index.looking_up import groups_of_batch, open_client, rows_of_groups
from ingestion.spark.global_index.scanning import entries_of_index
from ingestion.spark.tables.hudi import has_metadata_table, read_table
from ingestion.spark.tables.timeline import Timeline

_CLIENTS: dict[str, tuple[GlobalIndexSpec, IndexClient]] = {}
"""By the table's URI, in this process, for as long as jobs are told the same of the index. Connections are opened again when they are lost."""
PREPARES_WITHIN_S = 10.0
"""So long HBase may be away before a job is put off that has not begun."""


class NoGlobalIndex(ValueError):
    """A table is to have its index in HBase, and the spec does not say in which."""


class _Asked(NamedTuple):
    """Which keys, and after which commit: they lie where they lay as long as there is none."""

    uri: str
    keys: frozenset[str]
    latest_completion: str


class HBaseIndex:
    """Of one attempt to commit."""

    def __init__(self) -> None:
        self._located: tuple[_Asked | None, set[FileGroup]] = (None, set())

    def write_options(self, table: TableSpec) -> dict[str, str]:
        """New rows go into files of their own: so a commit says which keys it has inserted. Small files are put together by clustering."""
        return options_without_index(table) | {"hoodie.parquet.small.file.limit": "0"}

    def prepare(self, spark: SparkSession, table: TableSpec) -> None:
        """Follows what was committed: the look-up within the permit has little left. Where it cannot go on it is built there. A job that HBase does not
        answer ends before it has read anything. An append-only table looks up what comes late, and follows then."""
        if Timeline(table.uri).exists and not table.append_only:
            client = open_client(_spec_of(table), patience_s=PREPARES_WITHIN_S)
            with closing(client), suppress(NotFollowed, IndexTableMissing):
                follow(spark, table, client)

    def settle(self, spark: SparkSession, table: TableSpec, rows: int) -> None:
        """After a load all is new: the index is made at once."""
        self.rebuild(spark, table)

    def is_up_to_date(self, table: TableSpec) -> bool:
        """A metadata table of another index is there until Spark's next commit removes it."""
        return not has_metadata_table(table.uri)

    def entries(self, spark: SparkSession, table: TableSpec, scratch: str) -> DataFrame | None:
        client = client_of(table)
        follow(spark, table, client)
        return entries_of_index(spark, _spec_of(table), client.regions())

    def limitation(self, table: TableSpec) -> str | None:
        return ""

    def rebuild(self, spark: SparkSession, table: TableSpec) -> None:
        build(spark, table, _spec_of(table), client_of(table))

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        rows = read_table(spark, table)
        if batch.named is not None:
            groups = self._locate(spark, table, batch.named)
        else:
            self._follow(spark, table)
            many = groups_of_batch(spark, _spec_of(table), table, batch)
            if many is None:
                return batch.in_partitions(rows)
            groups = many
        return rows_of_groups(rows, table, groups)

    def base_files(
        self, spark: SparkSession, table: TableSpec, keys: Sequence[str], partitions: Collection[str]
    ) -> Sequence[BaseFile] | None:
        if not self.is_up_to_date(table):
            return None
        if not keys:
            return []
        return newest_files_of(spark, table.uri, self._locate(spark, table, keys))

    def _locate(self, spark: SparkSession, table: TableSpec, keys: Sequence[str]) -> set[FileGroup]:
        """A batch that is too much for the driver becomes Spark's, and its keys are not asked for again."""
        self._follow(spark, table)
        asked = _Asked(table.uri, frozenset(keys), Timeline(table.uri).latest_completion())
        if self._located[0] != asked:
            self._located = asked, groups_of(client_of(table), keys)
        return self._located[1]

    def _follow(self, spark: SparkSession, table: TableSpec) -> None:
        try:
            follow(spark, table, client_of(table))
        except (NotFollowed, IndexTableMissing):
            self.rebuild(spark, table)


def client_of(table: TableSpec) -> IndexClient:
    spec = _spec_of(table)
    known_spec, client = _CLIENTS.get(table.uri, (None, None))
    if client is None or known_spec != spec:
        if client is not None:
            client.close()
        client = open_client(spec)
        _CLIENTS[table.uri] = spec, client
    return client


def _spec_of(table: TableSpec) -> GlobalIndexSpec:
    if table.global_index is None:
        raise NoGlobalIndex(
            f"The table `{table.name}` has the index `hbase`, and no HBase is named for it. Register a cluster for its data center."
        )
    return table.global_index
