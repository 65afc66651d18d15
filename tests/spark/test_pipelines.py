"""A pipeline's target equals a full recomputation after whatever happened to its inputs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, monotonically_increasing_id

from ingestion.domain.backfills.chunks import cut, partitions_between
from ingestion.domain.pipelines.definition import INSERT_OVERWRITE
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.domain.schema import Schema
from ingestion.pipelines.folder import read_folder
from ingestion.spark.contract.report import WrittenKeys
from ingestion.spark.contract.spec import ClusterSpec, DeleteSpec
from ingestion.spark.etl import committing, few_rows, views
from ingestion.spark.etl.changed_rows import changed_rows
from ingestion.spark.etl.input_changes import changed_files
from ingestion.spark.etl.overwriting import placement_of
from ingestion.spark.etl.recomputing import partitions_of
from ingestion.spark.execute import execute
from ingestion.spark.file_groups.many_rows import committing as many_rows
from ingestion.spark.file_groups.many_rows.committing import ManyRows
from ingestion.spark.file_groups.many_rows.new_files import Placement
from ingestion.spark.loading.staging import SEQUENCE_COLUMN, STAGED_BY_SPARK, StagedBatch
from ingestion.spark.tables import hudi
from ingestion.spark.tables.hudi import META_COLUMNS
from ingestion.spark.tables.timeline import Timeline
from lakehub.kernel.partitions import Grain
from tests.soak.pipelines.flights import EXAMPLES, place_of, real_rows, with_value
from tests.soak.pipelines.flights import TABLES as FLIGHT_TABLES
from tests.spark.order_shop import changed_rows as changed_since
from tests.spark.order_shop import loaded_by_id
from tests.spark.pipeline_lake import NOTHING, InputTable, PipelineLake, pipeline_of

TABLES = {
    "flights": InputTable({"id": "long", "day": "string", "tail": "string", "carrier": "string", "delay": "int"}, ("id",), "day"),
    "airlines": InputTable({"carrier": "string", "name": "string"}, ("carrier",)),
    "planes": InputTable({"tail": "string", "maker": "string"}, ("tail",)),
}  # fmt: skip
WIDE = pipeline_of(
    "SELECT f.id, f.day, f.carrier, a.name AS airline, p.maker, f.delay FROM flights f LEFT JOIN planes p ON f.tail = p.tail LEFT JOIN airlines a ON f.carrier = a.carrier",
    {"id": "long", "day": "string", "carrier": "string", "airline": "string", "maker": "string", "delay": "int"},
    ("id",),
    "flights", "planes", "airlines",
    partition="day",
)  # fmt: skip
DAYS = pipeline_of(
    "SELECT f.day, a.name AS airline, count(*) AS flights, sum(f.delay) AS delay FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY f.day, a.name",
    {"day": "string", "airline": "string", "flights": "long", "delay": "long"},
    ("day", "airline"),
    "flights", "airlines",
    partition="day",
)  # fmt: skip


BEHIND = pipeline_of(
    "SELECT w.airline, sum(w.flights) AS flights, sum(w.delay) AS delay FROM wide w GROUP BY w.airline",
    {"airline": "string", "flights": "long", "delay": "long"},
    ("airline",),
    "wide",
    name="behind",
)


def lake_of(spark: SparkSession, folder: Path, kind: str) -> PipelineLake:
    """Loaded, from 40 flights of four days."""
    lake = PipelineLake(spark, folder, TABLES, {"wide": {"wide": WIDE, "days": DAYS}[kind]}, "record_index" if kind == "wide" else "simple")  # fmt: skip
    days = [f"2013-01-{day:02}" for day in range(1, 5)]
    lake.put("flights", [(n, days[n % 4], f"N{n % 5}", ("UA", "AA", "DL")[n % 3], n) for n in range(40)])
    lake.put("airlines", [("UA", "United"), ("AA", "American")])
    lake.put("planes", [("N0", "Boeing"), ("N1", "Airbus")])
    report = lake.run("bootstrap")
    assert (report.status, report.error) == ("succeeded", None)
    return lake


@pytest.mark.parametrize(("kind", "most_rows"), [("wide", 0), ("days", few_rows.MAX_ROWS)])
def test_it_equals_a_full_recomputation_after_each_change(
    spark: SparkSession, tmp_path: Path, kind: str, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written by Spark's tasks, by Hudi, and without Spark."""
    monkeypatch.setattr(few_rows, "MAX_ROWS", most_rows)
    written_by_tasks = noted_writes(monkeypatch)
    lake = lake_of(spark, tmp_path, kind)
    assert lake.differences("wide") == NOTHING
    changes: dict[str, Callable[[], object]] = {
        "a late flight, another, and one that moves to another day": lambda: lake.put("flights", [(100, "2013-01-01", "N9", "DL", 7), (3, "2013-01-04", "N3", "UA", 70), (5, "2013-02-01", "N0", "AA", 1)]),
        "an airline that gets another name, and a new one": lambda: lake.put("airlines", [("UA", "United Airlines"), ("DL", "Delta")]),
        "deleted flights": lambda: lake.remove("flights", [(n, f"2013-01-{n % 4 + 1:02}", "", "", 0) for n in (0, 4, 8)]),
        "a deleted airline": lambda: lake.remove("airlines", [("AA", "")]),
        "all airlines anew": lambda: lake.replace_all("airlines", [("AA", "American"), ("DL", "Delta Air Lines")]),
    }  # fmt: skip
    shares = {"wide": [*changes][:3], "days": [*changes][2:]}  # each takes a minute where machines are slow
    for number, what in enumerate(shares[kind]):
        changes[what]()
        is_hudis = kind == "wide" and number == 1
        with monkeypatch.context() as only_hudi:
            if is_hudis:
                only_hudi.setattr(committing, "open_many_rows", lambda *_: None)
            report = lake.run("incremental")
        assert (report.status, report.error) == ("succeeded", None), what
        assert len(written_by_tasks) == (kind == "wide" and not is_hudis), what
        written_by_tasks.clear()
        (read,) = report.output["inputs"].values()  # one input was written
        assert (read["commits"], read["files"] > 0, read["bytes"] > 0) == (1, True, True), what
        assert lake.differences("wide") == NOTHING, what
    assert lake.run("incremental").status == "nothing_to_do"


