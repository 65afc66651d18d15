"""A pipeline's own tests: rows that were written for it, and what its SELECT makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakehub.demo
from ingestion.domain.pipelines.cases_file import PipelineTest, read_tests_file
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec
from ingestion.spark.etl.rehearsing import rehearse
from ingestion.spark.job import JobError

FOLDER = Path(lakehub.demo.__path__[0]) / "pipelines" / "carrier-earnings"
TYPES = {
    "flights": {"flight_date": "string", "carrier": "string", "status": "string", "distance": "long"},
    "airlines": {"carrier": "string", "name": "string"},
}
TEXTS = {path.name: path.read_text() for path in FOLDER.iterdir()}
PIPELINE = read_pipeline(TEXTS, TYPES)
SPEC = PipelineSpec(tuple(PipelineInputSpec(each.name, "") for each in PIPELINE.inputs), PIPELINE.transform, PIPELINE.columns.types)  # fmt: skip


def shipped_tests() -> tuple[PipelineTest, ...]:
    tests = read_tests_file(TEXTS["tests.yaml"], TYPES, PIPELINE.columns.names, [])
    assert len(tests) == 2
    return tests


def test_the_shipped_example_passes_its_tests(spark: SparkSession) -> None:
    rehearsed = list(rehearse(spark, SPEC, PIPELINE.record_key, TYPES, shipped_tests()))
    assert [(each.passes, each.missing, each.unexpected) for each in rehearsed] == [(True, (), ())] * 2


def test_what_is_missing_and_what_is_there_besides_is_shown_in_the_columns_that_are_expected(
    spark: SparkSession,
) -> None:
    first, second = shipped_tests()
    others = (replace(first, expected=({"carrier": "UA", "miles": "1500"},)), replace(second, expected=()))
    wrong, empty = rehearse(spark, SPEC, PIPELINE.record_key, TYPES, others)
    assert (wrong.columns, wrong.missing, wrong.unexpected) == (
        ("carrier", "miles"),
        (("UA", "1500"),),
        (("UA", "1000"),),
    )
    assert (empty.passes, empty.missing, len(empty.unexpected)) == (False, (), 2)


def test_of_rows_with_one_key_one_is_made_as_in_the_lake(spark: SparkSession) -> None:
    spec = PipelineSpec((PipelineInputSpec("a", ""),), "SELECT a.id, a.at FROM a", {"id": "long", "at": "long"}, "at")
    test = PipelineTest("newest", {"a": ({"id": "1", "at": "1"}, {"id": "1", "at": "2"})}, ({"id": "1", "at": "2"},))
    (rehearsed,) = rehearse(spark, spec, ("id",), {"a": {"id": "long", "at": "long"}}, (test,))
    assert rehearsed.passes


def test_a_value_that_is_none_of_its_column_is_refused(spark: SparkSession) -> None:
    bad = PipelineTest("bad", {"flights": ({"distance": "far"},)}, ())
    with pytest.raises(JobError, match="`distance` is 'far', which is no long"):
        list(rehearse(spark, SPEC, PIPELINE.record_key, TYPES, (bad,)))
