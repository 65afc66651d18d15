"""A pipeline's SELECT and transformers over rows that were written for it: no lake takes part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.domain.pipelines.cases_file import PipelineTest, Row
from ingestion.spark.contract.spec import JobSpec, PipelineSpec, TableSpec
from ingestion.spark.etl import recomputing
from ingestion.spark.etl.views import InputViews, session_beside
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading.committing import staged_rows
from lakehub.scratch import temporary_folder

MAX_SHOWN = 20
_NOWHERE = "file:///nowhere"


@dataclass(frozen=True)
class Rehearsed:
    """`missing`: rows that were expected and not made; `unexpected`: that were made besides. Some of them, in the columns that the expected rows name."""

    test: str
    columns: tuple[str, ...]
    missing: tuple[tuple[str | None, ...], ...]
    unexpected: tuple[tuple[str | None, ...], ...]

    @property
    def passes(self) -> bool:
        return not (self.missing or self.unexpected)


def rehearse(
    spark: SparkSession,
    pipeline: PipelineSpec,
    record_key: tuple[str, ...],
    input_types: Mapping[str, Mapping[str, str]],
    tests: Sequence[PipelineTest],
) -> Iterator[Rehearsed]:
    """`input_types`: of each input, by its name the types of its columns."""
    table = TableSpec("rehearsal", _NOWHERE, _NOWHERE, record_key)
    job = Job(JobSpec("rehearsal", "bootstrap", table, pipeline=pipeline), spark, {})
    for test in tests:
        session = session_beside(spark)
        rows = {name: _frame(session, test.given.get(name, ()), types) for name, types in input_types.items()}
        views = InputViews.over(session, pipeline, rows)
        with temporary_folder("rehearsal") as folder:
            batch = recomputing.stage(job, recomputing.selected_rows(views, job), folder.as_uri(), tries_halves=True)
            made = staged_rows(job, batch).select(*pipeline.columns)
            yield _compared(test, made, _frame(spark, test.expected, pipeline.columns))


def _frame(spark: SparkSession, rows: Sequence[Row], types: Mapping[str, str]) -> DataFrame:
    """Values are cast as Spark casts texts. Raises JobError for one that does not fit."""
    texts = spark.createDataFrame(
        [[row.get(name) for name in types] for row in rows], ", ".join(f"`{name}` string" for name in types)
    )
    casts = {name: F.col(f"`{name}`").cast(type_) for name, type_ in types.items()}
    for name, cast in casts.items() if rows else ():
        if misfit := texts.where(F.col(f"`{name}`").isNotNull() & cast.isNull()).select(f"`{name}`").first():
            raise JobError(f"`{name}` is {misfit[0]!r}, which is no {types[name]}.")
    return texts.select(*(cast.alias(name) for name, cast in casts.items()))


def _compared(test: PipelineTest, made: DataFrame, expected: DataFrame) -> Rehearsed:
    named = {name for row in test.expected for name in row}
    columns = tuple(name for name in made.columns if name in named) or tuple(made.columns)
    frames = [
        frame.select(*(F.col(f"`{name}`").cast("string").alias(name) for name in columns)) for frame in (expected, made)
    ]
    missing, unexpected = (
        tuple(tuple(row) for row in some.exceptAll(others).limit(MAX_SHOWN).collect())
        for some, others in (frames, frames[::-1])
    )
    return Rehearsed(test.name, columns, missing, unexpected)