def noted_writes(monkeypatch: pytest.MonkeyPatch) -> list[ManyRows]:
    """The commits of many rows, from now on: each moves its files from beside the table, wherever rows are staged."""
    noted, write = list[ManyRows](), ManyRows.write

    def note(rows: ManyRows, *given: Any) -> None:
        noted.append(rows)
        assert str(given[-1]).startswith(f"{rows.table.uri.rpartition('/')[0]}/.lakehub/")
        write(rows, *given)

    monkeypatch.setattr(ManyRows, "write", note)
    return noted


def test_who_reads_increments_sees_what_tasks_have_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that go to files that are there and to a new one, changes, a move and deletes; and another writer meets their keys by the Bloom filters of the files."""
    monkeypatch.setattr(few_rows, "MAX_ROWS", 0)
    written = noted_writes(monkeypatch)
    lake = PipelineLake(spark, tmp_path, TABLES, {"wide": WIDE}, "simple")
    lake.put("flights", [(n, f"2013-01-0{n % 3 + 1}", "N0", "UA", n) for n in range(9)])
    lake.put("airlines", [("UA", "United")])
    lake.put("planes", [("N0", "Boeing")])
    assert lake.run("bootstrap").error is None
    loaded = Timeline(lake.uri("wide")).latest_completion()
    lake.put(
        "flights",
        [
            (0, "2013-01-02", "N0", "UA", 0),
            (1, "2013-01-02", "N0", "UA", 70),
            (20, "2013-01-01", "N9", "DL", 7),
            (21, "2013-02-01", "N9", "DL", 7),
        ],
    )
    lake.remove("flights", [(2, "2013-01-03", "", "", 0), (5, "2013-01-03", "", "", 0)])
    before = [row.asDict() for row in lake.stored("wide").orderBy("id").collect()]
    with monkeypatch.context() as breaking:
        breaking.setattr(many_rows, "write_new_files", lambda *_, **__: [][0])  # when the others are in their places
        assert "IndexError" in str(lake.run("incremental").error)
    assert [row.asDict() for row in lake.stored("wide").orderBy("id").collect()] == before
    written.clear()
    report = lake.run("incremental", staging_uri=(tmp_path / "elsewhere").as_uri())
    assert (report.error, report.written.inserts, report.written.updates) == (None, 3, 1)
    (rows,) = written
    assert ({*rows.places}, rows.fresh) == ({"day=2013-01-01", "day=2013-01-02"}, 1)
    assert lake.differences("wide") == NOTHING
    assert sorted((op, row["id"], row["day"]) for op, row in changed_since(spark, lake.uri("wide"), loaded)) == [
        ("d", 0, "2013-01-01"), ("d", 2, "2013-01-03"), ("d", 5, "2013-01-03"), ("i", 0, "2013-01-02"), ("i", 20, "2013-01-01"), ("i", 21, "2013-02-01"), ("u", 1, "2013-01-02"),
    ]  # fmt: skip
    stored = lake.stored("wide")
    options = {**hudi.table_options(lake.table("wide"), parallelism=2), "hoodie.index.type": "BLOOM"}
    options |= {"hoodie.bloom.index.use.metadata": "false", "hoodie.datasource.write.operation": "upsert"}
    changed = stored.withColumn("delay", stored["delay"] + 100).localCheckpoint()
    changed.write.format("hudi").options(**options).mode("append").save(lake.uri("wide"))
    assert sorted(row["id"] for row in lake.stored("wide").collect()) == [0, 1, 3, 4, 6, 7, 8, 20, 21]


def test_whole_partitions_are_made_anew_where_the_pipeline_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that changes reach, also one that is left without rows; with a key of which a part is empty, which a later run by keys meets. Keys that come twice are made once."""
    over = replace(DAYS, operation=INSERT_OVERWRITE)
    lake = PipelineLake(spark, tmp_path, TABLES, {"wide": over})
    days = [f"2013-01-{day:02}" for day in range(1, 5)]
    lake.put("flights", [(n, days[n % 4], f"N{n % 5}", ("UA", "AA", "DL")[n % 3], n) for n in range(40)])
    lake.put("airlines", [("UA", "United"), ("AA", "")])
    assert lake.run("bootstrap").error is None
    expected = {
        "flights": (["2013-01-01", "2013-01-02", "2013-01-04", "2013-02-01"], lambda: lake.put("flights", [(100, "2013-01-01", "N9", "DL", 7), (3, "2013-01-04", "N3", "UA", 70), (5, "2013-02-01", "N0", "AA", 1)])),
        "an airline, by a query": (["2013-01-01", "2013-01-02", "2013-01-03", "2013-01-04"], lambda: lake.put("airlines", [("DL", "Delta")])),
        "a partition without rows": (["2013-01-01"], lambda: lake.remove("flights", [(n, days[0], "", "", 0) for n in (*range(0, 40, 4), 100)])),
    }  # fmt: skip
    for what, (partitions, change) in expected.items():
        before = files_of(lake)
        change()
        report = lake.run("incremental")
        assert (report.status, report.error) == ("succeeded", None), what
        commit = next(iter(Timeline(lake.uri("wide")).newest_first()))
        assert commit.operation == "INSERT_OVERWRITE", what
        assert {path for path in before.keys() | files_of(lake).keys() if before.get(path) != files_of(lake).get(path)} == {f"day={day}" for day in partitions}, what  # fmt: skip
        assert lake.differences("wide") == NOTHING, what
    assert lake.run("backfill", partitions=("2013-01-02",)).error is None
    assert next(iter(Timeline(lake.uri("wide")).newest_first())).operation == "INSERT_OVERWRITE"
    assert lake.differences("wide") == NOTHING
    by_keys = replace(lake, pipelines={"wide": DAYS})
    lake.put("flights", [(1, days[1], "N1", "AA", 99)])
    assert by_keys.run("incremental").error is None
    assert lake.differences("wide") == NOTHING


