"""Single entries of the Global Index that are missing, wrong or too much are found, also in a sample, and put right by their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import DeleteSpec, VerifySpec
from ingestion.spark.file_groups import batch_keys
from ingestion.spark.global_index.building import drop
from ingestion.spark.global_index.repairing import repair_time_ms
from ingestion.spark.indexes import hbase
from ingestion.spark.indexes.hbase import HBaseIndex, client_of
from ingestion.spark.loading import small_batches
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders, loaded_by_id
from tests.spark.test_global_index import entries, places

LATER = "2026-11-16 09:00:00"
NONE = {"doubled": 0, "missing": 0, "misplaced": 0, "without_row": 0}


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Orders:
    return loaded_by_id(spark, tmp_path, "hbase")


def damage(orders: Orders) -> None:
    """By another program: entries of two keys are lost, two lead to a file of another key, one is of no row."""
    client, at_ms = client_of(orders.table), repair_time_ms(orders.timeline)
    elsewhere = client.get(["8"])["8"]
    client.put(dict.fromkeys(("7", "13", "999"), elsewhere), at_ms=at_ms)
    client.delete(["3", "4"], at_ms=at_ms)


def verified(spark: SparkSession, orders: Orders, name: str, **how: Any) -> dict[str, Any]:
    report = orders.run(spark, "verify_index", name, source=None, verify=VerifySpec(**how))
    assert report.error is None
    return report.output


def test_what_is_wrong_is_put_right_by_its_keys_and_all_are_compared_after(spark: SparkSession, orders: Orders) -> None:
    damage(orders)
    client, before = client_of(orders.table), client_of(orders.table).state()
    found_wrong = verified(spark, orders, "v")["problems"]
    assert found_wrong == NONE | {"missing": 2, "misplaced": 2, "without_row": 1}
    report = orders.run(spark, "verify_index", "r", source=None, verify=VerifySpec(repairs=True))
    assert report.index_use is not None
    assert (report.index_use.reads, report.index_use.writes) == (3 + 3 + 3, 5), (
        "three comparisons, of ten entries a request"
    )
    output = report.output
    assert output["repaired"] == {"missing": 2, "misplaced": 2, "without_row": 1}
    assert (output["problems"], output["rows"], output["entries"], output["share"]) == (NONE, 30, 30, 1.0)
    assert entries(spark, orders) == places(spark, orders)
    assert client.state() == before  # the index is the same one still: nothing was built anew
    assert verified(spark, orders, "again", repairs=True)["repaired"] == {}
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id in (3, 7, 13)")
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 0, 3)


def test_a_sample_has_the_same_keys_on_both_sides_and_what_is_wrong_among_them(
    spark: SparkSession, orders: Orders
) -> None:
    """Another run has another sample; together they find all that is wrong, and nothing else."""
    damage(orders)
    outputs = [verified(spark, orders, f"s{number}", share=0.3) for number in range(6)]
    assert all(0 < output["rows"] < 30 and output["share"] == 0.3 for output in outputs)
    named = {name: set[str]() for name in NONE}
    for output in outputs:
        for problem, examples in output["examples"].items():
            named[problem] |= {example.partition(":")[0] for example in examples}
    assert named["misplaced"] <= {"7", "13"}
    assert named["missing"] <= {"3", "4"}
    assert named["without_row"] <= {"999"}
    assert sum(map(len, named.values())) >= 3
    assert len({output["rows"] for output in outputs}) > 1


def test_keys_that_the_table_has_twice_are_named_and_left(spark: SparkSession, orders: Orders) -> None:
    rows = spark.sql(f"select 7L as id, '2026-11-20' as day, 1d as amount, timestamp '{LATER}' as updated_at")
    hudi.write_commit(rows, orders.table, "bulk_insert", {"hoodie.metadata.enable": "false"}, {})
    output = verified(spark, orders, "r", repairs=True)
    assert (output["problems"], output["repaired"]) == (NONE | {"doubled": 1}, {})
    assert len([row for row in orders.rows(spark, "id") if row == (7,)]) == 2


def test_an_index_that_has_no_entries_of_its_own_is_not_repaired(spark: SparkSession, tmp_path: Path) -> None:
    """The request is refused before; a job that was told so all the same changes nothing where there is nothing to repair."""
    simple = Orders(tmp_path / "simple")
    simple.fill(3)
    simple.run(spark, "bootstrap", "b")
    assert verified(spark, simple, "r", repairs=True)["repaired"] == {}


def as_spark_does(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """`small`: in the driver; `named`: by Spark, with the keys asked for in the driver; `many`: all by Spark's tasks."""
    if path != "small":
        monkeypatch.setattr(small_batches, "MAX_ROWS", 0)
    if path == "many":
        monkeypatch.setattr(batch_keys, "MAX_NAMED_KEYS", 0)


