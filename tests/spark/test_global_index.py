"""The Global Index in HBase: made by HFiles, kept up from the timeline, whatever happens between the two."""

from __future__ import annotations

import shutil
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.index.client import IndexUnavailable, NotAnIndex
from ingestion.index.entries import Entry, row_of
from ingestion.index.hfile.writer import BLOCK_BYTES
from ingestion.index.thrift_client import ThriftAddress
from ingestion.spark.contract.guidance import NoGuidance
from ingestion.spark.contract.spec import ClusterSpec, DeleteSpec, GlobalIndexSpec, TableSpec
from ingestion.spark.execute import execute
from ingestion.spark.file_groups import FileGroup, batch_keys
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.global_index import building, job_use, looking_up
from ingestion.spark.global_index.building import build
from ingestion.spark.global_index.clients import open_client
from ingestion.spark.global_index.following import follow
from ingestion.spark.global_index.hbase_client.administration import open_administration
from ingestion.spark.global_index.looking_up import rows_of_groups, spread_keys
from ingestion.spark.global_index.repairing import repair_time_ms
from ingestion.spark.indexes import hbase
from ingestion.spark.indexes.hbase import HBaseIndex, client_of
from ingestion.spark.loading import small_batches
from ingestion.spark.tables.hudi import read_table
from lakehub.kernel import failpoint
from tests.spark.job_processes import died_at
from tests.spark.order_shop import Orders

LATER, LATEST = "2026-11-16 09:00:00", "2026-11-16 10:00:00"


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    orders = Orders(tmp_path, index="hbase")
    orders.table = replace(orders.table, record_key=("id",))
    return orders


def entries(spark: SparkSession, orders: Orders) -> dict[str, tuple[str, str]]:
    """What the index says, once it has followed. Its scan is not among the requests of `client_of`."""
    follow(spark, orders.table, client_of(orders.table))
    assert orders.table.global_index is not None
    with closing(open_client(orders.table.global_index)) as client:
        found_entries = [each for region in client.regions() for each in client.scan(region.start, region.end)]
    assert len(found_entries) == len(dict(found_entries))
    return {key: (entry.partition, entry.file_id) for key, entry in found_entries}


def places(spark: SparkSession, orders: Orders) -> dict[str, tuple[str, str]]:
    """What the table says."""
    file_id = F.substring_index("_hoodie_file_name", "_", 1)
    rows = read_table(spark, orders.table, by_listing=True)
    stored = rows.select("_hoodie_record_key", "_hoodie_partition_path", file_id).collect()
    return {key: (partition, id_) for key, partition, id_ in stored}


def counted(orders: Orders) -> tuple[int, int]:
    client = client_of(orders.table)
    return client.reads, client.writes


def servers(orders: Orders) -> tuple[str, ...]:
    return tuple(sorted({f"{region.host}:{region.port}" for region in client_of(orders.table).regions()}))


def scanned_rows(frame: DataFrame) -> Iterator[int]:
    """That the files have handed over to the plan of the frame, by its metrics once it has run."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    for place in range(leaves.size()):
        metric = leaves.apply(place).metrics().get("numOutputRows")
        if metric.isDefined():
            yield metric.get().value()


def test_a_table_is_pre_split_and_loaded_without_a_split(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight HFiles, and one of the keys that are hashed; as many regions."""
    monkeypatch.setattr(building, "ENTRIES_A_FILE", 100)
    orders.sql("drop table orders")
    orders.sql("create table orders(id text, day text, amount real, updated_at timestamp)")
    keys = [f"key {number}" for number in range(780)] + ["ü" * 2000, "a\0b", "z" * 1024, "z" * 1025]
    orders.add(*((key, f"2026-11-{n % 3 + 1:02}", 1.0, LATER) for n, key in enumerate(keys)))
    assert orders.run(spark, "bootstrap", "b").error is None
    spec, client = orders.table.global_index, client_of(orders.table)
    assert spec is not None
    built = build(spark, orders.table, spec, client)
    assert (built.entries, built.files, built.loaded, built.regions) == (784, 9, 9, 9)
    assert entries(spark, orders) == places(spark, orders)
    starts = [region.start for region in client.regions()]
    assert starts == sorted(starts)
    assert {*starts[1:]} < {row_of(key) for key in keys}
    assert block_sizes(spark, spec) == {BLOCK_BYTES}
    assert not [*Path(spec.staging_uri.removeprefix("file://")).glob("*")]


