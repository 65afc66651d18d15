"""-0.0 and 0.0 are one number wherever a pipeline groups, joins and ranks, and so they make one key; so does NaN."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from ingestion.spark.tables.spark_columns import without_negative_zeros
from tests.spark.pipeline_lake import InputTable, PipelineLake, pipeline_of

READINGS = InputTable({"id": "long", "level": "double"}, ("id",))
LEVELS = pipeline_of(
    """SELECT 'rows' AS kind, CAST(r.level AS STRING) AS level, count(*) AS value FROM readings r GROUP BY r.level
    UNION ALL
    SELECT 'newest', CAST(n.level AS STRING), n.id
    FROM (SELECT *, row_number() OVER (PARTITION BY level ORDER BY id DESC) AS place FROM readings) n WHERE n.place = 1""",
    {"kind": "string", "level": "string", "value": "long"},
    ("kind", "level"),
    "readings",
    name="levels",
)


def test_keys_made_from_numbers_are_the_same_for_both_zeros_and_for_all_nans(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = PipelineLake(spark, tmp_path, {"readings": READINGS}, {"levels": LEVELS})
    lake.put("readings", [(1, 0.0), (2, float("nan")), (3, 1.5)])
    assert lake.run("bootstrap", "levels").error is None
    lake.put("readings", [(4, -0.0), (5, -float("nan"))])
    report = lake.run("incremental", "levels")
    assert (report.error, "made_anew" in report.output) == (None, False)
    assert {tuple(row) for row in lake.stored("levels").collect()} == {
        ("rows", "0.0", 2), ("rows", "NaN", 2), ("rows", "1.5", 1),
        ("newest", "0.0", 4), ("newest", "NaN", 5), ("newest", "1.5", 3),
    }  # fmt: skip


def test_a_negative_zero_is_found_in_columns_of_each_type(spark: SparkSession) -> None:
    rows = spark.sql(
        """SELECT -0.0D AS plain, CAST(-0.0D AS FLOAT) AS narrow, -0.0D AS `a dot.`, '-0.0' AS text, array(-0.0D, NULL, -1.5D) AS items,
        map('a', -0.0D) AS by_name, named_struct('at', named_struct('x', -0.0D), 'n', 1) AS place,
        CAST(NULL AS STRUCT<x: DOUBLE>) AS nowhere"""
    )
    seen = without_negative_zeros(rows)
    assert seen.schema.simpleString() == rows.schema.simpleString()
    texts = seen.selectExpr(*(f"to_json(struct(`{name}`))" for name in seen.columns)).first()
    assert texts is not None
    assert [*texts] == [
        '{"plain":0.0}', '{"narrow":0.0}', '{"a dot.":0.0}', '{"text":"-0.0"}', '{"items":[0.0,null,-1.5]}',
        '{"by_name":{"a":0.0}}', '{"place":{"at":{"x":0.0},"n":1}}', "{}",
    ]  # fmt: skip
