"""Whether a table holds what the SELECT makes of the inputs, and how many rows it lacks, has too many, or has otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bench.modelling.ways import selected
from tests.spark.pipeline_lake import PipelineLake

Digests = dict[str, tuple[int, int]]
"""By day: rows, and a sum of their digests."""


@dataclass(frozen=True)
class Truth:
    lake: PipelineLake
    pipeline: str
    digests: Digests

    @classmethod
    def of(cls, lake: PipelineLake, pipeline: str) -> Truth:
        return cls(lake, pipeline, _digests(selected(lake, pipeline)))

    def rows_missed(self, lake: PipelineLake) -> int:
        """Keys whose row is not right, of the table in `lake`: its days that differ are compared row by row."""
        stored = lake.stored(self.pipeline)
        digests = _digests(stored)
        days = sorted(day for day in digests.keys() | self.digests if digests.get(day) != self.digests.get(day))
        if not days:
            return 0
        key = self.lake.pipelines[self.pipeline].record_key
        true, own = (
            rows.where(F.col("day").isin(*days)).select(F.xxhash64(*key).alias("key"), _digest(rows).alias(name))
            for rows, name in ((selected(self.lake, self.pipeline), "true"), (stored, "own"))
        )
        return true.join(own, "key", "full").where(~F.col("true").eqNullSafe(F.col("own"))).count()


def _digests(rows: DataFrame) -> Digests:
    sums = rows.groupBy("day").agg(F.count("*"), F.sum(F.pmod(_digest(rows), F.lit(2**40)))).collect()
    return {day: (count, total) for day, count, total in sums}


def _digest(rows: DataFrame) -> Column:
    return F.xxhash64(*rows.columns)
