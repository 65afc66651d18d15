"""A pipeline's own tests: rows that were written for it, and what its SELECT makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.pipelines.cases_file import PipelineTest, read_tests_file
from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.problems import Problem
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.pipelines.folder import read_folder
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec
from ingestion.spark.etl.rehearsing import rehearse
from ingestion.spark.job import JobError
from tests.soak.pipelines.flights import EXAMPLES, TABLES


@dataclass(frozen=True)
class Example:
    """One that is shipped. `types`: of its inputs, by what the SELECT calls them."""

    pipeline: PipelineDefinition
    types: Mapping[str, Mapping[str, str]]
    tests: tuple[PipelineTest, ...]

    @property
    def spec(self) -> PipelineSpec:
        made = self.pipeline
        inputs = tuple(PipelineInputSpec(each.name, "") for each in made.inputs)
        return PipelineSpec(inputs, made.transform, made.columns.types, made.precombine)


def example(name: str) -> Example:
    texts = {path.name: path.read_text() for path in (EXAMPLES / name).iterdir()}
    types = {each.name: _types_of(each.dataset) for each in read_pipeline(texts).inputs}
    pipeline, problems = read_pipeline(texts, types, is_strict=True), list[Problem]()
    tests = read_tests_file(texts["tests.yaml"], types, pipeline.columns.names, problems)
    assert problems == []
    return Example(pipeline, types, tests)


def _types_of(dataset: str) -> Mapping[str, str]:
    if dataset in TABLES:
        return TABLES[dataset].columns
    return read_pipeline(read_folder(EXAMPLES / dataset)).columns.types


EARNINGS = example("carrier-earnings")
TYPES, SPEC, KEY = EARNINGS.types, EARNINGS.spec, EARNINGS.pipeline.record_key


@pytest.mark.parametrize("name", sorted(folder.name for folder in EXAMPLES.iterdir()))
def test_a_shipped_example_passes_its_tests(spark: SparkSession, name: str) -> None:
    shipped = example(name)
    rehearsed = list(rehearse(spark, shipped.spec, shipped.pipeline.record_key, shipped.types, shipped.tests))
    assert len(rehearsed) == len(shipped.tests) > 0
    assert [(each.test, each.missing, each.unexpected) for each in rehearsed if not each.passes] == []


def test_what_is_missing_and_what_is_there_besides_is_shown_in_the_columns_that_are_expected(
    spark: SparkSession,
) -> None:
    first, second = EARNINGS.tests
    others = (replace(first, expected=({"carrier": "UA", "miles": "1500"},)), replace(second, expected=()))
    wrong, empty = rehearse(spark, SPEC, KEY, TYPES, others)
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
    with pytest.raises(JobError, match="`distance` is 'far', which is no int"):
        list(rehearse(spark, SPEC, KEY, TYPES, (bad,)))
