"""Writing and reading Hudi tables: one place for every option, so that each writer takes the table's lock and leaves its mark.

Why each option is as it is: docs/ingestion.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.tables import avro_schema, growing_time
from ingestion.spark.tables.checkpoint_metadata import METADATA_PREFIX
from ingestion.spark.tables.failed_write import clean_up_failed_write
from ingestion.spark.tables.local_disks import is_on_local_disk
from ingestion.spark.tables.spark_columns import type_of_spark
from ingestion.spark.tables.timeline import MIN_COMMITS_KEPT as MIN_COMMITS_KEPT
from ingestion.spark.tables.timeline import TABLE_SERVICES, NotATable, Timeline, open_storage
from ingestion.spark.tables.unfinished_writes import pending_writes

HEARTBEAT_MS, TOLERABLE_MISSES = 3000, 10
"""A writer gives its own commit up after 30 s without a heartbeat: on a busy machine one of a few seconds is late. That others need
not wait as long for a writer that died, the fence sees to."""
MAX_PARALLELISM = 200
"""Tasks of one shuffle of a write: each may write a file of its own."""
TABLE_VERSION = "9"
META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_LEGACY_INSTANT = re.compile(r"\d+\.\w+(\.(requested|inflight))?")
"""As tables before version 8 keep them, beside the folder of the timeline."""
_CHANGE_LOG = "hoodie.table.cdc.enabled"
_KIB, _MIB = 2**10, 2**20
_FILE_FORMAT = {
    # Half the work of gzip, and no larger.
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.parquet.bloom.filter.enabled": "false",
    # The writer of first loads does not heed this, and writes one of 430 kB into each footer, which each reader of the file reads. As
    # small as there is, it says "perhaps" of any key. Its kind stays Hudi's default, by which other writers read it.
    "hoodie.index.bloom.num_entries": "1",
    "hoodie.bloom.index.filter.dynamic.max.entries": "1",
    "hoodie.index.bloom.fpp": "0.5",
}
_LOCK_PACKAGE = "org.apache.hudi.client.transaction.lock."


class TableMismatch(ValueError):
    """The table in the lake was made with other keys than the spec says."""


def write_commit(
    frame: DataFrame, table: TableSpec, operation: str, options: Mapping[str, str], marks: Mapping[str, str]
) -> None:
    """One commit. `commit_metadata` travel in its metadata; `options` are the index's, and what the caller needs besides."""
    spark = frame.sparkSession
    latest = growing_time.go_on_after_latest(spark, table.uri)
    cores = spark.sparkContext.defaultParallelism
    writer = (
        frame.write.format("hudi")
        .options(**table_options(table, parallelism=cores))
        .options(**options)
        .options(**marks)
    )
    try:
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(table.uri)
    except Py4JError:
        clean_up_failed_write(spark, Timeline(table.uri), after=latest)
        raise


def table_options(table: TableSpec, *, parallelism: int) -> dict[str, str]:
    """The same for every writer of a table, also for the one of its errors. `parallelism`: the cores that the session has."""
    tasks = str(max(2, min(parallelism, MAX_PARALLELISM)))
    shuffles = ("bulkinsert", "upsert", "insert", "delete")
    return _lock_options(table.uri) | local_options(table.uri) | _change_log_options(table) | _file_size_options(table) | _FILE_FORMAT | {f"hoodie.{name}.shuffle.parallelism": tasks for name in shuffles} | {
        "hoodie.table.name": table.name,
        # The batch was judged against the stored reference keys under the fence: what is written is newer, whatever the type of the key.
        "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.datasource.write.recordkey.field": ",".join(table.record_key),
        "hoodie.datasource.write.partitionpath.field": table.partition_column or "",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.commitmeta.key.prefix": METADATA_PREFIX,
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.embed.timeline.server": "false",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
        "hoodie.clean.trigger.max.commits": "5",
        # By time and not by number: of a table with a commit every few seconds, twenty commits are gone before a query has ended.
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.clean.hours.retained": str(table.retention_hours),
        "hoodie.keep.min.commits": str(MIN_COMMITS_KEPT),
        "hoodie.keep.max.commits": str(MIN_COMMITS_KEPT + 20),
    }  # fmt: skip


