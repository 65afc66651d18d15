"""Measures in Spark's SQL: one query for all of a scan, whatever their number, under a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import and_, eq, ge, lt, or_
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.functions import col, expr, lit

from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import TIME_IN_UTC, PartitionForm
from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import parameters_used
from lakehub.user_sql.rendered_sql import rename_tables, render_sql
from quality.domain.language.measures import Answer, Measure
from quality.domain.language.tree.nodes import Name
from quality.domain.language.values import Failed, error
from quality.engines.backends.spark_deadline import job_deadline
from quality.engines.scans.column_types import ColumnType
from quality.engines.scans.parts import OnePartition
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sql.fused_query import QueryRefused
from quality.engines.sql.measure_sql import SqlDialect, Statement, TableExpression
from quality.engines.sql.partition_filter import PartitionValue, partition_comparisons
from quality.engines.sql.portable_patterns import JAVA
from quality.engines.sql.scan_reader import ReadableTable, ReaderAnswers, Row, ScanReader
from quality.engines.user_sql import user_queries


def quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _cut_time(column: str, kind: ColumnType, form: PartitionForm) -> str:
    """Sessions are in UTC: what `from_utc_timestamp` gives shows the local time."""
    instant = kind is ColumnType.INSTANT or (kind is ColumnType.LOCAL and form.text == TIME_IN_UTC)
    local = f"from_utc_timestamp({column}, '{form.zone.key}')" if instant else f"CAST({column} AS TIMESTAMP)"
    text = f"date_format(date_trunc('{form.grain}', {local}), 'yyyy-MM-dd HH')"
    if not instant or form.grain is not Grain.HOUR:
        return text
    offset = f"unix_timestamp({local}) - unix_timestamp(CAST({column} AS TIMESTAMP))"
    return f"{text} || '@' || CAST({offset} AS STRING)"


DIALECT = SqlDialect(
    quote=quote_name,
    parameter=lambda name: f":{name}",
    key=lambda columns: f"struct({', '.join(columns)})",
    matches=lambda column, pattern: f"{column} RLIKE {pattern}",
    flavour=JAVA,
    cut_time=_cut_time,
    joined=lambda columns: " || '/' || ".join(f"CAST({column} AS STRING)" for column in columns),
    # Else it aggregates by each key, once for each of them: half as fast, or less.
    counts_keys_separately=True,
    # Else what does not fit 64 bits starts again at the bottom.
    sum_of=lambda column, kind: (
        f"SUM(CAST({column} AS DECIMAL(20, 0)))" if kind is ColumnType.INTEGER else f"SUM({column})"
    ),
)

_COLUMN_TYPES: tuple[tuple[type[T.DataType], ColumnType], ...] = (
    (T.BooleanType, ColumnType.BOOLEAN),
    (T.IntegralType, ColumnType.INTEGER),
    (T.FractionalType, ColumnType.FLOAT),
    (T.StringType, ColumnType.TEXT),
    (T.DateType, ColumnType.DATE),
    (T.TimestampType, ColumnType.INSTANT),
    (T.TimestampNTZType, ColumnType.LOCAL),
    (T.BinaryType, ColumnType.BINARY),
    (T.StructType, ColumnType.NESTED),
    (T.ArrayType, ColumnType.NESTED),
    (T.MapType, ColumnType.NESTED),
)


def _column_type(native: T.DataType) -> ColumnType:
    if isinstance(native, T.DecimalType):
        return ColumnType.DECIMAL
    return next((kind for type_class, kind in _COLUMN_TYPES if isinstance(native, type_class)), ColumnType.OTHER)


def measure_frame(
    frame: DataFrame, scan: Scan, tables: Mapping[Name, DataFrame | Failed], limits: Limits
) -> ReaderAnswers:
    """The answers of a scan over a frame that has its rows; `tables` are those that are looked into."""
    spark = frame.sparkSession
    frames = {name: table for name, table in tables.items() if isinstance(table, DataFrame)}
    missing = {name: table for name, table in tables.items() if isinstance(table, Failed)}
    read = [_rows_of_part(frame, scan), *frames.values()]
    with temporary_views(spark, read) as names, job_deadline(spark, limits):
        source, *others = (_readable_view(name, of) for name, of in zip(names, read, strict=True))
        readable_tables = dict(zip(frames, others, strict=True))
        return ScanReader(SparkBackend(spark), scan, source, limits).answer(
            scan.measures, {**readable_tables, **missing}
        )


def run_user_query(
    frame: DataFrame, sql: Measure, scan: Scan, tables: Mapping[str, DataFrame], limits: Limits
) -> Answer | Failed:
    """The one number of a person's query; `tables` are those that it names besides `this`."""
    try:
        statement = user_queries.checked_statement(sql, "spark", ["this", *tables])
    except BadQuery as bad:
        return error(str(bad))
    if (why := user_queries.grouping_failure(scan)) is not None:
        return why
    frames = {"this": _rows_of_part(frame, scan), **tables}
    with temporary_views(frame.sparkSession, list(frames.values())) as names, job_deadline(frame.sparkSession, limits):
        renamed_statement = rename_tables(statement, dict(zip((name.lower() for name in frames), names, strict=True)))
        given = {
            name: value
            for name, value in user_queries.bound_parameters(sql).items()
            if name in parameters_used(statement)
        }
        try:
            rendered = render_sql(renamed_statement, "spark", lambda name: f":{name}")
            text = f"SELECT * FROM ({rendered}) AS answered LIMIT 2"  # noqa: S608  # parsed again as what was checked
            backend, query = SparkBackend(frame.sparkSession), Statement(text, dict(given))
            # By its type, before anything runs: two rows of one number are all that ever comes out of the JVM.
            return _unfit_answer(backend.schema(query)) or user_queries.single_number(backend.rows(query))
        except BadQuery as bad:
            return error(str(bad))
        except QueryRefused as refusal:
            return refusal.failed


