"""Exact comparison where Spark is a side: it hashes and adds up as the other engines do."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from lakehub.catalog.metadata.tables import StoredTable
from tests.contracts import test_difference_sides as suite
from tests.contracts.test_difference_sides import Record, hudi, parquet


def on_spark(folder: Path, rows: list[Record]) -> tuple[str, StoredTable]:
    return "spark", hudi(folder, rows)[1]


def test_spark_is_a_side_like_the_others(spark: SparkSession, tmp_path: Path) -> None:
    suite.check_the_same_rows(on_spark, parquet, tmp_path / "same")
    suite.check_a_damaged_copy(on_spark, hudi, tmp_path / "here")
    suite.check_a_damaged_copy(on_spark, on_spark, tmp_path / "both")


def test_many_rows_and_an_empty_side(spark: SparkSession, tmp_path: Path) -> None:
    for number, fact in enumerate(
        (
            suite.test_more_rows_than_are_fetched_at_once,
            suite.test_of_an_empty_side_all_is_missing_and_of_an_empty_other_side_nothing,
        )
    ):
        (tmp_path / str(number)).mkdir()
        fact(on_spark, tmp_path / str(number))
