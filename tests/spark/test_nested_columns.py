"""Structures, lists and maps go through every job that writes a table."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.tables import hudi
from ingestion.spark.tables.spark_columns import comparable, type_of_spark
from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.language.measures import ROWS, Measure
from quality.domain.language.values import Failed
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.scan import Limits, Scan
from quality.engines.spark import SparkEngine
from tests.spark.visits import Visits

DAY = "2026-11-01"
SMALL = {"order": {"x": 1, "interval": None}, "items": [{"sku": "a", "n": 1}, None, {"sku": "b"}], "tags": ["u", None]}
GROWN = {
    "order": {"x": 9, "interval": "m", "left": {"y": 2.5}},
    "items": [{"sku": "c", "n": 7, "size": True}],
    "tags": [],
}


def visit(number: int, at: int, **values: object) -> dict[str, object]:
    return {"id": number, "day": DAY, "at": at, **values}


def test_structures_of_json_lines_take_changes_inside_and_new_fields(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = Visits(tmp_path, "*.jsonl")
    visits.add_json("1.jsonl", *(visit(number, 1, **SMALL) for number in range(5)), visit(5, 1, order=None))
    assert visits.run(spark, "bootstrap", "b").counts.applied == 6
    assert visits.rows(spark, "order") == {**dict.fromkeys(range(5), SMALL["order"]), 5: None}
    changed = {**SMALL, "items": [{"sku": "a", "n": 2}, None, {"sku": "b"}]}
    visits.add_json("2.jsonl", visit(0, 1, **SMALL), visit(1, 1, **changed))
    report = visits.run(spark, "incremental", "i1")
    assert (report.counts.redelivered, report.counts.applied, report.written.updates) == (1, 1, 1)
    visits.add_json("3.jsonl", visit(0, 1, **SMALL), visit(2, 2, **GROWN), visit(3, 0, **GROWN))
    report = visits.run(spark, "incremental", "i2")
    assert (report.counts.redelivered, report.counts.applied, report.counts.superseded) == (1, 1, 1)
    assert report.schema["widened"] == ["order", "items"]
    assert visits.rows(spark, "order")[2] == GROWN["order"]
    assert visits.rows(spark, "order")[1] == {**SMALL["order"], "left": None}
    assert visits.rows(spark, "items")[1] == [
        {"sku": "a", "n": 2, "size": None},
        None,
        {"sku": "b", "n": None, "size": None},
    ]
    monkeypatch.setattr(hudi, "read_table", None)
    assert hudi.stored_schema(spark, visits.table) == Schema.of(
        {
            "id": "long",
            "day": "string",
            "at": "long",
            "order": "struct<x:long,interval:string,left:struct<y:double>>",
            "items": "array<struct<sku:string,n:long,size:boolean>>",
            "tags": "array<string>",
        }
    )


def test_maps_of_parquet_are_compared_entry_by_entry_through_every_job(spark: SparkSession, tmp_path: Path) -> None:
    visits = Visits(tmp_path, "*.parquet")
    visits.add_parquet("1.parquet", rows({0: ("a", 1), 1: ("b", 1), 2: ("c", 1), 3: ("d", 1)}))
    assert visits.run(spark, "bootstrap", "b").counts.applied == 4
    assert visits.run(spark, "backfill", "f", partitions=(DAY,)).counts.redelivered == 4
    visits.add_parquet("2.parquet", rows({0: ("a", 1), 1: ("b", 2)}, order=-1))
    report = visits.run(spark, "incremental", "i")
    assert (report.counts.redelivered, report.counts.applied) == (1, 1)
    assert visits.rows(spark, "counts")[1] == {"b": 2, "a": None}
    assert visits.rows(spark, "deep")[1] == [{"by": {"b": [2]}}]
    grown = rows({2: ("c", 1)}, more=True)
    visits.add_parquet("3.parquet", grown)
    assert visits.run(spark, "incremental", "g").counts.applied == 1
    assert visits.rows(spark, "deep")[2] == [{"by": {"c": [1]}, "kind": "new"}]
    assert visits.rows(spark, "deep")[1] == [{"by": {"b": [2]}, "kind": None}]
    assert visits.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3", DAY),))).written.deletes == 1
    assert sorted(visits.rows(spark, "big")) == [0, 1, 2]
    assert_engines_count(spark, visits.table.uri)


def rows(letters: dict[int, tuple[str, int]], *, order: int = 1, more: bool = False) -> pa.Table:
    """`order` -1: the entries of maps the other way round."""
    deep = pa.struct([("by", pa.map_(pa.string(), pa.list_(pa.int32()))), *([("kind", pa.string())] if more else [])])
    kind = {"kind": "new"} if more else {}
    return pa.table(
        {
            "id": pa.array(letters, pa.int64()),
            "day": [DAY] * len(letters),
            "at": [1] * len(letters),
            "counts": pa.array(
                [[(letter, n), ("b" if letter == "a" else "a", None)][::order] for letter, n in letters.values()],
                pa.map_(pa.string(), pa.int64()),
            ),
            "deep": pa.array([[{"by": [(letter, [n])], **kind}] for letter, n in letters.values()], pa.list_(deep)),
            "big": pa.array([2**64 - 1] * len(letters), pa.uint64()),
            "clock": pa.array([8 * 3_600_000_000] * len(letters), pa.time64("us")),
        }
    )


def assert_engines_count(spark: SparkSession, uri: str) -> None:
    """Both engines answer alike; what they do not answer of nested columns spoils no other answer."""
    kinds = ("nulls", "distinct", "repeated", "minimum", "maximum", "sum", "frequencies")
    measures = (ROWS, *(Measure(kind, (name,)) for name in ("counts", "deep", "big", "clock") for kind in kinds))
    by_duckdb, by_spark = (
        engine.measure(Scan(HudiCopy(uri), measures), Limits()).answers
        for engine in (DuckDbEngine(), SparkEngine(lambda: spark))
    )
    assert by_duckdb == by_spark
    assert (by_spark[ROWS], by_spark[Measure("nulls", ("counts",))]) == (3, 0)
    assert by_spark[Measure("maximum", ("big",))] == Decimal(2**64 - 1)
    assert by_spark[Measure("minimum", ("clock",))] == "08:00:00"
    for name in ("counts", "deep"):
        for kind in kinds[1:]:
            refused = by_spark[Measure(kind, (name,))]
            assert isinstance(refused, Failed)
            assert refused.cause == (
                f"`{name}` is a structure, list or map, of which only nulls are counted: name a column with plain values"
            )


def test_maps_are_the_same_whatever_the_order_of_their_entries(spark: SparkSession) -> None:
    """Other writers of a table store them in any order."""
    frame = spark.sql(
        "select array(named_struct('m', map('a', map('x', 1), 'b', map('x', 1, 'y', 2)))) as left,"
        " array(named_struct('m', map('b', map('y', 2, 'x', 1), 'a', map('x', 1)))) as right,"
        " array(named_struct('m', map('b', map('y', 3, 'x', 1), 'a', map('x', 1)))) as third"
    )
    type_ = type_of_spark(frame.schema["left"].dataType)
    left, right, third = (comparable(F.col(name), type_) for name in ("left", "right", "third"))
    assert frame.select(left.eqNullSafe(right), left.eqNullSafe(third)).first() == (True, False)
