"""The Global Index made from its table: entries in the order of their rows, an HFile from each Spark partition, a table of HBase with a region for each, loaded at once.

No request goes through a region server's memory, so nothing is throttled.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.index.client import IndexClient, IndexTableMissing, NotAnIndex, Region
from ingestion.index.entries import FAMILIES, FAMILY, MAX_ROW_BYTES, QUALIFIERS
from ingestion.index.hfile.writer import HFileWriter
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.file_groups.key_map import goes_on_from
from ingestion.spark.file_groups.record_locations import stored_file_id
from ingestion.spark.global_index.following import BUILT, milliseconds_of, note_built
from ingestion.spark.global_index.hbase_client.administration import Administration, open_administration
from ingestion.spark.global_index.hbase_client.staging import (
    LEFT_AFTER,
    check_staging,
    let_go,
    staged_name,
    sweep_staging,
)
from ingestion.spark.global_index.taken_back import rollbacks_on
from ingestion.spark.tables.hudi import read_table
from ingestion.spark.tables.timeline import Timeline, open_storage
from lakehub.kernel import failpoint

ENTRIES_A_FILE = 2_000_000
"""Some 500 MB: a server does well with some hundred regions."""
BYTES_A_FILE = 2 * 10**9
"""HBase splits a region of more than 10 GiB. An entry of a key that is hashed has the key itself, of up to 30 KB."""
_BYTES_A_CELL = 32
"""Beside its row and its value."""
_FILES = "path string, first binary, last binary, rows long"
_COLUMNS = ("row", *(qualifier.decode() for qualifier in QUALIFIERS))


class HFile(NamedTuple):
    """`first`, `last`: rows."""

    path: str
    first: bytes
    last: bytes
    rows: int


class CommitsGone(LookupError):
    """What was committed during a building cannot be followed."""


class BuiltMeanwhile(LookupError):
    """Another job has built the index while this one has read the table: it is as good, and stays."""


class RegionsChanged(LookupError):
    """HFiles do not fit the regions of the table that was made for them."""


class LoadedOtherwise(LookupError):
    """HBase has taken other files than were made, or put them elsewhere."""


class Built(NamedTuple):
    """`loaded`: the HFiles that HBase took: as many as there were, as none had to be split."""

    entries: int
    files: int
    loaded: int
    regions: int


def build(
    spark: SparkSession,
    table: TableSpec,
    index: GlobalIndexSpec,
    client: IndexClient,
    permit: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Built:
    """Whatever was there before is dropped. `permit`: to write the table, where the caller does not hold it yet.

    The table is read without the permit, which may take hours. The commits that count as followed are those that were completed before it is read: what
    comes meanwhile is followed later, whether the reading has seen it or not, as its entries are the later ones. The permit is held while HBase takes the
    files, for seconds: nobody looks a key up in one table after he has followed the timeline in another.

    Raises ForeignTable, HBaseJarsNotFound, IndexUnavailable, UnfitStaging, BuiltMeanwhile and CommitsGone, where whatever index stood before is as it was, and
    RegionsChanged and LoadedOtherwise, where the index counts for nothing.
    """
    completions, rollbacks = _completions(table), rollbacks_on(Timeline(table.uri))
    newest = max(completions.values(), default="")
    building = uuid.uuid4().hex
    folder = f"{index.staging_uri.rstrip('/')}/{staged_name(index.table)}"
    with open_administration(spark, _settings_of(index)) as hbase:
        hbase.check_owner(index.table, table.uri)
        stood = _building_of(client)
        check_staging(index.staging_uri, hbase)
        sweep_staging(index.staging_uri, index.table, upto=datetime.now(UTC) - LEFT_AFTER)
        try:
            files = _write_hfiles(spark, table, folder, at_ms=milliseconds_of(newest)) if newest else []
            failpoint.reach("index.after_reading")
            with permit():
                if _building_of(client) != stood:
                    raise BuiltMeanwhile(f"The index of `{table.name}` was built by another job meanwhile.")
                _check_goes_on(table, completions, rollbacks)
                hbase.create(index.table, table.uri, FAMILIES, [file.first for file in files[1:]])
                failpoint.reach("index.before_load")
                _check_fit(client.regions(), files)
                built = _load(hbase, index.table, folder, files)
                failpoint.reach("index.after_load")
                note_built(client, building, table.uri, completions, built.entries)
        finally:
            let_go(folder)  # HBase has moved the files; folders are left, and files where it was not loaded
    return built


def _building_of(client: IndexClient) -> str | None:
    with suppress(IndexTableMissing, NotAnIndex):
        return client.state(BUILT).get(BUILT)
    return None


def _completions(table: TableSpec) -> dict[str, str]:
    return {commit.instant: commit.completed for commit in Timeline(table.uri).completed()}


def _check_goes_on(table: TableSpec, completions: Mapping[str, str], rollbacks: Collection[str]) -> None:
    """Else the next job would build the index once more, and hold the permit for all of it; or the reading has seen the table without rows that a commit
    had removed which is gone by now. Raises CommitsGone."""
    is_rolled_back = bool(rollbacks_on(Timeline(table.uri)) - set(rollbacks))
    if completions and (is_rolled_back or not goes_on_from(completions, _completions(table))):
        raise CommitsGone(
            f"Commits of `{table.name}` were rolled back, or left its timeline, while its index was being built: it would miss what came meanwhile. "
            "The index that stood before stays in use; ask for `rebuild_index` again."
        )


def _check_fit(regions: Sequence[Region], files: Sequence[HFile]) -> None:
    """Each lies in one region: HBase's loader would have to split it, which its client cannot do beside Spark's Hadoop. Raises RegionsChanged."""
    starts = [region.start for region in regions]
    unfit = [file for file in files if bisect_right(starts, file.first) != bisect_right(starts, file.last)]
    if unfit:
        raise RegionsChanged(
            f"Somebody has split or merged the regions of the table that was made for {len(files):,} HFiles: {len(unfit):,} of them fit no region, and none was "
            "loaded. The index is made anew with the next try; let nobody else split or merge its regions meanwhile."
        )


def _settings_of(index: GlobalIndexSpec) -> dict[str, str]:
    return {"hbase.zookeeper.quorum": index.quorum, "zookeeper.znode.parent": index.znode}


def drop(spark: SparkSession, table: TableSpec, index: GlobalIndexSpec) -> None:
    """Raises ForeignTable, HBaseJarsNotFound, IndexUnavailable."""
    with open_administration(spark, _settings_of(index)) as hbase:
        hbase.drop(index.table, table.uri)
    # Nobody makes it any more, so nobody would remove later what was left.
    sweep_staging(index.staging_uri, index.table, upto=datetime.now(UTC))


def _load(hbase: Administration, name: str, folder: str, files: list[HFile]) -> Built:
    rows = sum(file.rows for file in files)
    if not files:
        return Built(0, 0, 0, hbase.regions(name))
    _remove_others(folder, files)
    loaded = hbase.load(name, folder)
    if not loaded.files == loaded.regions == len(files):
        raise LoadedOtherwise(
            f"Of {len(files):,} HFiles for as many regions HBase has loaded {loaded.files:,}, and the table `{name}` has {loaded.regions:,} regions: somebody has "
            "split or merged them, or removed files where they are staged. The next job that looks keys up makes the index anew, and so does `rebuild_index`."
        )
    return Built(rows, len(files), loaded.files, loaded.regions)


def _remove_others(folder: str, files: Collection[HFile]) -> None:
    """A task whose executor was lost has left a file, and another attempt has made the same again: HBase would load both."""
    filesystem, path = open_storage(folder)
    made = {file.path for file in files}
    for info in filesystem.get_file_info(fs.FileSelector(path, recursive=True)):
        if info.type == fs.FileType.File and info.path not in made:
            filesystem.delete_file(info.path)


def _write_hfiles(spark: SparkSession, table: TableSpec, folder: str, *, at_ms: int) -> list[HFile]:
    """In the order of their rows."""
    entries = entries_of_table(spark, table).persist(StorageLevel.DISK_ONLY)
    try:
        written = _in_order(entries).mapInArrow(_writer_of(f"{folder}/{FAMILY.decode()}", at_ms), _FILES).collect()
    finally:
        entries.unpersist()
    files = [HFile(row.path, bytes(row.first), bytes(row.last), row.rows) for row in written]
    return sorted(files, key=lambda file: file.first)


def _in_order(entries: DataFrame) -> DataFrame:
    """A Spark partition for each HFile. Rows of hashed keys lie behind all others and are larger by far: they are cut into files by themselves."""
    is_hashed = F.substring("row", 1, 1) == F.unhex(F.lit("fe"))
    lengths = [len(QUALIFIERS) * (F.octet_length("row") + _BYTES_A_CELL), *map(F.octet_length, _COLUMNS[1:])]
    sums = (F.count("*").alias("entries"), F.sum(reduce(Column.__add__, lengths)).alias("bytes"))
    kinds = sorted(entries.groupBy(is_hashed.alias("is_hashed")).agg(*sums).collect())
    frames = [
        entries.where(is_hashed if kind.is_hashed else ~is_hashed)
        .repartitionByRange(max(-(-kind.entries // ENTRIES_A_FILE), -(-kind.bytes // BYTES_A_FILE)), "row")
        .sortWithinPartitions("row", F.desc("t"))
        for kind in kinds
    ]
    return reduce(DataFrame.unionAll, frames) if frames else entries


def entries_of_table(spark: SparkSession, table: TableSpec) -> DataFrame:
    """`row` and, by qualifier, what its cells hold; of a key that the table has twice two."""
    key, partition = F.col("_hoodie_record_key"), F.col("_hoodie_partition_path")
    is_hashed = F.octet_length(key) > MAX_ROW_BYTES
    return read_table(spark, table, by_listing=True).select(
        _row(key, is_hashed).alias("row"),
        stored_file_id().cast("binary").alias("f"),
        F.when(is_hashed, F.concat(partition, F.lit("\0"), key)).otherwise(partition).cast("binary").alias("p"),
        F.col("_hoodie_commit_time").cast("binary").alias("t"),
    )


def _row(key: Column, is_hashed: Column) -> Column:
    """As `row_of`."""
    hashed = F.concat(F.unhex(F.lit("fe")), F.unhex(F.sha2(key.cast("binary"), 256)))
    return F.when(is_hashed, hashed).otherwise(key.cast("binary"))


def _writer_of(folder: str, at_ms: int) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """For `mapInArrow`: what it writes is one HFile."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filesystem, path = open_storage(f"{folder}/{uuid.uuid4().hex}")
        pending, last = (batch for batch in batches if batch.num_rows), b""
        first_batch = next(pending, None)
        if first_batch is None:
            return
        filesystem.create_dir(path.rpartition("/")[0])
        with filesystem.open_output_stream(path) as out:
            writer = HFileWriter(out, family=FAMILY, qualifiers=QUALIFIERS, timestamp_ms=at_ms)
            for batch in (first_batch, *pending):
                once, last = _first_of_each(batch, last)
                writer.append(once["row"], [once[name] for name in _COLUMNS[1:]])
            written = writer.close()
        columns = [[path], [written.first], [written.last], [written.rows]]
        types = (pa.string(), pa.binary(), pa.binary(), pa.int64())
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, ["path", "first", "last", "rows"])

    return write


def _first_of_each(batch: pa.RecordBatch, last: bytes) -> tuple[pa.RecordBatch, bytes]:
    """Of rows that are the same the first, which is the newest; `last`: the row before."""
    rows = batch["row"]
    before = pa.concat_arrays([pa.array([last], rows.type), rows[:-1]])
    return batch.filter(pc.not_equal(rows, before)), rows[-1].as_py()
