"""The inputs as the queries of a pipeline see them, in a Spark session of its own: what one job calls `flights` another cannot see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ingestion.domain.pipelines.view_names import ANY, CHANGED
from ingestion.spark.contract.spec import PipelineSpec
from ingestion.spark.etl.changed_rows import changed_rows
from ingestion.spark.etl.input_changes import ChangedFiles
from ingestion.spark.tables.hudi import META_COLUMNS, read_at
from ingestion.spark.tables.spark_columns import without_negative_zeros

_OF_SESSION = ("spark.sql.variable.substitute", "spark.sql.session.timeZone")
"""No text of a query becomes a setting or a variable of the environment, and times are those of the job's session, however that was told."""


@dataclass
class InputViews:
    """`session`: in which the queries run."""

    session: SparkSession
    pipeline: PipelineSpec
    columns: dict[str, T.StructType] = field(default_factory=dict)

    @classmethod
    def of_now(cls, spark: SparkSession, pipeline: PipelineSpec) -> InputViews:
        """Each input by its name, as it is now."""
        session = session_beside(spark)
        rows = {each.name: read_at(session, each.uri).drop(*META_COLUMNS) for each in pipeline.inputs}
        return cls.over(session, pipeline, rows)

    @classmethod
    def over(cls, session: SparkSession, pipeline: PipelineSpec, rows: Mapping[str, DataFrame]) -> InputViews:
        """`rows`: of `session`."""
        views = cls(session, pipeline)
        for name, frame in rows.items():
            read = without_negative_zeros(frame)
            read.createOrReplaceTempView(name)
            views.columns[name] = read.schema
        return views

    def add_changes(self, changes: Mapping[str, ChangedFiles]) -> None:
        """What the queries for affected keys read. Raises HistoryGone."""
        for each in self.pipeline.inputs:
            rows = self.session.table(each.name)
            files = changes[each.name]
            if files.is_empty:
                rows.createOrReplaceTempView(f"{ANY}{each.name}")
                continue
            both = changed_rows(self.session, each.uri, files, self.columns[each.name])
            before, now = map(without_negative_zeros, both)
            before.unionByName(now).createOrReplaceTempView(f"{CHANGED}{each.name}")
            rows.unionByName(before).createOrReplaceTempView(f"{ANY}{each.name}")

    def query(self, sql: str) -> DataFrame:
        return self.session.sql(sql)


def session_beside(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for setting in _OF_SESSION:
        session.conf.set(setting, spark.conf.get(setting) or "")
    return session
