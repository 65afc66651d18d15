"""Measures in Spark's SQL: one query for all of a scan, whatever their number, under a deadline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.functions import col

from quality.domain.expression.measures import Answer, Measure
from quality.domain.expression.nodes import Name
from quality.domain.expression.values import Failed, error
from quality.domain.queries import BadQuery
from quality.engines import queries
from quality.engines.deadline import deadline
from quality.engines.fusion import Refused
from quality.engines.kinds import Kind
from quality.engines.patterns import JAVA
from quality.engines.reading import Found, Reading, Row, Source
from quality.engines.scan import Limits, One, Scan
from quality.engines.select import Dialect, Statement, Table
from quality.engines.statement import renamed, used, written


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


DIALECT = Dialect(
    quote=quoted,
    parameter=lambda name: f":{name}",
    key=lambda columns: f"struct({', '.join(columns)})",
    matches=lambda column, pattern: f"{column} RLIKE {pattern}",
    flavour=JAVA,
    # Else it aggregates by each key, once for each of them: half as fast, or less.
    counts_keys_apart=True,
    # Else what does not fit 64 bits starts again at the bottom.
    total=lambda column, kind: f"SUM(CAST({column} AS DECIMAL(20, 0)))" if kind is Kind.INTEGER else f"SUM({column})",
)

_KINDS: tuple[tuple[type[T.DataType], Kind], ...] = (
    (T.BooleanType, Kind.BOOLEAN),
    (T.IntegralType, Kind.INTEGER),
    (T.FractionalType, Kind.FLOAT),
    (T.StringType, Kind.TEXT),
    (T.DateType, Kind.DATE),
    (T.TimestampType, Kind.INSTANT),
    (T.TimestampNTZType, Kind.LOCAL),
    (T.BinaryType, Kind.BINARY),
)


def _kind(native: T.DataType) -> Kind:
    if isinstance(native, T.DecimalType):
        return Kind.DECIMAL
    return next((kind for theirs, kind in _KINDS if isinstance(native, theirs)), Kind.OTHER)


def measure(frame: DataFrame, scan: Scan, tables: Mapping[Name, DataFrame | Failed], limits: Limits) -> Found:
    """The answers of a scan over a frame that has its rows; `tables` are those that are looked into."""
    spark = frame.sparkSession
    frames = {name: table for name, table in tables.items() if isinstance(table, DataFrame)}
    missing = {name: table for name, table in tables.items() if isinstance(table, Failed)}
    read = [_rows(frame, scan), *frames.values()]
    with views(spark, read) as names, job_deadline(spark, limits):
        source, *others = (_source(name, of) for name, of in zip(names, read, strict=True))
        known = dict(zip(frames, others, strict=True))
        return Reading(SparkSql(spark), scan, source, limits).found(scan.measures, {**known, **missing})


def query(
    frame: DataFrame, sql: Measure, scan: Scan, tables: Mapping[str, DataFrame], limits: Limits
) -> Answer | Failed:
    """The one number of a person's query; `tables` are those that it names besides `this`."""
    try:
        statement = queries.statement_of(sql, "spark", ["this", *tables])
    except BadQuery as bad:
        return error(str(bad))
    if (why := queries.by_group(scan)) is not None:
        return why
    frames = {"this": _rows(frame, scan), **tables}
    with views(frame.sparkSession, list(frames.values())) as names, job_deadline(frame.sparkSession, limits):
        asked = renamed(statement, dict(zip((name.lower() for name in frames), names, strict=True)))
        given = {name: value for name, value in queries.parameters_of(sql).items() if name in used(statement)}
        text = f"SELECT * FROM ({written(asked, 'spark', lambda name: f':{name}')}) AS answered LIMIT 2"  # noqa: S608
        try:
            return queries.one_number(SparkSql(frame.sparkSession).rows(Statement(text, dict(given))))
        except Refused as refusal:
            return refusal.failed


def _rows(frame: DataFrame, scan: Scan) -> DataFrame:
    return frame.where(col(quoted(scan.part.column)) == scan.part.value) if isinstance(scan.part, One) else frame


def _source(view: str, frame: DataFrame) -> Source:
    # To bind is to analyse, which reads no rows.
    return Source(Table(view), {field.name: _kind(field.dataType) for field in frame.schema}, Table(view))


@dataclass(frozen=True)
class SparkSql:
    """A session that measures."""

    spark: SparkSession
    dialect = DIALECT

    def bind(self, statement: Statement) -> None:
        self._frame(statement)

    def rows(self, statement: Statement) -> Sequence[Row]:
        frame = self._frame(statement)
        try:
            rows = frame.collect()
        except (PySparkException, Py4JJavaError) as failed:
            raise refused(failed) from failed
        zoned = [isinstance(field.dataType, T.TimestampType) for field in frame.schema]
        return [[_aware(value) if aware else value for value, aware in zip(row, zoned, strict=True)] for row in rows]

    def _frame(self, statement: Statement) -> DataFrame:
        try:
            return self.spark.sql(statement.text, args=statement.parameters)
        except (PySparkException, Py4JJavaError) as failed:
            raise refused(failed) from failed


def _aware(value: datetime | None) -> datetime | None:
    """PySpark hands instants over in the local time of this process, without saying so."""
    return None if value is None else value.astimezone(UTC)


def refused(failed: Exception) -> Refused:
    if "cancelled" in str(failed):
        return Refused(error("the scan took longer than its timeout"), over=True)
    return Refused(error(str(failed).strip().splitlines()[0]))


@contextmanager
def views(spark: SparkSession, frames: Sequence[DataFrame]) -> Iterator[list[str]]:
    """Temporary views with names of their own, gone afterwards."""
    mark = uuid4().hex
    names = [f"scan_{mark}_{number}" for number in range(len(frames))]
    for name, frame in zip(names, frames, strict=True):
        frame.createOrReplaceTempView(name)
    try:
        yield names
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


@contextmanager
def job_deadline(spark: SparkSession, limits: Limits) -> Iterator[None]:
    """The jobs of this thread are cancelled when their time is over."""
    group = uuid4().hex
    spark.sparkContext.setJobGroup(group, "lakehub measures", interruptOnCancel=True)
    with deadline(limits.timeout, lambda: spark.sparkContext.cancelJobGroup(group)):
        yield
