"""What columns a table has is known without opening it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.tables import hudi
from ingestion.spark.tables.hudi import stored_schema
from ingestion.spark.tables.spark_columns import type_of_spark
from tests.spark.order_shop import Orders

TYPES = {
    "id": "long",
    "day": "string",
    "amount": "double",
    "updated_at": "timestamp",
    "flag": "boolean",
    "due": "date",
    "price": "decimal(10,2)",
    "picture": "binary",
}


def test_the_commits_say_what_spark_says(spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    for column in ("flag boolean", "due date", "price decimal(10,2)", "picture blob"):
        orders.sql(f"alter table orders add column {column}")
    orders.add((1, "2026-11-01", 1.0, "2026-11-16 08:00:00", True, "2026-12-01", 3.5, b"x"))
    assert orders.run(spark, "bootstrap", "b").error is None
    by_spark = hudi._schema_by_spark(spark, orders.table)
    assert by_spark == Schema.of(TYPES)
    monkeypatch.setattr(hudi, "read_table", None)
    assert stored_schema(spark, orders.table) == by_spark
    orders.sql("alter table orders add column note text")
    orders.sql("update orders set note = 'new', updated_at = '2026-11-16 09:00:00'")
    monkeypatch.undo()
    assert orders.run(spark, "incremental", "i").error is None
    monkeypatch.setattr(hudi, "read_table", None)
    assert stored_schema(spark, orders.table) == Schema.of({**TYPES, "note": "string"})


def test_types_of_another_writer_are_asked_of_spark(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = "array(named_struct('order', 1S, 'at', map('a', 1.5BD, 'b', null))) as parts"
    frame = spark.sql(f"select 1L as id, '2026-11-01' as day, timestamp'2026-11-16' as updated_at, {parts}")
    hudi.write_commit(frame, orders.table, "bulk_insert", {"hoodie.metadata.enable": "false"}, {})
    by_commit = stored_schema(spark, orders.table)
    assert by_commit.types["parts"] == "array<struct<order:int,at:map<string,decimal(2,1)>>>"
    monkeypatch.setattr(hudi.avro_schema, "schema_of", lambda text, without: None)
    assert stored_schema(spark, orders.table) == by_commit


def test_a_map_by_number_of_another_writer_is_named(spark: SparkSession) -> None:
    by_number = spark.sql("select map(1, 'a') as by_number").schema["by_number"].dataType
    with pytest.raises(ValueError, match="`map<int,string>` has keys that are no texts"):
        type_of_spark(by_number)


def test_a_delete_changes_nothing_about_the_columns(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3, days=1)
    orders.run(spark, "bootstrap", "b")
    assert orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("1", "2026-11-01"),))).written.deletes == 1
    assert stored_schema(spark, orders.table) == hudi._schema_by_spark(spark, orders.table)