def test_rows_that_lie_by_partition_are_written_without_a_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    """As tasks have staged them: of a partition after another, in turns, and in very many files."""
    staged = {
        "one after another": (lambda n: n // 40, 2, Placement.IN_RUNS),
        "in turns, of many": (lambda n: n % 30, 2, Placement.ANYWHERE),
        "in turns, of few": (lambda n: n % 3, 2, Placement.IN_FEW),
        "all in each file": (lambda n: n % 3, 4, Placement.ANYWHERE),
    }
    for what, (partition, files, expected) in staged.items():
        batch = StagedBatch(f"{tmp_path}/{what}", Schema.of({"day": "string"}))
        days = [(f"{partition(n)}",) for n in range(1_200)]
        frame = spark.createDataFrame(spark.sparkContext.parallelize(days, files), "day string")
        frame.withColumn(SEQUENCE_COLUMN, monotonically_increasing_id()).write.parquet(batch.rows_uri)
        batch.rows_by_partition, batch.layout = partitions_of(spark.read.parquet(batch.rows_uri), col("day"))
        assert batch.rows_by_partition == Counter(day for (day,) in days)
        assert placement_of(batch) is expected, what


def test_staged_rows_are_compressed_and_have_no_dictionaries(spark: SparkSession, tmp_path: Path) -> None:
    """Spark says nothing of an option that it does not know."""
    spark.sql("SELECT 'same' AS text FROM range(9)").coalesce(1).write.options(**STAGED_BY_SPARK).parquet(
        f"{tmp_path}/rows"
    )
    (file,) = tmp_path.glob("rows/*.parquet")
    column = pq.read_metadata(file).row_group(0).column(0)
    assert (column.compression, column.has_dictionary_page) == ("ZSTD", False)


def files_of(lake: PipelineLake) -> dict[str, set[str]]:
    """Those that hold rows, by partition."""
    rows = hudi.read_table(lake.spark, lake.table("wide")).select("_hoodie_partition_path", "_hoodie_file_name")
    by_path = defaultdict[str, set[str]](set)
    for path, name in rows.distinct().collect():
        by_path[path].add(name)
    return by_path


def test_who_was_overtaken_reads_its_inputs_again(spark: SparkSession, tmp_path: Path) -> None:
    """A backfill has made its rows, and then the flights change and another run brings that in."""
    lake = lake_of(spark, tmp_path, "days")

    def change_and_follow() -> None:
        lake.put("flights", [(0, "2013-01-01", "N0", "UA", 1_000)])
        assert lake.run("incremental").error is None

    report = lake.run("backfill", partitions=("2013-01-01",), before_write=change_and_follow)
    assert report.error is None
    assert lake.differences("wide") == NOTHING


def test_what_was_not_brought_in_yet_a_backfill_makes_for_its_partitions_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = lake_of(spark, tmp_path, "days")
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 1_000), (1, "2013-01-02", "N0", "UA", 1_000)])
    report = lake.run("backfill", partitions=("2013-01-01",))
    assert (report.error, [*report.partitions]) == (None, ["2013-01-01"])
    assert {row[0] for row in lake.differences("wide")["recomputed"]} == {"2013-01-02"}
    assert lake.run("incremental").error is None
    assert lake.differences("wide") == NOTHING


