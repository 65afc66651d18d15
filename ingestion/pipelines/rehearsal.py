"""The tests of a pipeline: its SELECT over the rows of `tests.yaml`, by a Spark session of this process. Of the catalog the columns of its inputs are asked, and no lake is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ingestion.domain.pipelines.cases_file import PipelineTest, read_tests_file
from ingestion.domain.pipelines.problems import BadPipeline, Problem
from ingestion.pipelines.checking import Checked
from ingestion.pipelines.transformers import transformer_specs, transformers_folder
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec
from ingestion.spark.etl.rehearsing import Rehearsed, rehearse
from ingestion.spark.session import open_session
from lakehub.catalog.metadata import ColumnType
from lakehub.catalog.models import Dataset

_SPARK_TYPES = {
    ColumnType.INTEGER: "long",
    ColumnType.FLOAT: "double",
    ColumnType.DECIMAL: "decimal(28,6)",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.BINARY: "binary",
}
"""Of the kinds that the catalog tells apart; all others are given as texts."""


def read_tests(text: str, checked: Checked) -> tuple[PipelineTest, ...]:
    """Raises BadPipeline with all that is wrong."""
    problems = list[Problem]()
    columns = {name: _types(dataset) for name, dataset in checked.inputs.items()}
    tests = read_tests_file(text, columns, checked.pipeline.columns.names, problems)
    if problems:
        raise BadPipeline(problems)
    return tests


def run_tests(checked: Checked, tests: tuple[PipelineTest, ...]) -> Iterator[Rehearsed]:
    """Raises JobError and what Spark raises for a value that does not fit, or a SELECT that cannot run."""
    pipeline = checked.pipeline
    inputs = tuple(PipelineInputSpec(each.name, "") for each in pipeline.inputs)
    spec = PipelineSpec(
        inputs,
        pipeline.transform,
        pipeline.columns.types,
        pipeline.precombine,
        transformers=transformer_specs(pipeline, checked.transformer_digests),
        transformers_folder=transformers_folder(),
    )
    types = {name: _types(dataset) for name, dataset in checked.inputs.items()}
    yield from rehearse(open_session(), spec, pipeline.record_key, types, tests)


def _types(dataset: Dataset) -> Mapping[str, str]:
    return {column["name"]: _SPARK_TYPES.get(column["type"], "string") for column in dataset.columns}
