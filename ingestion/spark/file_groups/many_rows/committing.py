"""The commit: what goes to files that are there is written by tasks of ours, what goes to new ones by Hudi's writer of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.arrow_types import arrow_type
from ingestion.spark.file_groups.direct_write import require_all_written
from ingestion.spark.file_groups.java_client import commit_client, java_list, java_map
from ingestion.spark.file_groups.lookups import meta_client, newest_base_files
from ingestion.spark.file_groups.many_rows.changed_keys import NEW, read_changed_keys
from ingestion.spark.file_groups.many_rows.new_files import write_new_files
from ingestion.spark.file_groups.many_rows.stored_files import (
    StoredFile,
    groups_for_new_rows,
    read_footers,
    smallest_files,
)
from ingestion.spark.file_groups.many_rows.tasks import FILE_ID, PARTITION, PlannedRewrite, Rewritten, TableRewrite
from ingestion.spark.file_groups.rewriting import AVRO_SCHEMA, BLOOM_FILTER, KEY, RowsNotMet
from ingestion.spark.session import jvm
from ingestion.spark.tables import hudi
from ingestion.spark.tables.commit_failpoint import FAILPOINT
from ingestion.spark.tables.timeline import Timeline, open_storage
from lakehub.kernel import failpoint

MAX_GROUPS = 5_000
"""File groups of one commit: the driver has a plan of each."""
MAX_INDEXED_ROWS = 500_000
"""Of a table with an index of records, which has the places of all rows of a commit in memory."""
_SMALL_FILES = "hoodie.parquet.small.file.limit"
_MIB = 2**20
_MOVERS = 8


@dataclass(frozen=True)
class ManyRows:
    """`rows`: KEY, PARTITION, FILE_ID (null: the row is new), REMOVED and the columns. `files`: to be written anew. `places`: by partition the group that takes its
    new rows; `fresh`: how many come to the largest of the others, which are written to new files. `avro_schema`: of the table, as its newest commit has it."""

    table: TableSpec
    rows: DataFrame
    columns: pa.Schema
    avro_schema: str
    files: Mapping[FileGroup, StoredFile]
    places: Mapping[str, FileGroup]
    fresh: int

    def write(self, options: Mapping[str, str], marks: Mapping[str, str], scratch: str) -> None:
        """One commit. `options`: of the index; `marks` travel in the commit's metadata; `scratch`: the URI of a folder that others do not use. Raises RowsNotWritten."""
        spark = self.rows.sparkSession
        java: Any = jvm(spark)
        with commit_client(spark, self.table, self.avro_schema, options) as client:
            instant = client.startCommit()
            client.begin(instant)
            written = [*self._write_anew(client, instant, scratch)]
            if self.fresh:
                fresh = self._placed().where(f"{FILE_ID} IS NULL")
                own = F.col(KEY), F.col(PARTITION)
                written += write_new_files(
                    self.table, fresh, self.columns.names, own, instant, self.avro_schema, options, largest=self.fresh
                )
            require_all_written(written, self.table)
            failpoint.reach(FAILPOINT)
            option = java.org.apache.hudi.common.util.Option.of(java_map(java, marks))
            client.commit(instant, java_list(java, written), option)

    def _write_anew(self, client: Any, instant: str, scratch: str) -> list[Any]:
        """The statuses of the files."""
        filesystem, path = open_storage(scratch)
        filesystem.create_dir(path)
        handles, plans = dict[int, Any](), dict[FileGroup, PlannedRewrite]()
        for number, (group, stored) in enumerate(sorted(self.files.items(), key=lambda item: item[0])):
            handles[number] = handle = client.rewrite(*group)
            if handle.oldName() != stored.file.name:
                raise RowsNotMet(
                    f"{handle.oldName()} has taken the place of {stored.file.name} since its rows were read: somebody else has written the table. Nothing was committed."
                )
            footer = {AVRO_SCHEMA: handle.schema().encode()}
            if stored.bloom_filter and group in self.places.values():
                footer[BLOOM_FILTER] = handle.filterOfAnyKey(*stored.bloom_filter).encode()
            plans[group] = PlannedRewrite(number, stored.file.name, handle.newName(), footer)
        if not plans:
            return []
        written = TableRewrite(self.table.uri, scratch, instant, self.columns, plans).write(
            self._placed().where(f"{FILE_ID} IS NOT NULL")
        )
        self._put_in_place(plans, written)
        java: Any = jvm(self.rows.sparkSession)
        storage = meta_client(self.rows.sparkSession, self.table.uri).getStorage()
        for group, plan in plans.items():
            rows, _, changes = written[plan.number]
            handles[plan.number].end(rows, read_changed_keys(java, storage, changes, group))
        return [*client.statuses(java_list(java, handles.values()))]

    def _put_in_place(self, plans: Mapping[FileGroup, PlannedRewrite], written: Mapping[int, Rewritten]) -> None:
        filesystem, root = open_storage(self.table.uri)

        def move(planned: tuple[FileGroup, PlannedRewrite]) -> None:
            group, plan = planned
            place = "/".join(filter(None, (root, group.partition, plan.new)))
            filesystem.move(open_storage(written[plan.number].file)[1], place)

        with ThreadPoolExecutor(_MOVERS) as movers:
            list(movers.map(move, plans.items()))

    def _placed(self) -> DataFrame:
        """With the groups of new rows; null: there is none yet."""
        rows = self.rows.withColumn(NEW, F.col(FILE_ID).isNull())
        if not self.places:
            return rows
        places = self.rows.sparkSession.createDataFrame([*self.places.values()], f"{PARTITION} string, _place string")
        joined = rows.join(F.broadcast(places), PARTITION, "left")
        return joined.withColumn(FILE_ID, F.coalesce(FILE_ID, "_place")).drop("_place")


