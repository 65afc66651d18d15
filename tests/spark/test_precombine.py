"""Of rows with one record key the one that stays: by `precombine`, also where rows have no value in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import JobSpec, PipelineSpec, TableSpec
from ingestion.spark.etl.recomputing import each_key_once
from ingestion.spark.job import Job

NOON = datetime(2013, 1, 1, 12)
NOWHERE = "file:///nowhere"


def job(spark: SparkSession, precombine: str = "weather") -> Job:
    pipeline = PipelineSpec((), "", {}, precombine)
    return Job(JobSpec("run", "bootstrap", TableSpec("wide", NOWHERE, NOWHERE, ("id",)), pipeline=pipeline), spark, {})


def kept(spark: SparkSession, rows: Sequence[Any], columns: str, precombine: str = "weather") -> list[Any]:
    """The values after the key of those that stay, once for each order in which the rows can come."""
    stay = []
    for ordered in permutations(rows):
        frame = spark.createDataFrame([(1, *row) for row in ordered], f"id int, {columns}").coalesce(1)
        stay += [tuple(row)[1:] for row in each_key_once(frame, job(spark, precombine)).collect()]
    return stay


def test_a_row_without_a_value_loses_to_any_that_has_one(spark: SparkSession) -> None:
    rows = [(None, "z"), (-5, "a"), (None, "y")]
    assert kept(spark, rows, "weather long, name string") == [(-5, "a")] * 6


@pytest.mark.parametrize("precombine", ["weather", ""])
def test_of_rows_that_all_have_none_the_same_one_stays(spark: SparkSession, precombine: str) -> None:
    rows = [(None, "z"), (None, "y"), (None, None)]
    stay = kept(spark, rows, "weather long, name string", precombine)
    assert (len(stay), len({*stay})) == (6, 1)


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz", "array<timestamp>"])
def test_so_it_is_where_they_differ_by_a_microsecond(spark: SparkSession, type_: str) -> None:
    instants: list[Any] = [NOON + timedelta(microseconds=number) for number in (1, 2)]
    values = [[each] for each in instants] if type_.startswith("array") else instants
    assert kept(spark, [(None, each) for each in values], f"weather long, seen {type_}") == [(None, values[1])] * 2


def test_what_is_no_number_is_greater_than_any(spark: SparkSession) -> None:
    rows = [(float("nan"), "a"), (1e300, "b"), (None, "c")]
    assert [name for _, name in kept(spark, rows, "weather double, name string")] == ["a"] * 6
