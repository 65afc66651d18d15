"""Four ways to bring a modelled table up to date: all rows anew, those of the last days, or what the changes reach, by rows and by partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.modelling.meters import JobFailed
from bench.modelling.trips import day_names, overwrite
from ingestion.domain.pipelines.definition import INSERT_OVERWRITE
from ingestion.spark.contract.report import SUCCEEDED
from tests.spark.pipeline_lake import PipelineLake


@dataclass(frozen=True)
class Way:
    """`update` brings the table of a pipeline up to date. `phases`: of the last run, where it tells them, by name in seconds."""

    name: str
    update: Callable[[PipelineLake, str], object]
    phases: dict[str, float] = field(default_factory=dict)


def full() -> Way:
    return Way("full recompute", _all_rows)


def look_back(days: int, of: int) -> Way:
    """Of a table with `of` days."""

    def update(lake: PipelineLake, pipeline: str) -> None:
        names = day_names(lake.spark, range(of - days, of))
        rows = _rows(lake, pipeline).where(F.col("day").isin(*names))
        overwrite(rows, lake.table(pipeline), "insert_overwrite")

    return Way(f"look-back, {days} days", update)


def incremental() -> Way:
    """The job of the product."""
    phases = dict[str, float]()

    def update(lake: PipelineLake, pipeline: str) -> None:
        report = lake.run("incremental", pipeline)
        if report.status != SUCCEEDED:
            raise JobFailed(f"{report.status}: {report.error}")
        phases.update(_seconds_of(report.phases))

    return Way("incremental", update, phases)


def whole_partitions() -> Way:
    """The same of a pipeline that makes the partitions anew which changes reach."""
    way = incremental()

    def update(lake: PipelineLake, pipeline: str) -> None:
        made = replace(lake.pipelines[pipeline], operation=INSERT_OVERWRITE)
        way.update(replace(lake, pipelines={**lake.pipelines, pipeline: made}), pipeline)

    return Way("incremental, whole partitions", update, way.phases)


def _seconds_of(phases: Mapping[str, float]) -> dict[str, float]:
    return {name: float(seconds) for name, seconds in phases.items()}


def _all_rows(lake: PipelineLake, pipeline: str) -> None:
    overwrite(_rows(lake, pipeline), lake.table(pipeline), "insert_overwrite_table")


def _rows(lake: PipelineLake, pipeline: str) -> DataFrame:
    """As the SELECT makes them. Where it groups, those of a day come together, so that each has one file."""
    rows = selected(lake, pipeline)
    return rows.repartition("day") if "GROUP BY" in lake.pipelines[pipeline].transform else rows


def selected(lake: PipelineLake, pipeline: str) -> DataFrame:
    """What the table is to hold: only the columns that the SELECT uses are read, and small inputs are sent to the trips, which stay where they are."""
    made, session = lake.pipelines[pipeline], lake.spark.newSession()
    for each in made.inputs:
        rows = session.read.format("hudi").option("hoodie.metadata.enable", "false").load(lake.uri(each.dataset))
        (rows if each.name == made.source else F.broadcast(rows)).createOrReplaceTempView(each.name)
    rows = session.sql(made.transform)
    return rows.select(*(F.col(column).cast(type_).alias(column) for column, type_ in made.columns.types.items()))
