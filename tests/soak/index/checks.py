"""What must hold: the lake has the rows of the source, each once with its newest values, and the index says where they lie."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.soak.index.jobs import NotAsItMustBe, Stage
from tests.spark.order_shop import read

_SHOWN = 3


def require_rows(stage: Stage, keys: Collection[int] | None = None) -> int:
    """How many rows the lake has. `keys`: those whose rows are compared; None: all. Raises NotAsItMustBe."""
    spark, file = stage.spark, stage.source.folder / "source.parquet"
    stage.source.rows_into(file, keys)
    lake = read(spark, stage.source.table.uri)
    rows: int = lake.count()
    wanted = stage.source.count()
    if keys is not None:
        named = spark.createDataFrame([(key,) for key in keys], "id long")
        lake = lake.join(F.broadcast(named), "id", "left_semi")
    at = F.date_format("updated_at", "yyyy-MM-dd HH:mm:ss.SSSSSS").alias("updated_at")
    there = lake.select(F.col("id").cast("long"), F.col("day").cast("string"), F.col("amount"), at).persist()
    source = spark.read.parquet(str(file))
    try:
        problems = [*_only_in("lake", there, source), *_only_in("source", source, there)]
    finally:
        there.unpersist()
    if rows != wanted:
        problems.append(f"the lake has {rows:,} rows, the source {wanted:,}")
    if problems:
        raise NotAsItMustBe("; ".join(problems))
    return rows


def _only_in(name: str, these: DataFrame, others: DataFrame) -> list[str]:
    """A row that is there twice is once too much."""
    only = these.exceptAll(others)
    shown = only.take(_SHOWN)
    return (
        [f"only in the {name}: {only.count():,} rows, such as {', '.join(str(tuple(row)) for row in shown)}"]
        if shown
        else []
    )


def require_index(stage: Stage) -> None:
    """Index and table agree whole. Raises NotAsItMustBe."""
    report = stage.source.run(stage.spark, "verify_index", "verified", source=None)
    if report.error is not None:
        raise NotAsItMustBe(f"verify_index: {report.error}")
    rows, entries, problems = (report.output[name] for name in ("rows", "entries", "problems"))
    if rows != entries or any(problems.values()):
        raise NotAsItMustBe(f"the index has {entries:,} entries of {rows:,} rows: {problems}")
