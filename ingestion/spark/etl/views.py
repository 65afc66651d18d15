"""The inputs as the queries of a pipeline see them, in a Spark session of its own: what one job calls `flights` another cannot see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ingestion.domain.pipelines.view_names import ANY, CHANGED
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec
from ingestion.spark.etl.changed_rows import changed_rows
from ingestion.spark.etl.input_changes import ChangedFiles, problem_of_input
from ingestion.spark.job import JobError
from ingestion.spark.tables.hudi import META_COLUMNS, read_at
from ingestion.spark.tables.spark_columns import without_negative_zeros
from ingestion.spark.tables.timeline import DamagedTable, Timeline

_OF_SESSION = ("spark.sql.variable.substitute", "spark.sql.session.timeZone")
"""No text of a query becomes a setting or a variable of the environment, and times are those of the job's session, however that was told."""
_MAX_OPENINGS = 50


@dataclass
class InputViews:
    """`session`: in which the queries run. `completions`: by the name of the input that of the newest commit which its rows have."""

    session: SparkSession
    pipeline: PipelineSpec
    columns: dict[str, T.StructType] = field(default_factory=dict)
    completions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_now(cls, spark: SparkSession, pipeline: PipelineSpec) -> InputViews:
        """Each input by its name, as it is now; it stays so for these views, whatever is committed meanwhile. Raises JobError where one cannot be followed."""
        session = session_beside(spark)
        opened = {each.name: _open(session, each) for each in pipeline.inputs}
        views = cls.over(session, pipeline, {name: rows for name, (rows, _) in opened.items()})
        views.completions = {name: completion for name, (_, completion) in opened.items()}
        return views

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


def _open(session: SparkSession, each: PipelineInputSpec) -> tuple[DataFrame, str]:
    """Its rows, and the completion of the newest commit among them. The reader does not tell which that is: the one before and after it was opened."""
    with damage_named(each):
        problem = problem_of_input(each.uri)
    if problem:
        raise JobError(f"The input `{each.name}` at {each.uri} {problem}.")
    timeline = Timeline(each.uri)
    for _ in range(_MAX_OPENINGS):
        completion = timeline.latest_completion()
        if not completion:
            raise JobError(f"The input `{each.name}` at {each.uri} has no commit yet. Bootstrap it first.")
        rows = read_at(session, each.uri).drop(*META_COLUMNS)
        if timeline.latest_completion() == completion:
            return rows, completion
    raise JobError(
        f"The input `{each.name}` at {each.uri} was committed to each of the {_MAX_OPENINGS} times that it was opened. Nothing was written. Let its writer commit less often."
    )


@contextmanager
def damage_named(each: PipelineInputSpec) -> Iterator[None]:
    """Raises JobError where the timeline of the input is damaged. What its writer cannot restore, it rebuilds: nothing of this pipeline is dropped for it."""
    try:
        yield
    except DamagedTable as damaged:
        raise JobError(
            f"The timeline of the input `{each.name}` at {each.uri} is damaged. {damaged.fault} Restore that file from a backup, "
            "or have the table rebuilt by whoever writes it: the next run goes on from there."
        ) from damaged


def session_beside(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for setting in _OF_SESSION:
        session.conf.set(setting, spark.conf.get(setting) or "")
    return session