def _unfit_answer(schema: T.StructType) -> Failed | None:
    if len(schema) != 1:
        return error(f"the query answers {len(schema)} columns; one row with one number is wanted")
    kind = schema[0].dataType
    if isinstance(kind, T.NumericType | T.NullType):
        return None
    shown = next((name for known, name in _PYTHON_TYPES if isinstance(kind, known)), kind.simpleString())
    return error(f"the query answers a {shown}, which is no number")


_PYTHON_TYPES: tuple[tuple[type[T.DataType], str], ...] = (
    (T.StringType, "str"),
    (T.BooleanType, "bool"),
    (T.DateType, "date"),
    (T.TimestampType, "datetime"),
    (T.TimestampNTZType, "datetime"),
)
"""As the other engines name them."""


def _rows_of_part(frame: DataFrame, scan: Scan) -> DataFrame:
    return rows_of_partition(frame, scan.part) if isinstance(scan.part, OnePartition) else frame


def rows_of_partition(frame: DataFrame, part: OnePartition) -> DataFrame:
    """Raises CannotRead where the frame has no such column, or one of another type."""
    columns = {field.name: _column_type(field.dataType) for field in frame.schema}
    alternatives = [
        reduce(
            and_,
            (
                _COMPARED[comparison.operator](col(quote_name(comparison.column)), _literal(comparison.value))
                for comparison in comparisons
            ),
        )
        for comparisons in partition_comparisons(part, columns)
    ]
    return frame.where(reduce(or_, alternatives))


_COMPARED: dict[str, Callable[[Column, Column], Column]] = {"=": eq, ">=": ge, "<": lt}


def _literal(value: PartitionValue) -> Column:
    """PySpark takes times without a zone for those of this process: they are written as SQL."""
    if not isinstance(value, datetime):
        return lit(value)
    return expr(f"{'TIMESTAMP_NTZ' if value.tzinfo is None else 'TIMESTAMP'} '{value.isoformat(' ')}'")


def _readable_view(view: str, frame: DataFrame) -> ReadableTable:
    # To bind is to analyse, which reads no rows.
    return ReadableTable(
        TableExpression(view),
        {field.name: _column_type(field.dataType) for field in frame.schema},
        TableExpression(view),
    )


@dataclass(frozen=True)
class SparkBackend:
    """A session that measures."""

    spark: SparkSession
    dialect = DIALECT

    def bind(self, statement: Statement) -> None:
        self._frame(statement)

    def schema(self, statement: Statement) -> T.StructType:
        """Of its answer; nothing is read."""
        return self._frame(statement).schema

    def rows(self, statement: Statement) -> Sequence[Row]:
        frame = self._frame(statement)
        try:
            rows = frame.collect()
        except (PySparkException, Py4JJavaError) as failed:
            raise refusal_of(failed) from failed
        zoned = [isinstance(field.dataType, T.TimestampType) for field in frame.schema]
        return [
            [_with_time_zone(value) if aware else value for value, aware in zip(row, zoned, strict=True)]
            for row in rows
        ]

    def _frame(self, statement: Statement) -> DataFrame:
        try:
            return self.spark.sql(statement.text, args=statement.parameters)
        except (PySparkException, Py4JJavaError) as failed:
            raise refusal_of(failed) from failed


def _with_time_zone(value: datetime | None) -> datetime | None:
    """PySpark hands instants over in the local time of this process, without saying so."""
    return None if value is None else value.astimezone(UTC)


def refusal_of(failed: Exception) -> QueryRefused:
    if "cancelled" in str(failed):
        return QueryRefused(error("the scan took longer than its timeout"), is_final=True)
    return QueryRefused(error(str(failed).strip().splitlines()[0]))


@contextmanager
def temporary_views(spark: SparkSession, frames: Sequence[DataFrame]) -> Iterator[list[str]]:
    """Temporary views with names of their own, gone afterwards."""
    mark = uuid4().hex
    names = [f"scan_{mark}_{number}" for number in range(len(frames))]
    for name, frame in zip(names, frames, strict=True):
        frame.createOrReplaceTempView(name)
    try:
        yield names
    finally:
        # A JVM that has ended has none left.
        with suppress(Py4JError, OSError):
            for name in names:
                spark.catalog.dropTempView(name)
