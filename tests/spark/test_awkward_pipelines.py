"""Pipelines over values that tables of the lake have seldom: the target equals a full recomputation, or the rows are refused by name before anything is written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingestion.domain.pipelines.definition import INSERT_OVERWRITE, PipelineDefinition
from ingestion.spark.etl import recomputing
from tests.spark.pipeline_lake import NOTHING, InputTable, PipelineLake, pipeline_of

SALES = InputTable({"id": "long", "day": "string", "amount": "decimal(12,2)"}, ("id",))
PLAIN, FAR = ("2013-01-01", "2013-01-02"), ("0001-01-01", "+12013-01-01")
"""Days: Python has no year 12013, and does not write 1 in four digits."""


def lake_of(spark: SparkSession, folder: Path, table: InputTable, *pipelines: PipelineDefinition) -> PipelineLake:
    return PipelineLake(spark, folder, {"sales": table}, {each.name: each for each in pipelines})


def check_equal(lake: PipelineLake, kind: str) -> None:
    for name in lake.pipelines:
        report = lake.run(kind, name)
        assert (report.status, report.error) == ("succeeded", None), name
        assert lake.stored(name).exceptAll(lake.recomputed(name)).isEmpty(), name
        assert lake.recomputed(name).exceptAll(lake.stored(name)).isEmpty(), name


def test_a_table_has_days_and_decimals_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Of days as keys Hudi is told which rows go by a value that no row has."""
    sums = "SELECT CAST(day AS DATE) AS day, sum(amount) AS amount FROM sales GROUP BY CAST(day AS DATE)"
    columns = {"day": "date", "amount": "decimal(22,2)"}
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(sums, columns, ("day",), "sales"))
    lake.put("sales", [(n, day, Decimal(n)) for n, day in enumerate(PLAIN * 2)])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(0, PLAIN[0], Decimal("7.50")), *((10 + n, day, Decimal(1)) for n, day in enumerate(FAR))])
    check_equal(lake, "incremental")
    lake.remove("sales", [(n, "", Decimal(0)) for n in (1, 3, 11)])
    check_equal(lake, "incremental")


def test_rows_come_and_go_in_partitions_that_are_days(spark: SparkSession, tmp_path: Path) -> None:
    days = "SELECT id, CAST(day AS DATE) AS day FROM sales"
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(days, {"id": "long", "day": "date"}, ("id",), "sales", partition="day"))  # fmt: skip
    lake.put("sales", [(n, day, Decimal(n)) for n, day in enumerate(PLAIN * 2)])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(0, PLAIN[1], Decimal(0)), (10, "1969-12-31", Decimal(0)), (11, FAR[0], Decimal(0))])
    check_equal(lake, "incremental")
    lake.put("sales", [(10, FAR[1], Decimal(0))])
    check_equal(lake, "incremental")


@pytest.mark.parametrize(
    ("before", "now", "value", "later"),
    [("int", "double", 5, 7.5), ("decimal(10,2)", "decimal(12,4)", Decimal("1.50"), Decimal("2.25"))],
)
def test_a_column_with_a_wider_type_may_change_rows_that_stay(
    spark: SparkSession, tmp_path: Path, before: str, now: str, value: object, later: object
) -> None:
    texts = pipeline_of("SELECT CAST(v AS STRING) AS v, count(*) AS n FROM sales GROUP BY CAST(v AS STRING)", {"v": "string", "n": "long"}, ("v",), "sales")  # fmt: skip
    others = pipeline_of("SELECT id FROM sales", {"id": "long"}, ("id",), "sales", name="others")
    lake = lake_of(spark, tmp_path, InputTable({"id": "long", "v": before}, ("id",)), texts, others)
    lake.put("sales", [(n, value) for n in range(4)])
    check_equal(lake, "bootstrap")
    lake.tables = {"sales": InputTable({"id": "long", "v": now}, ("id",))}
    lake.put("sales", [(9, later)])
    made_anew = [lake.run("incremental", name).output.get("made_anew") for name in lake.pipelines]
    assert made_anew == [f"columns of the input `sales` have another type: `v` ({before} -> {now})", None]
    assert [lake.differences(name) for name in lake.pipelines] == [NOTHING, NOTHING]