@pytest.mark.parametrize("operation", ["upsert", INSERT_OVERWRITE])
def test_what_a_backfill_alone_has_read_is_taken_back_by_the_next_run(
    spark: SparkSession, tmp_path: Path, operation: str
) -> None:
    """A flight that came and went, and one that went by a day where it is no more, between two runs. Before the third nothing is left to be told."""
    shop = lake_of(spark, tmp_path, "days")
    lake = replace(shop, pipelines={"wide": replace(DAYS, operation=operation)})
    lake.put("flights", [(100, "2013-01-01", "N0", "UA", 9), (0, "2013-01-02", "N0", "UA", 0)])
    assert lake.run("backfill", partitions=("2013-01-01",)).error is None
    lake.put("airlines", [("UA", "Unitd")])
    assert lake.run("backfill", partitions=("2013-01-02",)).error is None
    lake.put("airlines", [("UA", "United Airlines")])
    lake.remove("flights", [(100, "2013-01-01", "", "", 0)])
    lake.put("flights", [(0, "2013-01-03", "N0", "UA", 0)])
    assert {name: len(read) for name, read in checkpoint_of(lake)["read_at"].items()} == {"flights": 1, "airlines": 1}
    report = lake.run("incremental")
    assert (report.error, "made_anew" in report.output) == (None, False)
    assert lake.differences("wide") == NOTHING
    assert "read_at" not in checkpoint_of(lake)
    assert lake.run("backfill", partitions=("2013-01-02",)).error is None
    assert "read_at" not in checkpoint_of(lake)


def checkpoint_of(lake: PipelineLake) -> dict[str, Any]:
    checkpoint = Timeline(lake.uri("wide")).checkpoint()
    assert checkpoint is not None
    return dict(checkpoint.position)


