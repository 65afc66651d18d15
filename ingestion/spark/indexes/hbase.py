"""The Global Index: where each key lives is in HBase, for tables that are too large for any other look-up.

It is built from the table by HFiles, and goes after the table's timeline before it is asked. What it says is where to look, so an entry that is out of date
does no harm; a key without one would be inserted twice, so what was committed is followed first, whoever committed it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, nullcontext, suppress
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from ingestion.index.client import IndexClient, IndexTableMissing
from ingestion.index.entries import Entry
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.batch_keys import MAX_NAMED_KEYS, BatchKeys
from ingestion.spark.file_groups.lookups import newest_files_of
from ingestion.spark.file_groups.record_locations import options_without_index
from ingestion.spark.global_index.building import BuiltMeanwhile, build
from ingestion.spark.global_index.clients import open_client
from ingestion.spark.global_index.following import NotFollowed, follow
from ingestion.spark.global_index.job_use import at_work
from ingestion.spark.global_index.looking_up import groups_in, locate_batch, rows_of_groups
from ingestion.spark.global_index.repairing import places_in_table, put_right, put_right_many, repair_time_ms
from ingestion.spark.global_index.scanning import entries_of_index
from ingestion.spark.indexes import Permit
from ingestion.spark.tables.hudi import has_metadata_table, read_table
from ingestion.spark.tables.timeline import Timeline

logger = logging.getLogger(__name__)
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
    """Of one attempt to commit. `_asked`, `_named`: what was asked for last by name, and the entries of it; `_located`: those that Spark has asked for last."""

    def __init__(self) -> None:
        self._asked: _Asked | None = None
        self._named: dict[str, Entry] = {}
        self._located: DataFrame | None = None

    def write_options(self, table: TableSpec) -> dict[str, str]:
        """New rows go into files of their own: so a commit says which keys it has inserted. Small files are put together by clustering."""
        return options_without_index(table) | {"hoodie.parquet.small.file.limit": "0"}

    def prepare(self, spark: SparkSession, table: TableSpec) -> None:
        """Follows what was committed: the look-up within the permit has little left. A job that HBase does not answer ends before it has read anything.
        An append-only table looks up what comes late, if anything does, and nothing is followed before."""
        if Timeline(table.uri).exists and not table.append_only:
            spec = _spec_of(table)
            client = open_client(spec, rate=_rate_of(spec), patience_s=PREPARES_WITHIN_S, timeout_s=PREPARES_WITHIN_S)
            at_work().watch(client)
            with closing(client), suppress(NotFollowed, IndexTableMissing), at_work().phase("index"):
                follow(spark, table, client)

    def prepare_look_up(self, spark: SparkSession, table: TableSpec, permit: Permit) -> None:
        """Follows what was committed since, and where that cannot be builds the index: others write meanwhile."""
        if Timeline(table.uri).completed():
            with at_work().phase("index"):
                self._follow(spark, table, permit)

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

    def rebuild(self, spark: SparkSession, table: TableSpec, permit: Permit = nullcontext) -> None:
        try:
            at_work().entries = build(spark, table, _spec_of(table), client_of(table), permit).entries
        except BuiltMeanwhile as others:
            logger.info("%s What this job has made of it is not used", others)
            follow(spark, table, client_of(table))

    def repair(self, spark: SparkSession, table: TableSpec, wrong: DataFrame) -> None:
        put_right_many(spark, _spec_of(table), wrong, at_ms=repair_time_ms(Timeline(table.uri)))

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        rows = read_table(spark, table)
        if batch.named is not None:
            groups = self._locate(spark, table, batch.named)
        else:
            self._follow(spark, table)
            self._asked, self._named = None, {}
            self._located = locate_batch(spark, _spec_of(table), table, batch)
            if self._located is None:
                return batch.in_partitions(rows)
            groups = groups_in(self._located)
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
        asked = _Asked(table.uri, frozenset(keys), Timeline(table.uri).latest_completion())
        self._follow(spark, table)
        if self._asked != asked:
            self._asked, self._named, self._located = asked, client_of(table).get(keys), None
        return {FileGroup(entry.partition, entry.file_id) for entry in self._named.values()}

    def correct(self, spark: SparkSession, table: TableSpec, new_keys: Collection[str] | DataFrame) -> int:
        """An entry that leads to a file without its key is wrong, or of a row that is gone. Which of both the whole table says, and the entry is put right.
        So it is with the entry of a commit that was rolled back, too: where that had doubled a key, the row that was there before is there still."""
        suspects = self._suspects(new_keys)
        if not suspects:
            return 0
        self._asked = None
        logger.warning("The index of %s led to files without the key for %d keys or more", table.name, len(suspects))
        if len(suspects) > MAX_NAMED_KEYS:
            self.rebuild(spark, table)
            return len(suspects)
        places = places_in_table(spark, table, suspects)
        at_ms = repair_time_ms(Timeline(table.uri))
        put_right(client_of(table), {key: places.get(key) for key in suspects}, at_ms=at_ms)
        return len(places)

    def _suspects(self, new_keys: Collection[str] | DataFrame) -> set[str]:
        """Keys with an entry, and without a row where it leads: one more than MAX_NAMED_KEYS at most."""
        if self._located is None and not isinstance(new_keys, DataFrame):
            return self._named.keys() & set(new_keys)
        if not isinstance(new_keys, DataFrame):
            raise TypeError("The keys were looked up by Spark: those without a row are to come as a frame.")
        if self._located is None:
            return self._named.keys() & {row.key for row in new_keys.collect()} if self._named else set()
        rows = new_keys.join(self._located.select("key"), "key").limit(MAX_NAMED_KEYS + 1).collect()
        return {row.key for row in rows}

    def _follow(self, spark: SparkSession, table: TableSpec, permit: Permit = nullcontext) -> None:
        """Within the permit there is something to build only where the index was lost since `prepare_look_up`."""
        try:
            follow(spark, table, client_of(table))
        except (NotFollowed, IndexTableMissing):
            self.rebuild(spark, table, permit)


def client_of(table: TableSpec) -> IndexClient:
    spec = _spec_of(table)
    known_spec, client = _CLIENTS.get(table.uri, (None, None))
    if client is None or known_spec != spec:
        if client is not None:
            client.close()
        client = open_client(spec, rate=_rate_of(spec))
        _CLIENTS[table.uri] = spec, client
    at_work().watch(client)
    return client


def _rate_of(spec: GlobalIndexSpec) -> Callable[[], float | None]:
    """What the job may send that is at work when it sends."""
    return lambda: at_work().rate_before_asking(spec)


def _spec_of(table: TableSpec) -> GlobalIndexSpec:
    if table.global_index is None:
        raise NoGlobalIndex(
            f"The table `{table.name}` has the index `hbase`, and no HBase is named for it. Register a cluster for its data center."
        )
    return table.global_index