def test_an_empty_text_names_no_partition_of_an_input(spark: SparkSession, tmp_path: Path) -> None:
    """Readers have it as null, as its folder says, and its files as it was written."""
    days = "SELECT coalesce(day, 'none') AS day, sum(amount) AS amount FROM sales GROUP BY coalesce(day, 'none')"
    lake = lake_of(spark, tmp_path, InputTable(SALES.columns, ("id",), "day"), pipeline_of(days, {"day": "string", "amount": "decimal(22,2)"}, ("day",), "sales"))  # fmt: skip
    lake.put("sales", [(1, "", Decimal(1)), (2, PLAIN[0], Decimal(2))])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(1, "", Decimal(10))])
    check_equal(lake, "incremental")


@pytest.mark.parametrize(
    ("key", "row", "why"),
    [
        (("a",), ("", "x"), "`a` is an empty text in 1 row"),
        (("a",), ("x" * 30_001, "x"), "the record key has more than 30,000 bytes in 1 row"),
        (("a", "b"), ("", "x"), "`a` is an empty text in 1 row"),
        (("a", "b"), ("x,b:y", "z"), "`a` has `,b:` in it, which separates the columns of a key, in 1 row"),
        (
            ("a", "b"),
            ("__empty__", "z"),
            "`a` is `__empty__` or `__null__`, which stand for missing parts of a key, in 1 row",
        ),
    ],
)
def test_rows_whose_key_is_none_of_a_table_are_refused(
    spark: SparkSession, tmp_path: Path, key: tuple[str, ...], row: tuple[Any, ...], why: str
) -> None:
    columns = {"id": "long", "a": "string", "b": "string"}
    lake = lake_of(spark, tmp_path, InputTable(columns, ("id",)), pipeline_of("SELECT * FROM sales", columns, key, "sales"))  # fmt: skip
    lake.put("sales", [(1, *row), (2, "x", "y,b:z")])
    report = lake.run("bootstrap")
    assert report.error == (
        f"JobError: The SELECT of `wide` makes rows that the table cannot hold: {why}. Nothing was written. "
        "Leave such rows out (WHERE), or give them another value (CASE)."
    )
    assert not (tmp_path / "lake" / "wide").exists()


NO_FOLDERS = ("", "__HIVE_DEFAULT_PARTITION__", "a/", "../../a", "12:30", "a\0", "%2F", "é" * 127)
ODD_FOLDERS = ("..", "100%", "%4", "a=b", " a ", "é☃")


@pytest.mark.parametrize("operation", ["upsert", INSERT_OVERWRITE])
def test_texts_that_are_read_otherwise_or_lead_elsewhere_are_no_partitions(
    spark: SparkSession, tmp_path: Path, operation: str
) -> None:
    """Hudi names a folder by them as they are, and reads from it what they stand for."""
    parts = pipeline_of("SELECT id, day AS part, amount FROM sales", {"id": "long", "part": "string", "amount": "decimal(12,2)"}, ("id", "part"), "sales", partition="part", operation=operation)  # fmt: skip
    lake = lake_of(spark, tmp_path, SALES, parts)
    lake.put("sales", [(n, day, Decimal(n)) for n, day in enumerate(ODD_FOLDERS)])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(n + 10, day, Decimal(n)) for n, day in enumerate(ODD_FOLDERS)])
    check_equal(lake, "incremental")
    lake.remove("sales", [(n, "", Decimal(0)) for n in range(10)])
    check_equal(lake, "incremental")
    lake.put("sales", [(n + 20, day, Decimal(n)) for n, day in enumerate(NO_FOLDERS)])
    assert f"`part`, which names the partition, is empty or `__HIVE_DEFAULT_PARTITION__`, has a slash, colon, NUL or escape (`%41`), or more than 250 bytes, in {len(NO_FOLDERS)} rows. Nothing was written." in str(lake.run("incremental").error)  # fmt: skip


@pytest.mark.parametrize("operation", ["upsert", INSERT_OVERWRITE])
def test_a_row_without_a_key_is_refused_whenever_it_comes(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    days = "SELECT day, sum(amount) AS amount FROM sales GROUP BY day"
    columns = {"day": "string", "amount": "decimal(22,2)"}
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(days, columns, ("day",), "sales", partition="day", operation=operation))  # fmt: skip
    lake.put("sales", [(1, PLAIN[0], Decimal(1))])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(2, None, Decimal(2)), (3, PLAIN[0], Decimal(3))])
    assert "makes rows without a key: `day` is null in 1 row. Nothing was written." in str(
        lake.run("incremental").error
    )
    lake.put("sales", [(2, PLAIN[1], Decimal(2))])
    check_equal(lake, "incremental")