@pytest.mark.parametrize("kind", ["bootstrap", "incremental"])
def test_what_is_committed_while_inputs_are_read_is_followed_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A name that stands in an input for a moment: as its rows are opened, and once they are open. No run keeps a row of it for good."""
    lake = lake_of(spark, tmp_path, "days")
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 1_000)])
    before: dict[str, Callable[[], None]] = {lake.uri("airlines"): lambda: lake.put("airlines", [("UA", "Unitd")])}
    after = {lake.uri("flights"): lambda: lake.put("flights", [(0, "2013-01-01", "N0", "AA", 2_000)])}
    read_at = views.read_at

    def committed_to(session: SparkSession, uri: str) -> Any:
        before.pop(uri, lambda: None)()
        rows = read_at(session, uri)
        after.pop(uri, lambda: None)()
        return rows

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(views, "read_at", committed_to)
        assert lake.run(kind, replace=kind == "bootstrap").error is None
    assert not before | after
    lake.put("airlines", [("UA", "United Airlines")])
    lake.put("flights", [(0, "2013-01-04", "N0", "UA", 3_000)])
    assert lake.run("incremental").error is None
    assert lake.differences("wide") == NOTHING


def test_an_input_that_is_committed_to_all_the_time_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, read_at = lake_of(spark, tmp_path, "days"), views.read_at
    monkeypatch.setattr(views, "_MAX_OPENINGS", 2)
    names = count(1)

    def committed_to(session: SparkSession, uri: str) -> Any:
        lake.put("airlines", [("UA", f"United {next(names)}")])
        return read_at(session, uri)

    lake.put("airlines", [("UA", "United Airlines")])
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(views, "read_at", committed_to)
        error = str(lake.run("incremental").error)
    assert "The input `airlines`" in error
    assert "committed to each of the 2 times" in error


def test_a_pipeline_behind_follows_what_a_backfill_in_chunks_has_made(spark: SparkSession, tmp_path: Path) -> None:
    """By its own run, and without being told of partitions."""
    shop = lake_of(spark, tmp_path, "days")
    lake = replace(shop, pipelines={**shop.pipelines, "behind": BEHIND})
    assert lake.run("bootstrap", "behind").error is None
    lake.put("flights", [(n, f"2013-01-{n % 4 + 1:02}", "N0", "UA", 1_000) for n in range(8)])
    chunks = cut(partitions_between("2013-01-01", "2013-01-04", Grain.DAY, ZoneInfo("UTC")), 2)
    assert [lake.run("backfill", partitions=tuple(chunk)).error for chunk in chunks] == [None, None]
    assert lake.differences("wide") == NOTHING
    assert lake.differences("behind") != NOTHING
    report = lake.run("incremental", "behind")
    assert (report.error, report.output["inputs"]["wide"]["commits"]) == (None, 2)
    assert lake.differences("behind") == NOTHING


def test_an_input_whose_history_is_gone_is_read_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Its commits are archived, as of a pipeline that was paused for weeks."""
    lake = lake_of(spark, tmp_path, "days")
    lake.remove("flights", [(0, "2013-01-01", "", "", 0)])
    folder = tmp_path / "lake" / "airlines" / ".hoodie" / "timeline"
    lake.put("airlines", [("DL", "Delta")])
    oldest = Timeline(lake.uri("airlines")).completed()[0]
    (folder / oldest.name).unlink()
    report = lake.run("incremental")
    assert (report.status, report.error) == ("succeeded", None)
    assert "are archived" in report.output["made_anew"]
    assert lake.differences("wide") == NOTHING
    assert lake.run("incremental").status == "nothing_to_do"


ORDERS = pipeline_of(
    "SELECT o.day, count(*) AS orders, max(o.amount) AS largest FROM orders o GROUP BY o.day",
    {"day": "string", "orders": "long", "largest": "double"},
    ("day",),
    "orders",
    partition="day",
)


