"""Rows of the target made anew from what the inputs hold now: all, or those of some record keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from ingestion.domain.column_types import parse_type
from ingestion.domain.schema import Schema
from ingestion.spark.etl.views import InputViews
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading.committing import staged_rows
from ingestion.spark.loading.staging import MAX_PARTITIONS, SEQUENCE_COLUMN, StagedBatch
from ingestion.spark.tables.spark_columns import comparable

_MAX_VALUES = 1_000
"""Of a key column: so many different ones are told to the readers of the inputs, which then leave out files without them."""
_RANK, _ALIKE = "_lakehub_rank", "_lakehub_alike"


def target_schema(job: Job) -> Schema:
    return Schema.of(job.pipeline_spec.columns)


def rows_of_partitions(views: InputViews, values: Sequence[Any], job: Job) -> DataFrame:
    return all_rows(views, job).where(F.col(str(job.table.partition_column)).isin(*values))


def rows_of_keys(views: InputViews, keys: DataFrame, job: Job) -> DataFrame:
    """`keys`: materialised, as it is read several times."""
    with job.phase("compute"):
        rows = _with_values_of(all_rows(views, job), keys)
    condition = reduce(and_, (rows[name].eqNullSafe(keys[name]) for name in keys.columns))
    return rows.join(keys, condition, "left_semi")


def _with_values_of(rows: DataFrame, keys: DataFrame) -> DataFrame:
    """Only rows that can have one of the keys, said so that it reaches the scans of the inputs."""
    lists = [F.collect_set(F.col(name)).alias(name) for name in keys.columns]
    counts = keys.agg(*(F.approx_count_distinct(name).alias(name) for name in keys.columns)).first()
    few = [name for name in keys.columns if counts is not None and counts[name] <= _MAX_VALUES // 2]
    if not few:
        return rows
    values = keys.agg(*(each for each, name in zip(lists, keys.columns, strict=True) if name in few)).first()
    assert values is not None
    return reduce(lambda kept, name: kept.where(F.col(name).isin(*values[name])), few, rows)


def all_rows(views: InputViews, job: Job) -> DataFrame:
    """In the target's columns and types."""
    rows = views.query(views.pipeline.transform)
    made = {name.casefold(): name for name in rows.columns}
    if missing := [name for name in target_schema(job).names if name.casefold() not in made]:
        raise JobError(
            f"The SELECT of `{job.table.name}` makes no column `{missing[0]}`, which table.sql has. Nothing was written."
        )
    values = [
        F.col(f"`{made[name.casefold()]}`").cast(type_).alias(name) for name, type_ in target_schema(job).types.items()
    ]
    return rows.select(*values)


def stage(job: Job, rows: DataFrame, uri: str) -> StagedBatch:
    """Each key once, written below `uri` for the write path. Raises JobError where a row has no key."""
    with job.phase("compute"):
        batch = _written(rows if not job.pipeline_spec.precombine else each_key_once(rows, job), job, uri)
        keys = _count_keys(job, staged_rows(job, batch))
        if keys < batch.rows:  # seldom: rows are sorted by key only where one comes twice
            batch = _written(each_key_once(staged_rows(job, batch).drop(SEQUENCE_COLUMN), job), job, f"{uri}/once")
        _count_partitions(job, staged_rows(job, batch), batch)
    return batch


def _written(rows: DataFrame, job: Job, uri: str) -> StagedBatch:
    batch = StagedBatch(uri, target_schema(job))
    seen = Observation("staged")
    numbered = rows.withColumn(SEQUENCE_COLUMN, F.monotonically_increasing_id())
    numbered.observe(seen, F.count("*").alias("rows")).write.mode("overwrite").parquet(batch.rows_uri)
    batch.read = batch.rows = seen.get["rows"]
    return batch


def each_key_once(rows: DataFrame, job: Job) -> DataFrame:
    types = {name: parse_type(type_) for name, type_ in job.pipeline_spec.columns.items()}
    same_key = Window.partitionBy(*job.table.record_key)
    # Of equals always the same one, whenever it is computed. Most keys come once: their rows are not written out as texts for it.
    text = F.to_json(F.struct(*(comparable(F.col(name), type_).alias(name) for name, type_ in types.items())))
    order = [F.when(F.col(_ALIKE) > 1, text).desc()]
    if job.pipeline_spec.precombine:
        order = [F.col(job.pipeline_spec.precombine).desc_nulls_last(), *order]
    numbered = rows.withColumn(_ALIKE, F.count("*").over(same_key))
    ranked = numbered.withColumn(_RANK, F.row_number().over(same_key.orderBy(*order)))
    return ranked.where(f"{_RANK} = 1").drop(_RANK, _ALIKE)


def _count_keys(job: Job, staged: DataFrame) -> int:
    """Raises JobError where a part of one is null, or the partition."""
    names = [*dict.fromkeys((*job.table.record_key, *filter(None, [job.table.partition_column])))]
    nulls = {name: f"_null_{number}" for number, name in enumerate(names)}
    counted = [F.count_if(F.col(name).isNull()).alias(alias) for name, alias in nulls.items()]
    sums = (
        staged.groupBy(*job.table.record_key)
        .agg(*counted)
        .agg(F.count("*").alias("_keys"), *(F.sum(alias).alias(alias) for alias in nulls.values()))
        .first()
    )
    assert sums is not None
    if counts := {name: sums[alias] for name, alias in nulls.items() if sums[alias]}:
        raise JobError(null_keys(job, ", ".join(f"`{name}` is null in {rows:,}" for name, rows in counts.items())))
    return int(sums["_keys"])


def null_keys(job: Job, nulls: str) -> str:
    return f"The SELECT of `{job.table.name}` makes rows without a key: {nulls}. Nothing was written. Leave such rows out (WHERE ... IS NOT NULL), or give them a value (coalesce)."


def _count_partitions(job: Job, staged: DataFrame, batch: StagedBatch) -> None:
    column = job.table.partition_column
    if column is None:
        return
    groups = staged.groupBy(F.col(column).cast("string").alias("name")).count().limit(MAX_PARTITIONS + 1).collect()
    batch.rows_by_partition = (
        Counter({group["name"]: group["count"] for group in groups}) if len(groups) <= MAX_PARTITIONS else None
    )