def test_keys_that_share_a_hash_are_different_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recomputing, "_hash_of_key", lambda job: F.pmod(F.hash(*job.table.record_key), F.lit(2)))
    sales = InputTable(SALES.columns, ("id", "day"))
    lake = lake_of(spark, tmp_path, sales, pipeline_of("SELECT id, day, amount FROM sales", SALES.columns, ("id",), "sales"))  # fmt: skip
    lake.put("sales", [*((n, PLAIN[0], Decimal(n)) for n in range(9)), (0, PLAIN[1], Decimal(7))])
    report = lake.run("bootstrap", "wide")
    assert (report.error, report.counts.applied) == (None, 9)
    lake.put("sales", [(n, PLAIN[1], Decimal(n)) for n in range(4, 12)])
    report = lake.run("incremental", "wide")
    assert (report.error, report.counts.applied) == (None, 8)
    assert lake.differences("wide") == NOTHING


def test_columns_may_have_any_names(spark: SparkSession, tmp_path: Path) -> None:
    names = ("_rows", "_keys", "_null_0", "select", "name", "value", "count", "index")
    columns = ", ".join(f"max(id) AS `{name}`" for name in names[1:])
    odd = f"SELECT day AS _rows, {columns} FROM sales GROUP BY day"
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(odd, {"_rows": "string", **dict.fromkeys(names[1:], "long")}, ("_rows",), "sales", partition="_rows"))  # fmt: skip
    lake.put("sales", [(1, PLAIN[0], Decimal(1))])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(2, day, Decimal(2)) for day in PLAIN[:1]])
    check_equal(lake, "incremental")


@pytest.mark.parametrize(
    ("sql", "type_", "why"),
    [
        ("id * 1000000000", "int", "`v` does not fit int in 1 row"),
        ("amount * 4000000000", "decimal(12,2)", "`v` does not fit decimal(12,2) in 1 row"),
        ("CAST('NaN' AS DOUBLE)", "long", "`v` does not fit long in 2 rows"),
        ("day", "date", "`v` does not fit date in 1 row"),
        ("day", "int", "`v` does not fit int in 2 rows"),
    ],
)
def test_values_that_do_not_fit_their_column_are_refused(
    spark: SparkSession, tmp_path: Path, sql: str, type_: str, why: str
) -> None:
    """Spark would make them null, or another number."""
    columns = {"id": "long", "v": type_, "amount": "decimal(12,2)"}
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(f"SELECT id, {sql} AS v, amount + 0 AS amount FROM sales", columns, ("id",), "sales", precombine="amount"))  # fmt: skip
    lake.put("sales", [(1, PLAIN[0], Decimal(1)), (3, "soon", Decimal(3))])
    assert f"makes values that do not fit the types of table.sql: {why}. Nothing was written." in str(lake.run("bootstrap").error)  # fmt: skip
    assert not (tmp_path / "lake" / "wide").exists()


def test_one_that_does_not_fit_is_refused_though_a_row_with_its_key_wins(spark: SparkSession, tmp_path: Path) -> None:
    """It is the key of the other row by the cast alone."""
    columns = {"id": "int", "amount": "decimal(12,2)"}
    lake = lake_of(spark, tmp_path, SALES, pipeline_of("SELECT id, amount FROM sales", columns, ("id",), "sales", precombine="amount"))  # fmt: skip
    lake.put("sales", [(1, PLAIN[0], Decimal(9)), (2**32 + 1, PLAIN[0], Decimal(1))])
    assert "`id` does not fit int in 1 row." in str(lake.run("bootstrap").error)
    assert not (tmp_path / "lake" / "wide").exists()


def test_values_that_fit_a_narrower_column_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"id": "long", "whole": "int", "amount": "decimal(5,1)", "at": "date", "n": "decimal(19,0)"}
    sql = "SELECT id, id AS whole, amount, day AS at, id AS n FROM sales"
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(sql, columns, ("id",), "sales"))
    lake.put("sales", [(1, PLAIN[0], Decimal("1.25")), (2, None, None)])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(3, PLAIN[1], Decimal("9999.9"))])
    check_equal(lake, "incremental")