def test_what_our_own_jobs_write_is_followed_without_a_spark_job_or_with_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Small batches are written by Hudi's Java client, files are put together, rows move and are deleted."""
    shop = loaded_by_id(spark, tmp_path, "record_index")
    lake = PipelineLake(spark, tmp_path, {"orders": InputTable({"id": "long", "day": "string", "amount": "double"}, ("id",), "day")}, {"wide": ORDERS})  # fmt: skip
    assert lake.run("bootstrap").error is None
    shop.add((30, "2026-11-01", 99.0, "2026-11-16 09:00:00"), (31, "2026-11-09", 1.0, "2026-11-16 09:00:00"))
    shop.sql("update orders set day = '2026-11-02', updated_at = '2026-11-16 09:00:00' where id = 0")
    assert shop.run(spark, "incremental", "i").error is None
    assert lake.run("incremental").partitions.keys() == {"2026-11-01", "2026-11-02", "2026-11-09"}
    assert lake.differences("wide") == NOTHING
    assert shop.run(spark, "delete", "d", source=None, delete=DeleteSpec(keys=(("29",), ("31",)))).error is None
    assert shop.run(spark, "cluster", "c", source=None, cluster=ClusterSpec(quiet_s=0.0)).error is None
    report = lake.run("incremental")
    assert (report.error, report.counts.applied) == (None, 2)
    assert lake.differences("wide") == NOTHING


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT nullif(o.day, o.day) AS day, 1 AS orders, 1.0 AS largest FROM orders o", "makes rows without a key: `day` is null in 1 row"),
        ("SELECT o.day, count(*) AS n, 1.0 AS largest FROM orders o GROUP BY o.day", "makes no column `orders`"),
        ("SELECT o.day, assert_true(false) AS orders, 1.0 AS largest FROM orders o", "java.lang.RuntimeException: The message may contain values of rows"),
    ],
)  # fmt: skip
def test_a_select_that_makes_no_rows_of_the_target_writes_nothing(
    spark: SparkSession, tmp_path: Path, sql: str, error: str
) -> None:
    lake = PipelineLake(spark, tmp_path, {"orders": InputTable({"id": "long", "day": "string"}, ("id",))}, {"wide": replace(ORDERS, transform=sql)})  # fmt: skip
    lake.put("orders", [(1, "2026-11-01")])
    spec = replace(lake.spec("bootstrap", "b"), pipeline=replace(lake.pipeline_spec("wide"), transform=sql))
    report = execute(spec, spark=spark, secrets={})
    assert report.status == "failed"
    assert error in str(report.error)
    assert not Timeline(lake.uri("wide")).exists


def test_an_input_that_is_not_there_or_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    lake = PipelineLake(spark, tmp_path, {"orders": InputTable({"id": "long", "day": "string", "amount": "double"}, ("id",))}, {"wide": ORDERS})  # fmt: skip
    assert "does not exist, so it is no table" in str(lake.run("bootstrap").error)
    lake.put("orders", [(1, "2026-11-01", 1.0)])
    properties = tmp_path / "lake" / "orders" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=9", "hoodie.table.version=6"))
    assert "has the table version 6" in str(lake.run("bootstrap").error)


