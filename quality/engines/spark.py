"""Spark over Hudi's own reader: the engine for what does not fit one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from quality.domain.expression.measures import COMMITTED, Answer, Measure
from quality.domain.expression.values import Failed
from quality.engines.scan import CannotRead, Each, HudiCopy, Limits, Measured, Scan, Target, of_nothing
from quality.engines.slices import snapshot
from quality.spark.fused import measure
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
        tables = {name: _frame(spark, target) for name, target in scan.tables.items()}
        found = measure(_frame(spark, scan.target), replace(scan, measures=rest), tables, limits)
        return Measured({**known, **found.answers}, listed.instant, found.scans, found.groups)


def _frame(spark: SparkSession, target: Target) -> DataFrame:
    if not isinstance(target, HudiCopy):
        raise CannotRead("Spark looks into Hudi tables only; bring the other table into the lake first.")
    return spark.read.format("hudi").load(target.uri)