def lead_astray(orders: Orders, *keys: str) -> None:
    """Their entries name a file of another key."""
    client = client_of(orders.table)
    client.put(dict.fromkeys(keys, client.get(["8"])["8"]), at_ms=repair_time_ms(orders.timeline))


@pytest.mark.parametrize("path", ["small", "named", "many"])
def test_an_entry_that_leads_to_a_file_without_its_key_doubles_no_row(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Its row is looked for in the whole table, the entry is put right, and the commit says so. An entry of a row that is gone is removed."""
    as_spark_does(monkeypatch, path)
    lead_astray(orders, "7", "13", "40")
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id in (6, 7, 13)")
    orders.add((40, "2026-11-01", 1.0, LATER), (41, "2026-11-01", 1.0, LATER))
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 2, 3)
    assert orders.rows(spark) == orders.source_rows()
    assert orders.timeline.commits()[-1].run["corrected_entries"] == 2
    assert entries(spark, orders) == places(spark, orders)
    orders.sql("update orders set amount = -2, updated_at = '2026-11-16 10:00:00' where id in (7, 40)")
    assert orders.run(spark, "incremental", "j").written.updates == 2
    assert "corrected_entries" not in orders.timeline.commits()[-1].run


@pytest.mark.parametrize("path", ["small", "many"])
def test_without_the_check_it_would(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    as_spark_does(monkeypatch, path)
    monkeypatch.setattr(HBaseIndex, "correct", lambda *_: 0)
    lead_astray(orders, "7")
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id = 7")
    assert orders.run(spark, "incremental", "i").written.inserts == 1
    assert len([row for row in orders.rows(spark, "id") if row == (7,)]) == 2


def test_a_key_whose_entry_leads_astray_is_deleted_where_it_lies(spark: SparkSession, orders: Orders) -> None:
    lead_astray(orders, "7")
    report = orders.run(spark, "delete", "d", source=None, delete=DeleteSpec(keys=(("7",), ("9",))))
    assert (report.error, report.written.deletes) == (None, 2)
    assert orders.timeline.commits()[-1].run["corrected_entries"] == 1
    assert not {(7,), (9,)} & {*orders.rows(spark, "id")}
    assert entries(spark, orders) == places(spark, orders)


def test_an_index_that_stays_wrong_stops_the_job_before_it_writes(spark: SparkSession, orders: Orders) -> None:
    """An entry with a later time than the newest commit, which no other one takes the place of, until the index is built anew."""
    client = client_of(orders.table)
    client.put({"7": client.get(["8"])["8"]}, at_ms=4 * 10**12)
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id = 7")
    report = orders.run(spark, "incremental", "i")
    assert (report.status, report.written.total) == ("failed", 0)
    assert "JudgeAgain: For 1 keys the index of `orders` named files without them" in (report.error or "")
    assert verified(spark, orders, "r", repairs=True)["problems"] == NONE | {"misplaced": 1}
    assert orders.run(spark, "rebuild_index", "b2", source=None).error is None
    assert orders.run(spark, "incremental", "j").written.updates == 1
    assert orders.rows(spark) == orders.source_rows()


def test_an_index_that_hbase_has_lost_is_made_anew_by_its_run(spark: SparkSession, orders: Orders) -> None:
    """As `index_clusters recover` asks for it, on a cluster that is empty."""
    assert orders.table.global_index is not None
    drop(spark, orders.table, orders.table.global_index)
    lost = orders.run(spark, "verify_index", "v", source=None)
    assert "IndexTableMissing: HBase has no table" in (lost.error or "")
    report = orders.run(spark, "rebuild_index", "r", source=None)
    assert (report.error, report.output) == (None, {"index": "hbase"})
    assert entries(spark, orders) == places(spark, orders)


def test_very_many_wrong_entries_are_built_anew(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hbase, "MAX_NAMED_KEYS", 2)
    lead_astray(orders, "6", "7", "13")
    built = client_of(orders.table).state()["built"]
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id in (6, 7, 13)")
    assert orders.run(spark, "incremental", "i").written.updates == 3
    assert client_of(orders.table).state()["built"] != built
    assert entries(spark, orders) == places(spark, orders)


def test_what_was_removed_as_wrong_hides_nothing_that_another_machine_commits(
    spark: SparkSession, orders: Orders
) -> None:
    """Its clock may be behind by a minute: what is removed has the time of the newest commit, and of no clock."""
    client = client_of(orders.table)
    client.put({"999": client.get(["8"])["8"]}, at_ms=repair_time_ms(orders.timeline))
    assert verified(spark, orders, "r", repairs=True)["problems"] == NONE
    client.put({"999": client.get(["8"])["8"]}, at_ms=repair_time_ms(orders.timeline) + 1)
    assert client.get(["999"])