def test_a_text_of_the_query_never_becomes_a_variable(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would write the value of `${system:user.name}`, or of a variable of the environment, in its place."""
    sql = "SELECT concat(o.day, '${system:user.name}${env:PATH}') AS day, o.id AS orders, o.amount AS largest FROM orders o"
    lake = PipelineLake(spark, tmp_path, {"orders": InputTable({"id": "long", "day": "string", "amount": "double"}, ("id",))}, {"wide": replace(ORDERS, transform=sql, partition="")})  # fmt: skip
    lake.put("orders", [(1, "2026-11-01", 1.0)])
    assert lake.run("bootstrap").error is None
    assert [row.day for row in lake.stored("wide").collect()] == ["2026-11-01${system:user.name}${env:PATH}"]


def test_of_the_shipped_example_a_correction_months_old_updates_its_day_alone_and_a_look_back_of_a_week_misses_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Real flights of a day in January and of a week in July. Files of days that the correction does not reach are not read either,
    neither the input's nor the target's: meanwhile they hold no rows that could be read."""
    name, january, july = "carrier-earnings", "2013-01-01", [f"2013-07-0{day}" for day in range(1, 8)]
    lake = PipelineLake(spark, tmp_path, FLIGHT_TABLES, {name: read_pipeline(read_folder(EXAMPLES / name))})
    rows = real_rows([january, *july])
    for table in ("flights", "airlines"):
        lake.put(table, rows[table])
    assert lake.run("bootstrap", name).error is None
    before = rows_by_key(lake.stored(name))
    flown = next(row for row in rows["flights"] if january in row and "landed" in row)
    lake.put("flights", [with_value(flown, place_of("flights", "status"), "cancelled")])
    held = {file: file.read_bytes() for file in (tmp_path / "lake").glob("*/flight_date=*/*.parquet")}
    others = [file for file in held if file.parent.name != f"flight_date={january}"]
    assert {file.parts[-3] for file in others} == {"flights", name}
    for file in others:
        file.write_bytes(b"no rows")
    report = lake.run("incremental", name)
    assert (report.error, [*report.partitions], report.written) == (None, [january], WrittenKeys(updates=1))
    commit = next(iter(Timeline(lake.uri(name)).newest_first()))
    assert (commit.instant, [*commit.partitions]) == (report.instant, [january])
    new_files = {*(tmp_path / "lake" / name).glob("*/*.parquet")} - held.keys()
    assert {file.parent.name for file in new_files} == {f"flight_date={january}"}
    for file in others:
        file.write_bytes(held[file])
    recomputed = rows_by_key(lake.recomputed(name))
    assert rows_by_key(lake.stored(name)) == recomputed
    look_back = rows_by_key(lake.recomputed(name).where(col("flight_date").isin(july)))
    missed = {key: (row, recomputed[key]) for key, row in (before | look_back).items() if row != recomputed[key]}
    assert (len(look_back), [*missed]) == (104, [(january, "UA")])
    is_, ought = missed[january, "UA"]
    assert (is_["cancelled"], ought["cancelled"], is_["earnings"] - ought["earnings"]) == (0, 1, Decimal("182.00"))


def rows_by_key(rows: DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Of the earnings, by day and carrier."""
    return {(row.flight_date, row.carrier): row.asDict() for row in rows.collect()}


def test_a_row_that_was_written_anew_with_its_file_has_not_changed(spark: SparkSession, tmp_path: Path) -> None:
    """Of ten flights of the day one got another delay, and one is new."""
    lake = lake_of(spark, tmp_path, "days")
    after = Timeline(lake.uri("flights")).latest_completion()
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 1_000), (100, "2013-01-01", "N0", "UA", 5)])
    lake.remove("flights", [(4, "2013-01-01", "", "", 0)])
    files = changed_files(lake.uri("flights"), after, Timeline(lake.uri("flights")).latest_completion())
    columns = spark.read.format("hudi").load(lake.uri("flights")).drop(*META_COLUMNS).schema
    before, now = changed_rows(spark, lake.uri("flights"), files, columns)
    assert sorted((row.id, row.delay) for row in before.collect()) == [(0, 0), (4, 4)]
    assert sorted((row.id, row.delay) for row in now.collect()) == [(0, 1_000), (100, 5)]
    assert "Join" not in now._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]


def test_of_rows_with_one_key_the_same_stays_in_whatever_order_they_come(spark: SparkSession, tmp_path: Path) -> None:
    """Each tail has three planes: the greatest row stays, and where `precombine` names the seats, that with the most."""
    sql = "SELECT f.id, f.day, p.maker, p.seats FROM flights f JOIN planes p ON f.tail = p.tail"
    columns = {"id": "long", "day": "string", "maker": "string", "seats": "int"}
    tables = {"flights": TABLES["flights"], "planes": InputTable({"tail": "string", "maker": "string", "seats": "int"}, ("tail", "maker"))}  # fmt: skip
    pipelines = {
        name: pipeline_of(sql, columns, ("id",), "flights", "planes", name=name, precombine=precombine)
        for name, precombine in {"any": "", "most": "seats"}.items()
    }
    lake = PipelineLake(spark, tmp_path, tables, pipelines)
    lake.put("flights", [(n, "2013-01-01", f"N{n % 2}", "UA", n) for n in range(6)])
    planes = [(f"N{n}", maker, seats) for n in range(2) for maker, seats in (("B", 9), ("C", 1), ("A", 5))]
    lake.put("planes", planes)
    for name, maker in {"any": "C", "most": "B"}.items():
        assert lake.run("bootstrap", name).error is None
        assert {row.maker for row in lake.stored(name).collect()} == {maker}
    lake.replace_all("planes", reversed(planes))
    for name in pipelines:
        assert lake.run("incremental", name).error is None
        assert lake.differences(name) == NOTHING