def open_many_rows(
    table: TableSpec, rows: DataFrame, target: Schema, avro_schema: str, options: Mapping[str, str]
) -> ManyRows | None:
    """`rows`: as those of ManyRows, of which each group has been written by nobody since. `options`: of the index. None: the commit is Hudi's."""
    spark = rows.sparkSession
    if not _is_written_as_usual(table):
        return None
    counts = rows.groupBy(PARTITION, FILE_ID).count().limit(MAX_GROUPS + 1).collect()
    total = sum(row["count"] for row in counts)
    if len(counts) > MAX_GROUPS or (total > MAX_INDEXED_ROWS and hudi.has_metadata_table(table.uri)):
        return None
    new_rows = Counter({row[PARTITION]: row["count"] for row in counts if row[FILE_ID] is None})
    touched = {FileGroup(row[PARTITION], row[FILE_ID]) for row in counts if row[FILE_ID] is not None}
    newest = newest_base_files(spark, table.uri, {row[PARTITION] for row in counts})
    smallest = smallest_files(newest, new_rows)
    files = {file for file in newest if file.group in touched} | {*smallest.values()}
    columns = pa.schema([(name, arrow_type(type_)) for name, type_ in target.types.items()])
    stored = read_footers(table.uri, files, columns)
    if stored is None or not touched <= stored.keys():
        return None
    takes_none = options.get(_SMALL_FILES) == "0"  # new rows go to files of their own
    places = (
        {}
        if takes_none
        else groups_for_new_rows(
            new_rows, (stored[file.group] for file in smallest.values()), largest=table.max_file_mib * _MIB
        )
    )
    anew = {group: each for group, each in stored.items() if group in touched or group in places.values()}
    fresh = max((new_rows[partition] for partition in new_rows.keys() - places.keys()), default=0)
    return ManyRows(table, rows, columns, avro_schema, anew, places, fresh)


def _is_written_as_usual(table: TableSpec) -> bool:
    """With Hudi's own columns, and a log of changes, if it has one, of keys alone."""
    properties = Timeline(table.uri).properties
    log = properties.get("hoodie.table.cdc.supplemental.logging.mode", "").upper()
    has_log = properties.get("hoodie.table.cdc.enabled") == "true"
    return properties.get("hoodie.populate.meta.fields", "true") == "true" and (not has_log or log == "OP_KEY_ONLY")