def _file_size_options(table: TableSpec) -> dict[str, str]:
    """A file that is half full gets no new rows, so that it has room to grow, and new rows write less than a whole file anew."""
    largest = table.max_file_mib * _MIB
    return {
        "hoodie.parquet.max.file.size": str(largest),
        "hoodie.parquet.small.file.limit": str(largest // 2),
        # What is not written out yet counts by its size in memory, which is several times that in the file.
        "hoodie.parquet.block.size": str(largest // 2),
        # Hudi learns from earlier files how many rows make one, but not from small ones: from those of 100 KiB.
        "hoodie.record.size.estimation.threshold": str(0.2 / table.max_file_mib),
    }


def _change_log_options(table: TableSpec) -> dict[str, str]:
    """Without the log an incremental reader sees no delete. It names keys only, and a reader gets the rows from the files' versions."""
    timeline = Timeline(table.uri)
    properties = timeline.properties if timeline.exists else {_CHANGE_LOG: str(table.change_log).lower()}
    if properties.get(_CHANGE_LOG) != "true":
        return {}
    return {_CHANGE_LOG: "true", "hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"}


def _lock_options(uri: str) -> dict[str, str]:
    """Optimistic concurrency with a lock that needs no server. Retries are ours: Hudi's own would repeat stale locations."""
    in_object_store = urlsplit(uri).scheme in ("s3", "s3a", "gs")
    return {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.client.heartbeat.interval_in_ms": str(HEARTBEAT_MS),
        "hoodie.client.heartbeat.tolerable.misses": str(TOLERABLE_MISSES),
        "hoodie.write.lock.provider": _LOCK_PACKAGE
        + ("StorageBasedLockProvider" if in_object_store else "FileSystemBasedLockProvider"),
        "hoodie.write.lock.filesystem.expire": "5",
        "hoodie.write.lock.wait_time_ms_between_retry": "200",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "500",
        "hoodie.write.lock.num_retries": "60",
        "hoodie.write.lock.client.num_retries": "60",
        "hoodie.write.num.retries.on.conflict.failures": "0",
    }


def local_options(uri: str) -> dict[str, str]:
    """Hudi waits twice in each commit, 200 ms, until the clocks of other machines have passed the time that it took. Who writes to a disk
    of this machine has its clock. And the log files that are read are small there: Hudi sets 16 MB aside for each.
    """
    address = urlsplit(uri)
    if address.scheme != "file" or not is_on_local_disk(PurePosixPath(Path(unquote(address.path)).resolve())):
        return {}
    return {
        "hoodie.time.generator.max_expected_clock_skew_ms": "10",
        "hoodie.memory.dfs.buffer.max.size": str(64 * _KIB),
    }


def read_table(spark: SparkSession, table: TableSpec, *, by_listing: bool = False) -> DataFrame:
    """The same of a job's table."""
    return read_at(spark, table.uri, by_listing=by_listing)


def read_at(spark: SparkSession, uri: str, *, by_listing: bool = False) -> DataFrame:
    """The table as it is now, with Hudi's own columns. `by_listing`: of the files that its folders hold, whatever the metadata table says."""
    options = {
        "hoodie.metadata.enable": "true" if not by_listing and has_metadata_table(uri) else "false",
        # With it Hudi leaves out files that hold the rows, where the record key has several columns (1.2.0).
        "hoodie.enable.data.skipping": "false",
    }
    return spark.read.format("hudi").options(**options).load(uri)


def empty_frame(spark: SparkSession, schema: Schema) -> DataFrame:
    """A frame for a commit that carries a checkpoint and nothing else."""
    return spark.createDataFrame([], ", ".join(f"`{name}` {type_}" for name, type_ in schema.types.items()))


def stored_schema(spark: SparkSession, table: TableSpec) -> Schema:
    """The table's columns without Hudi's own. Empty for a table whose first write died.

    The newest commit that names them is asked. Spark is, which opens the table, only for types of other writers that it alone can name.
    """
    named = (commit for commit in Timeline(table.uri).newest_first() if commit.avro_schema)
    newest = next((commit for commit in named if commit.operation not in TABLE_SERVICES), None)
    schema = None if newest is None else avro_schema.schema_of(newest.avro_schema, without=META_COLUMNS)
    return _schema_by_spark(spark, table) if schema is None else schema


def _schema_by_spark(spark: SparkSession, table: TableSpec) -> Schema:
    fields = read_table(spark, table).schema.fields
    return Schema(
        tuple(
            SchemaColumn(field.name, str(type_of_spark(field.dataType)))
            for field in fields
            if field.name not in META_COLUMNS
        )
    )


def check_table(table: TableSpec) -> Timeline:
    """The timeline of an existing table whose keys are the spec's. Raises NotATable or TableMismatch."""
    timeline = Timeline(table.uri).require()
    properties = timeline.properties
    expected_properties = {
        "hoodie.table.recordkey.fields": ("record key", ",".join(table.record_key)),
        "hoodie.table.partition.fields": ("partition column", table.partition_column or ""),
    }
    for name, (label, value) in expected_properties.items():
        stored_value = properties.get(name, "").removesuffix(":simple")
        if stored_value != value:
            raise TableMismatch(
                f"The table at {table.uri} has the {label} `{stored_value or '(none)'}`, but the spec says `{value or '(none)'}`. "
                "These are fixed when a table is made: drop the copy and bootstrap it again, or correct the spec."
            )
    return timeline


def check_location_free(table: TableSpec) -> None:
    """A new table may go to `uri`: nothing is there, or only what a first write that died has left."""
    filesystem, path = open_storage(table.uri)
    there = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
    if there and not any(info.base_name == ".hoodie" for info in there):
        raise NotATable(
            f"{table.uri} is not empty and not a Hudi table: {there[0].base_name} lies there. Name another URI, or empty the folder."
        )


def remove_failed_first_write(table: TableSpec) -> None:
    """Remove what a first write of ours that died has left. Raises TableMismatch where anything else may lie there."""
    foreign = _foreign_content(Timeline(table.uri))
    if foreign:
        raise TableMismatch(
            f"The table at {table.uri} has no commit that Lakehub can read, but it is not what a first load that died leaves: {foreign}. "
            "Nothing was removed. Name another URI, or move that table away and bootstrap again."
        )
    remove_table(table.uri)


def _foreign_content(timeline: Timeline) -> str:
    """In words: what no first write of ours would have left; nothing where all of it is ours."""
    version = timeline.properties.get("hoodie.table.version", "")
    if version != TABLE_VERSION:
        return f"its hoodie.table.version is `{version or '(none)'}` instead of `{TABLE_VERSION}`"
    legacy = sorted(name for name in timeline.list_names(".hoodie") if _LEGACY_INSTANT.fullmatch(name))
    if legacy:
        return f"its timeline holds `{legacy[0]}`"
    begun = tuple(f"_{instant}.parquet" for instant in pending_writes(timeline))
    filesystem, path = open_storage(timeline.uri)
    for info in filesystem.get_file_info(fs.FileSelector(path, recursive=True)):
        name = info.base_name.lstrip(".").removesuffix(".crc")
        inside = info.path.removeprefix(path).startswith("/.hoodie/") or name == "hoodie_partition_metadata"
        if info.type == fs.FileType.File and not inside and not name.endswith(begun):
            return f"the file {info.path.removeprefix(path + '/')} belongs to no write that was begun"
    return ""


def remove_table(uri: str) -> None:
    filesystem, path = open_storage(uri)
    if filesystem.get_file_info(path).type != fs.FileType.NotFound:
        filesystem.delete_dir(path)


def has_metadata_table(uri: str) -> bool:
    filesystem, path = open_storage(uri)
    return bool(filesystem.get_file_info(f"{path}/.hoodie/metadata/.hoodie/hoodie.properties").type == fs.FileType.File)
