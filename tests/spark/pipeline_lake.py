"""A lake with tables that pipelines read, changed as tests want; their jobs; and what a full recomputation of each is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ingestion.domain.pipelines.definition import PipelineDefinition, PipelineInput
from ingestion.domain.pipelines.version import version_of
from ingestion.domain.schema import Schema
from ingestion.pipelines.input_specs import input_specs
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec, PipelineSpec, TableSpec, TransformerSpec
from ingestion.spark.etl import views
from ingestion.spark.execute import execute
from ingestion.spark.indexes import INDEXES
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline

AUDITOR = "quality.audits.judging:refusals"
Row = tuple[Any, ...]


@dataclass(frozen=True)
class InputTable:
    columns: Mapping[str, str]
    key: tuple[str, ...]
    partition: str | None = None


def pipeline_of(
    sql: str, columns: Mapping[str, str], key: tuple[str, ...], *inputs: str, name: str = "wide", **facts: Any
) -> PipelineDefinition:
    """Of datasets that the SELECT calls by their names."""
    named = tuple(PipelineInput(each, each) for each in inputs)
    return PipelineDefinition(name, "flight-ops", 2, key, inputs[0], named, Schema.of(columns), sql, **facts)


class WorkWithin:
    """`work` that is done once at a moment of a job, if there is any."""

    def __init__(self, work: Callable[[], object] | None) -> None:
        self._works = [] if work is None else [work]

    @property
    def is_done(self) -> bool:
        return not self._works

    def do(self) -> None:
        if self._works:
            self._works.pop()()


@dataclass(frozen=True)
class LeaseWithWork:
    """It is asked for when a job has made its rows and is about to write: `work` is done then."""

    work: WorkWithin

    def try_acquire(self) -> bool:
        self.work.do()
        return True

    def release(self) -> None:
        """Nothing was taken."""


@contextmanager
def before_rows_are_read(uri: str, work: WorkWithin) -> Iterator[None]:
    """`work` is done when a job of a pipeline is about to open its input at `uri`, and may have noted already up to which commit it reads it."""

    def open_then(spark: SparkSession, opened: str) -> DataFrame:
        if opened == uri:
            work.do()
        return hudi.read_at(spark, opened)

    with patch.object(views, "read_at", open_then):
        yield


@dataclass
class PipelineLake:
    """`tables` are inputs; `pipelines` are made from these, and from each other. As `tests.spark.job_processes.start` wants it."""

    spark: SparkSession
    folder: Path
    tables: Mapping[str, InputTable]
    pipelines: Mapping[str, PipelineDefinition]
    index: str = "simple"
    is_audited: bool = True
    skip_to: dict[str, str] = field(default_factory=dict)
    transformers_folder: str = ""
    input_options: dict[str, str] = field(default_factory=dict)
    """Of Hudi, with which inputs are written."""
    numbers: count[int] = field(default_factory=lambda: count(1))

    @property
    def secrets(self) -> dict[str, str]:
        return {}

    def uri(self, dataset: str) -> str:
        return f"{self.folder.as_uri()}/lake/{dataset}"

    def table(self, name: str) -> TableSpec:
        """Of an input or a pipeline."""
        if name in self.tables:
            made, index = self.tables[name], "simple"
            key, partition = made.key, made.partition
        else:
            key, partition, index = self.pipelines[name].record_key, self.pipelines[name].partition or None, self.index
        return TableSpec(name, self.uri(name), f"{self.uri(name)}_errors", key, partition_column=partition, index=index)

    def put(self, name: str, rows: Iterable[Row]) -> None:
        self._write(name, rows, "upsert" if Timeline(self.uri(name)).exists else "bulk_insert")

    def remove(self, name: str, rows: Iterable[Row]) -> None:
        """Whole rows, of which the key and the partition count."""
        self._write(name, rows, "delete")

    def replace_all(self, name: str, rows: Iterable[Row]) -> None:
        self._write(name, rows, "insert_overwrite_table")

    def _write(self, name: str, rows: Iterable[Row], operation: str) -> None:
        columns = ", ".join(f"`{column}` {type_}" for column, type_ in self.tables[name].columns.items())
        table, frame = self.table(name), self.spark.createDataFrame([*rows], columns)
        options = {**INDEXES.get("simple")().write_options(table), **self.input_options}
        hudi.write_commit(frame, table, operation, options, {})

    def pipeline_spec(self, name: str) -> PipelineSpec:
        made = self.pipelines[name]
        columns = {each.name: self._columns(each.dataset) for each in made.inputs}
        uris = {each.name: self.uri(each.dataset) for each in made.inputs}
        audits = {each.name: each.test for each in made.audits} if self.is_audited else {}
        types = made.columns.types
        transformers = tuple(
            TransformerSpec(each.name, "", dict(each.properties), each.jars) for each in made.transformers
        )
        return PipelineSpec(
            input_specs(made, columns, uris),
            made.transform,
            types,
            made.precombine,
            audits,
            AUDITOR,
            self.skip_to,
            transformers,
            self.transformers_folder,
            version=version_of(made, {"as Python has it": repr(made)}, {}),
        )

    def _columns(self, dataset: str) -> list[str]:
        made = self.tables.get(dataset)
        return [*(self.pipelines[dataset].columns.names if made is None else made.columns)]

    def spec(self, kind: str, run: str, *, pipeline: str = "wide", **fields: Any) -> JobSpec:
        return JobSpec(run, kind, self.table(pipeline), pipeline=self.pipeline_spec(pipeline), **fields)

    def run(
        self,
        kind: str,
        pipeline: str = "wide",
        *,
        before_read: tuple[str, Callable[[], object]] | None = None,
        before_write: Callable[[], object] | None = None,
        **fields: Any,
    ) -> JobReport:
        """In this process. `before_read`: an input, and what happens when the job is about to open it; `before_write`: what happens when it has made
        its rows and is about to write them. Raises AssertionError for a job that never gets there."""
        reading, writing = WorkWithin(before_read and before_read[1]), WorkWithin(before_write)
        spec = self.spec(kind, f"run-{next(self.numbers)}", pipeline=pipeline, **fields)
        with before_rows_are_read(self.uri(before_read[0]), reading) if before_read else nullcontext():
            report = execute(spec, spark=self.spark, secrets={}, lease=LeaseWithWork(writing))
        early = f"The job {spec.run_id} ended before it got there: {report.status} {report.error}"
        assert reading.is_done, early
        assert writing.is_done, early
        return report

    def stored(self, name: str) -> DataFrame:
        return hudi.read_table(self.spark, self.table(name)).select(*self.pipelines[name].columns.names)

    def recomputed(self, name: str) -> DataFrame:
        """By Spark, from the inputs as they are; of rows with one key the one that has to stay."""
        made, session = self.pipelines[name], self.spark.newSession()
        for each in made.inputs:
            rows = session.read.format("hudi").option("hoodie.metadata.enable", "false").load(self.uri(each.dataset))
            rows.createOrReplaceTempView(each.name)
        casts = ", ".join(f"CAST(`{column}` AS {type_}) AS `{column}`" for column, type_ in made.columns.types.items())
        rows = session.sql(f"SELECT {casts} FROM ({made.transform})")
        order = [F.to_json(F.struct(*rows.columns)).desc()]
        if made.precombine:
            order = [F.col(made.precombine).desc_nulls_last(), *order]
        newest = Window.partitionBy(*made.record_key).orderBy(*order)
        return rows.withColumn("place", F.row_number().over(newest)).where("place = 1").drop("place")

    def differences(self, name: str) -> dict[str, list[Row]]:
        """Some rows that only the table has, and some that only a full recomputation has."""
        stored, recomputed = self.stored(name).persist(), self.recomputed(name).persist()
        try:
            only = {"stored": stored.exceptAll(recomputed), "recomputed": recomputed.exceptAll(stored)}
            return {where: [tuple(row) for row in rows.take(3)] for where, rows in only.items()}
        finally:
            stored.unpersist()
            recomputed.unpersist()


NOTHING: dict[str, list[Row]] = {"stored": [], "recomputed": []}
"""No difference."""
