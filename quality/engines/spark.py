"""Spark over Hudi's own reader: the engine for what does not fit one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from quality.domain.expression.measures import COMMITTED, Answer, Measure
from quality.domain.expression.values import Failed, error
from quality.domain.queries import BadQuery
from quality.engines import queries
from quality.engines.scan import CannotRead, Each, HudiCopy, Limits, Measured, Scan, Target, of_nothing
from quality.engines.slices import snapshot
from quality.spark.fused import measure, query
from quality.spark.session import quality_session


class Spark:
    def __init__(self, session: Callable[[], SparkSession] = quality_session) -> None:
        self._session = session

    def measure(self, scan: Scan, limits: Limits) -> Measured:
        if not isinstance(scan.target, HudiCopy):
            raise CannotRead(
                "Spark reads Hudi tables here; for files choose engine=duckdb, for a table of a database engine=sqlalchemy."
            )
        spark = self._session()
        # Listed before it is read: the rows are at least as new as the commit that is named.
        listed = snapshot(scan.target.uri, logs=True)
        known: dict[Measure, Answer | Failed] = {COMMITTED: listed.committed_at} if COMMITTED in scan.measures else {}
        rest = tuple(one for one in scan.measures if one != COMMITTED)
        if not listed.slices:
            nothing = of_nothing(rest, each=isinstance(scan.part, Each) or bool(scan.by))
            return Measured({**known, **nothing}, listed.instant, 0)
        frame = _frame(spark, scan.target)
        asked = {one: self._query(frame, one, scan, limits) for one in queries.of(scan)}
        rest = tuple(one for one in rest if one not in asked)
        if not rest:
            return Measured({**known, **asked}, listed.instant, len(asked))
        names = {one.other for one in rest if one.other is not None}
        tables = {name: _looked_into(spark, scan.tables[name]) for name in names}
        found = measure(frame, replace(scan, measures=rest), tables, limits)
        return Measured({**known, **asked, **found.answers}, listed.instant, found.scans + len(asked), found.groups)

    def _query(self, frame: DataFrame, measure: Measure, scan: Scan, limits: Limits) -> Answer | Failed:
        try:
            named = queries.others(measure, scan)
            tables = {name: _frame(frame.sparkSession, target) for name, target in named.items()}
        except (BadQuery, CannotRead) as bad:
            return error(str(bad))
        return query(frame, measure, scan, tables, limits)


def _looked_into(spark: SparkSession, target: Target) -> DataFrame | Failed:
    try:
        return _frame(spark, target)
    except CannotRead as failed:
        return error(str(failed))


def _frame(spark: SparkSession, target: Target) -> DataFrame:
    if not isinstance(target, HudiCopy):
        raise CannotRead("Spark looks into Hudi tables only; bring the other table into the lake first.")
    return spark.read.format("hudi").load(target.uri)
