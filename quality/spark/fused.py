"""All the measures of one scan as one Spark SQL query: one job for the aggregate, whatever the number of measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import NumericType

from quality.domain.expression.measures import Answer, Measure
from quality.domain.expression.nodes import Name
from quality.domain.expression.values import Failed, error
from quality.engines.scan import Each, Limits, One, Part
from quality.engines.select import Dialect, cannot_look_up, select, unknown_columns


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


DIALECT = Dialect(quote=_quote, key=lambda columns: f"struct({', '.join(columns)})", text="STRING")


def measure(
    frame: DataFrame, measures: Sequence[Measure], part: Part, tables: Mapping[Name, DataFrame], limits: Limits
) -> tuple[dict[Measure, Answer | Failed], int]:
    """The answers, and how many queries they took: one, or more where a measure does not fit its column."""
    spark = frame.sparkSession
    bad: dict[Measure, Answer | Failed] = {**unknown_columns(measures, frame.columns)}
    for one in measures:
        why = None if one in bad else _cannot(one, frame, tables)
        bad |= {one: why} if why else {}
    good = [one for one in measures if one not in bad]
    rows = frame.where(col(_quote(part.column)) == part.value) if isinstance(part, One) else frame
    with _views(spark, rows, tables) as (source, views), _deadline(spark, limits):
        answers, queries = _fused(spark, good, part.column if isinstance(part, Each) else "", source, views)
    return {**answers, **bad}, queries


def _cannot(one: Measure, frame: DataFrame, tables: Mapping[Name, DataFrame]) -> Failed | None:
    """Spark adds up whatever it can cast; the other engines add up numbers."""
    if one.kind == "sum" and not isinstance(kind := frame.schema[one.columns[0]].dataType, NumericType):
        return error(f"`{one.columns[0]}` is {kind.simpleString()}, not a number")
    return cannot_look_up(one, tables[one.other].columns) if one.other is not None else None


def _fused(
    spark: SparkSession, measures: Sequence[Measure], group: str, source: str, views: Mapping[Name, str]
) -> tuple[dict[Measure, Answer | Failed], int]:
    """One query; where it fails, halves, so that a bad measure does not cost its neighbours."""
    if not measures:
        return {}, 0
    try:
        return _query(spark, measures, group, source, views), 1
    except (PySparkException, Py4JJavaError) as failed:
        if len(measures) == 1 or "cancelled" in str(failed):
            return dict.fromkeys(measures, error(_cause(failed))), 1
    half = len(measures) // 2
    first, first_queries = _fused(spark, measures[:half], group, source, views)
    second, second_queries = _fused(spark, measures[half:], group, source, views)
    return {**first, **second}, first_queries + second_queries


def _cause(failed: Exception) -> str:
    if "cancelled" in str(failed):
        return "the scan took longer than its timeout"
    return str(failed).strip().splitlines()[0]


def _query(
    spark: SparkSession, measures: Sequence[Measure], group: str, source: str, views: Mapping[Name, str]
) -> dict[Measure, Answer | Failed]:
    rows = spark.sql(select(DIALECT, measures, source=source, tables=views, group=group)).collect()
    if not group:
        return dict(zip(measures, rows[0], strict=True))
    return {one: {row[0]: row[place] for row in rows} for place, one in enumerate(measures, start=1)}


@contextmanager
def _views(
    spark: SparkSession, rows: DataFrame, tables: Mapping[Name, DataFrame]
) -> Iterator[tuple[str, dict[Name, str]]]:
    """Temporary views with names of their own, gone afterwards."""
    mark = uuid4().hex
    source, views = f"scan_{mark}", {name: f"look_{mark}_{number}" for number, name in enumerate(tables)}
    rows.createOrReplaceTempView(source)
    for name, view in views.items():
        tables[name].createOrReplaceTempView(view)
    try:
        yield source, views
    finally:
        for view in (source, *views.values()):
            spark.catalog.dropTempView(view)


@contextmanager
def _deadline(spark: SparkSession, limits: Limits) -> Iterator[None]:
    """The jobs of this thread are cancelled when their time is over."""
    group = uuid4().hex
    spark.sparkContext.setJobGroup(group, "lakehub measures", interruptOnCancel=True)
    timer = Timer(limits.timeout.total_seconds(), spark.sparkContext.cancelJobGroup, [group])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