def block_sizes(spark: SparkSession, spec: GlobalIndexSpec) -> set[int]:
    """Of what HBase writes anew, by the families of the table."""
    with open_administration(spark, {"hbase.zookeeper.quorum": spec.quorum}) as hbase:
        field = hbase._java.getClass().getDeclaredField("admin")
        field.setAccessible(True)
        admin = field.get(hbase._java)
        (name,) = (each for each in admin.listTableNames() if each.getNameAsString() == spec.table)
        return {family.getBlocksize() for family in admin.getDescriptor(name).getColumnFamilies()}


def test_a_load_whose_index_was_not_made_makes_it_when_it_is_tried_again(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are there, so nothing is read anew: else the first batch would have to make it, within its own time."""
    orders.fill(10)
    with monkeypatch.context() as away:
        away.setattr(HBaseIndex, "settle", raises_away)
        assert orders.run(spark, "bootstrap", "b").status == "index_away"
    again = orders.run(spark, "bootstrap", "b")
    assert (again.status, again.counts.applied, again.index_use is not None) == ("succeeded", 10, True)
    assert entries(spark, orders) == places(spark, orders)


def raises_away(*_: object) -> None:
    raise IndexUnavailable("HBase does not answer.")


def test_what_is_wrong_with_the_index_is_found_and_made_right(spark: SparkSession, orders: Orders) -> None:
    """An entry that is missing, one that is elsewhere, and one of no row."""
    orders.fill(30)
    orders.run(spark, "bootstrap", "b")
    client, now_ms = client_of(orders.table), 4 * 10**12
    moved = {"7": client.get(["8"])["8"], "999": client.get(["8"])["8"]}
    client.put(moved, at_ms=now_ms)
    client.delete(["3", "4"], at_ms=now_ms)
    problems = orders.run(spark, "verify_index", "v", source=None).output["problems"]
    assert problems == {"doubled": 0, "missing": 2, "misplaced": 1, "without_row": 1}
    assert orders.run(spark, "rebuild_index", "r", source=None).error is None
    verified = orders.run(spark, "verify_index", "w", source=None).output
    assert (verified["rows"], verified["entries"], {*verified["problems"].values()}) == (30, 30, {0})


def test_requests_follow_the_batch(spark: SparkSession, orders: Orders) -> None:
    """No more keys are asked for than the batch has, and no more rows written than it inserts and deletes; nothing is asked in a load."""
    orders.fill(300, days=10)
    use = orders.run(spark, "bootstrap", "b").index_use
    assert use is not None
    assert (use.servers, use.reads, use.writes, use.entries) == (servers(orders), 0, 0, 300)
    assert counted(orders) == (0, 0)
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id < 20")
    orders.add(*((number, "2026-11-04", 1.0, LATER) for number in range(300, 307)))
    report = orders.run(spark, "incremental", "i")
    assert (report.written.inserts, report.written.updates) == (7, 20)
    use = report.index_use
    assert use is not None
    assert (use.servers, use.reads, use.writes, use.entries) == ((), 27, 0, None), "counted a moment ago"
    assert entries(spark, orders) == places(spark, orders)
    assert counted(orders) == (27, 7)
    assert orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3",), ("4",)))).written.deletes == 2
    assert entries(spark, orders) == places(spark, orders)
    reads, writes = counted(orders)
    assert (reads - 27, writes - 7) == (2 + 2, 2)
    assert orders.rows(spark) == [row for row in orders.source_rows() if row[0] not in (3, 4)]


def test_a_job_at_work_counts_the_servers_again(spark: SparkSession, orders: Orders) -> None:
    """Once it has asked, and no more than once a minute."""
    orders.fill(9)
    orders.run(spark, "bootstrap", "b")
    job_use._COUNTED.clear()
    with job_use.use_of_job(NoGuidance(), lambda: None, lambda name: nullcontext()) as use:
        assert use.count_servers(orders.table) == 0
        assert len(client_of(orders.table).get(["3"])) == 1
        assert [use.count_servers(orders.table) for _ in range(2)] == [1, 0]


def test_a_batch_that_turns_out_to_be_sparks_asks_for_its_keys_once(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few keys, in more files than the driver writes anew; a key that moves before it comes again."""
    monkeypatch.setattr(small_batches, "MAX_FILES", 2)
    orders.fill(40, days=4)
    orders.run(spark, "bootstrap", "b")
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id < 12")
    orders.add((40, "2026-11-01", 1.0, LATER))
    report = orders.run(spark, "incremental", "i")
    assert (report.written.inserts, report.written.updates, counted(orders)[0]) == (1, 12, 13)
    orders.sql(f"update orders set day = '2026-11-02', updated_at = '{LATEST}' where id < 4")
    report = orders.run(spark, "incremental", "j")
    assert counted(orders)[0] == 13 + report.counts.read
    assert orders.rows(spark) == orders.source_rows()
    assert entries(spark, orders) == places(spark, orders)


def test_many_keys_are_asked_for_by_sparks_tasks(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only the partitions are read in which they lie; a key with an empty text is not asked for, and is there once."""
    monkeypatch.setattr(small_batches, "MAX_ROWS", 0)
    monkeypatch.setattr(batch_keys, "MAX_NAMED_KEYS", 0)
    orders.sql("drop table orders")
    orders.sql("create table orders(id text, note text, day text, amount real, updated_at timestamp)")
    orders.table = replace(orders.table, record_key=("id", "note"))
    orders.add(*((f"k\0{number}", "n", f"2026-11-{number % 5 + 1:02}", 1.0, LATER) for number in range(50)))
    orders.run(spark, "bootstrap", "b")
    orders.sql(f"update orders set amount = 2, updated_at = '{LATEST}' where day = '2026-11-02'")
    orders.add(("new", "n", "2026-11-03", 1.0, LATEST))
    keys = spark.createDataFrame([("k\x001", "n"), ("k\x006", "n"), ("nowhere", "n")], "id string, note string")
    stored = HBaseIndex().stored_rows(spark, orders.table, BatchKeys(keys, 3, None, orders.table))
    assert {row.day for row in stored.collect()} == {"2026-11-02"}
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 1, 10)
    assert report.index_use is not None
    assert (report.index_use.reads, report.index_use.seconds > 0) == (11, True)
    orders.add(("new", "", "2026-11-03", 1.0, "2026-11-16 11:00:00"))
    assert orders.run(spark, "incremental", "j").written.inserts == 1
    orders.sql("update orders set amount = 3, updated_at = '2026-11-16 12:00:00' where id = 'new'")
    report = orders.run(spark, "incremental", "l")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 0, 2)
    assert orders.rows(spark) == orders.source_rows()
    assert entries(spark, orders) == places(spark, orders)


def test_of_a_partition_only_the_files_are_read_that_hold_a_key(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the others no row, as their least and greatest file names say so; also where a batch hits more files than Parquet is told of at once."""
    orders.fill(30, days=1)
    orders.run(spark, "bootstrap", "b")
    for number in range(100, 103):
        orders.add((number, "2026-11-01", 1.0, f"2026-11-16 09:00:{number - 100:02}"))
        assert orders.run(spark, "incremental", f"i{number}").written.inserts == 1
    groups = {key: FileGroup(*place) for key, place in places(spark, orders).items()}
    assert len({groups[key] for key in ("0", "100", "101", "102")}) == 4, "new rows have files of their own"

    def rows_read(*keys: str) -> tuple[int, set[str]]:
        rows = rows_of_groups(read_table(spark, orders.table), orders.table, {groups[key] for key in keys})
        ids = {row.id for row in rows.collect()}
        return sum(scanned_rows(rows)), ids

    assert rows_read("101") == (1, {101})
    monkeypatch.setattr(looking_up, "_FILES_TOLD", 1)
    assert rows_read("100", "102") == (2, {100, 102})
    assert rows_read() == (0, set())
    monkeypatch.setattr(looking_up, "_MOST_PARTS", 1)
    assert rows_read("100", "102") == (33, {100, 102}), "of so many the partition is read whole"


def test_many_keys_are_deleted_where_the_index_says_that_they_are(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Spark, as they lie in too many files for the driver. A key whose entry is wrong is deleted all the same; one that is not there is none."""
    monkeypatch.setattr(small_batches, "MAX_FILES", 1)
    orders.fill(30, days=10)
    orders.run(spark, "bootstrap", "b")
    read: list[set[str]] = []

    def noted(rows: DataFrame, table: TableSpec, groups: set[FileGroup]) -> DataFrame:
        read.append({group.partition for group in groups})
        return rows_of_groups(rows, table, groups)

    monkeypatch.setattr(hbase, "rows_of_groups", noted)
    here = places(spark, orders)
    assert len({here["3"], here["4"]}) == 2
    report = orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3",), ("4",), ("999",))))
    assert (report.error, report.written.deletes) == (None, 2)
    assert read == [{here["3"][0], here["4"][0]}]
    entry = Entry(*here["5"], "20261116090000000")
    client_of(orders.table).put({"6": entry}, at_ms=repair_time_ms(orders.timeline))
    report = orders.run(spark, "delete", "e", delete=DeleteSpec(keys=(("6",), ("7",))))
    assert (report.error, report.written.deletes) == (None, 2)
    assert {row[0] for row in orders.rows(spark, "id")} == {*range(30)} - {3, 4, 6, 7}


def test_each_task_asks_all_over_the_table_at_any_time(spark: SparkSession, orders: Orders) -> None:
    """The batch is in the order of its keys, as a source often has it; the HFiles' regions are not asked one after the other."""
    batch = BatchKeys(spark.range(20_000, numPartitions=4), 20_000, None, orders.table)
    tasks = (
        spread_keys(batch, orders.table, 2).rdd.mapPartitions(lambda rows: [[int(row.key) for row in rows]]).collect()
    )
    assert sorted(key for keys in tasks for key in keys) == [*range(20_000)]
    for keys in tasks:
        for begin in range(0, len(keys) - 1_000, 1_000):
            by_fourth = Counter(key // 5_000 for key in keys[begin : begin + 1_000])
            assert min(by_fourth[fourth] for fourth in range(4)) > 180, by_fourth


class NothingAtFirst(NoGuidance):
    """Nothing may be asked until this was asked for six times."""

    def __init__(self) -> None:
        self.times = 0

    def index_requests_per_s(self) -> float:
        self.times += 1
        return 0.0 if self.times <= 6 else 1_000_000.0


def test_tasks_at_work_are_told_how_fast_they_may_ask(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_batches, "MAX_ROWS", 0)
    monkeypatch.setattr(batch_keys, "MAX_NAMED_KEYS", 0)
    orders.fill(30)
    orders.run(spark, "bootstrap", "b")
    orders.change(7, -1, LATER)
    guidance, index = NothingAtFirst(), orders.table.global_index
    report = execute(orders.spec("incremental", "i"), spark=spark, secrets=orders.secrets, guidance=guidance)
    assert (report.error, report.written.updates, guidance.times > 6) == (None, 1, True)
    assert index is not None
    assert not [*Path(index.staging_uri.removeprefix("file://")).glob("*.rate")]


def test_whatever_is_committed_is_followed(spark: SparkSession, orders: Orders) -> None:
    """A key that moves, partitions that are written anew, files that are put together, a table that is replaced, a commit of another writer."""
    orders.fill(40, days=4)
    orders.run(spark, "bootstrap", "b")
    orders.sql(f"update orders set day = '2026-11-09', updated_at = '{LATER}' where id in (4, 5)")
    orders.add((40, "2026-11-01", 1.0, LATER))
    orders.run(spark, "incremental", "i")
    assert entries(spark, orders) == places(spark, orders)
    orders.run(spark, "backfill", "f", partitions=("2026-11-01",))
    assert entries(spark, orders) == places(spark, orders)
    orders.run(spark, "cluster", "c", cluster=ClusterSpec(quiet_s=0.0), source=None)
    assert entries(spark, orders) == places(spark, orders)
    orders.sql("delete from orders where id > 30")
    orders.run(spark, "bootstrap", "r", replace=True)
    assert entries(spark, orders) == places(spark, orders)
    by_another(spark, orders)
    assert entries(spark, orders) == places(spark, orders)
    orders.sql(f"update orders set amount = 9, updated_at = '{LATEST}'")
    assert orders.run(spark, "incremental", "j").error is None
    ids = [row[0] for row in orders.rows(spark, "id")]
    assert len(ids) == len(set(ids))


def by_another(spark: SparkSession, orders: Orders) -> None:
    """One that packs new rows into files that are there."""
    rows = rows_of_table(spark, orders).limit(1)
    save_as_another(rows.withColumn("id", F.lit(900).cast(rows.schema["id"].dataType)), orders, "upsert")


def rows_of_table(spark: SparkSession, orders: Orders) -> DataFrame:
    """Without Hudi's own columns."""
    names = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
    return read_table(spark, orders.table).drop(*(f"_hoodie_{name}" for name in names))


def save_as_another(rows: DataFrame, orders: Orders, operation: str, **more: str) -> None:
    """By a writer that is not ours. `more`: of its options, without `hoodie.datasource.write.` and with `_` for dots."""
    options = {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.operation": operation,
        "hoodie.index.type": "GLOBAL_SIMPLE",
    } | {f"hoodie.datasource.write.{name.replace('_', '.')}": value for name, value in more.items()}
    rows.write.format("hudi").options(**options).mode("append").save(orders.table.uri)


def test_a_job_that_is_killed_at_every_step_loses_and_doubles_no_key(spark: SparkSession, orders: Orders) -> None:
    """While the index is made, between commit and index, and among the entries of a commit."""
    orders.fill(30)
    for step in ("index.after_reading", "index.before_load", "index.after_load"):
        died_at(orders, "bootstrap", "b", step)
    assert orders.run(spark, "bootstrap", "b").error is None
    steps = ("ingestion.inside_commit", "ingestion.after_commit", "index.after_entries")
    for number, step in enumerate(steps):
        orders.sql(f"update orders set day = '2026-11-0{number + 4}', updated_at = '{LATER}' where id in (4, 5)")
        orders.add((100 + number, "2026-11-01", 1.0, LATER))
        died_at(orders, "incremental", f"i{number}", step)
    assert orders.run(spark, "incremental", "i2").error is None
    assert orders.rows(spark) == orders.source_rows()
    assert entries(spark, orders) == places(spark, orders)


@pytest.mark.parametrize("how", ["nobody listens", "nobody answers"])
def test_a_job_that_hbase_does_not_answer_ends_before_it_asks_for_the_lease(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Before a call's time is up that is not limited; and the next one, when HBase is back, has all that came."""
    monkeypatch.setattr(hbase, "PREPARES_WITHIN_S", 0.5)
    orders.fill(10)
    orders.run(spark, "bootstrap", "b")
    orders.add((10, "2026-11-01", 1.0, LATER))
    there, index = orders.table, orders.table.global_index
    assert index is not None
    lease, began = AskedLease(), time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = 1 if how == "nobody listens" else silent.getsockname()[1]
        orders.table = replace(there, global_index=replace(index, thrift=f"127.0.0.1:{port}"))
        report = execute(orders.spec("incremental", "i"), spark=spark, secrets=orders.secrets, lease=lease)
    assert time.monotonic() - began < ThriftAddress("", 0).timeout_s
    assert (report.status, lease.asked, report.counts.read) == ("index_away", 0, 0)
    assert (report.error or "").startswith(f"HBase does not answer through its Thrift server 127.0.0.1:{port}")
    orders.table = there
    assert orders.run(spark, "incremental", "i").written.inserts == 1
    assert orders.rows(spark) == orders.source_rows()


class AskedLease:
    asked = 0

    def try_acquire(self) -> bool:
        self.asked += 1
        return True

    def release(self) -> None:
        """Nobody else wants it."""


@pytest.mark.parametrize("how", ["rolled back", "restored"])
def test_commits_that_are_taken_back_are_followed(spark: SparkSession, orders: Orders, how: str) -> None:
    """A key that they had moved or deleted is where it was, and one that they had inserted is asked for in vain; nothing is built anew."""
    orders.fill(20)
    orders.run(spark, "bootstrap", "b")
    first = orders.timeline.commits()[-1].instant
    orders.sql(f"update orders set day = '2026-11-09', updated_at = '{LATER}' where id in (4, 5)")
    orders.add((20, "2026-11-01", 1.0, LATER))
    orders.run(spark, "incremental", "i")
    before = entries(spark, orders)
    assert orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("7",),))).error is None
    assert entries(spark, orders) == places(spark, orders)
    built, newest = client_of(orders.table).state()["built"], orders.timeline.commits()[-1].instant
    called(spark, orders, f"rollback_to_instant(table => 'taken_back', instant_time => '{newest}')")
    assert entries(spark, orders) == before == places(spark, orders)
    if how == "restored":
        called(spark, orders, f"create_savepoint(table => 'taken_back', commit_time => '{first}')")
        called(spark, orders, f"rollback_to_savepoint(table => 'taken_back', instant_time => '{first}')")
        gone = {"20": before["20"]}
        assert entries(spark, orders) == places(spark, orders) | gone
    assert orders.run(spark, "incremental", "j").error is None
    assert orders.rows(spark) == orders.source_rows()
    assert entries(spark, orders) == places(spark, orders)
    assert client_of(orders.table).state()["built"] == built


def test_a_commit_that_is_taken_back_before_it_was_followed_to_its_end_is_taken_back(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job that followed a delete has died when it had removed the entry, and had not noted so yet."""
    orders.fill(20)
    orders.run(spark, "bootstrap", "b")
    before = entries(spark, orders)
    assert orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("7",),))).error is None
    with monkeypatch.context() as dying:
        dying.setattr(failpoint, "reach", _die)
        with pytest.raises(RuntimeError, match=r"died at index\.after_entries"):
            follow(spark, orders.table, client_of(orders.table))
    assert not client_of(orders.table).get(["7"])
    newest = orders.timeline.commits()[-1].instant
    called(spark, orders, f"rollback_to_instant(table => 'taken_back', instant_time => '{newest}')")
    assert entries(spark, orders) == before == places(spark, orders)


def test_a_copy_of_the_lake_does_not_follow_in_the_index_of_the_first(
    spark: SparkSession, orders: Orders, tmp_path: Path
) -> None:
    """As of an installation whose database was restored somewhere else: its commits are the same."""
    orders.fill(5)
    orders.run(spark, "bootstrap", "b")
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    copy = replace(orders.table, uri=orders.table.uri.replace("/lake/", "/copy/"))
    with pytest.raises(NotAnIndex, match=r"is that of .*/lake/orders in HBase"):
        follow(spark, copy, client_of(orders.table))
    follow(spark, orders.table, client_of(orders.table))


def _die(step: str) -> None:
    raise RuntimeError(f"died at {step}")


def called(spark: SparkSession, orders: Orders, procedure: str) -> None:
    """One of Hudi's own."""
    spark.sql(f"create table taken_back using hudi location '{orders.table.uri}'")
    try:
        spark.sql(f"call {procedure}").collect()
    finally:
        spark.sql("drop table taken_back")
