"""Rows of the target recomputed from what the inputs hold now: all, or those of some record keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingestion.domain.schema import Schema
from ingestion.spark.etl.checks.misfits import MISFIT, misfit_flag, misfits_in_words
from ingestion.spark.etl.checks.unfit_keys import unfit_keys
from ingestion.spark.etl.checks.words import in_rows
from ingestion.spark.etl.transformers.process import transform
from ingestion.spark.etl.views import InputViews
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading.committing import staged_rows
from ingestion.spark.loading.staging import MAX_PARTITIONS, SEQUENCE_COLUMN, STAGED_BY_SPARK, Layout, StagedBatch
from ingestion.spark.tables.spark_columns import TIMES_IN_FULL, comparable, type_of_spark

_MAX_VALUES = 1_000
"""Of a key column: so many different ones are told to the readers of the inputs, which then leave out files without them."""
_BITS_IN_FILE = 33
"""Of a number of monotonically_increasing_id: those above say which task has given it."""
_RANK, _ALIKE = "_lakehub_rank", "_lakehub_alike"


def target_schema(job: Job) -> Schema:
    return Schema.of(job.pipeline_spec.columns)


def rows_of_partitions(views: InputViews, values: Sequence[Any], job: Job) -> DataFrame:
    return selected_rows(views, job).where(F.col(str(job.table.partition_column)).isin(*values))


class KeyFacts(NamedTuple):
    """How many keys there are, and of columns with few different values which these are; dates as texts, as Python has not all that Spark has.
    `nulls`: the columns that are null in some: rows with such a key are refused where the SELECT makes any."""

    total: int
    values: Mapping[str, Sequence[Any]]
    nulls: frozenset[str] = frozenset()

    @classmethod
    def of(cls, keys: DataFrame) -> KeyFacts:
        """`keys`: materialised, as it is read several times."""
        facts = [F.approx_count_distinct(name).alias(name) for name in keys.columns]
        facts += [F.count_if(F.col(name).isNull()).alias(f"_lakehub_null_{name}") for name in keys.columns]
        sums = keys.agg(F.count("*").alias("_lakehub_keys"), *facts).first()
        assert sums is not None
        few = [name for name in keys.columns if sums[name] <= _MAX_VALUES // 2]
        plain = {name: F.col(name).cast("string") if type_ == "date" else F.col(name) for name, type_ in keys.dtypes}
        values = keys.agg(*(F.collect_set(plain[name]).alias(name) for name in few)).first() if few else None
        nulls = frozenset(name for name in keys.columns if sums[f"_lakehub_null_{name}"])
        return cls(sums["_lakehub_keys"], {} if values is None else {name: values[name] for name in few}, nulls)


def rows_of_keys(views: InputViews, keys: DataFrame, facts: KeyFacts, job: Job) -> DataFrame:
    """Only rows that can have one of the keys, said so that it reaches the scans of the inputs."""
    types = dict(keys.dtypes)
    rows = selected_rows(views, job)
    for name, values in facts.values.items():
        some = F.col(name).isin(*(F.lit(value).cast("date") if types[name] == "date" else value for value in values))
        rows = rows.where(some | F.col(name).isNull() if name in facts.nulls else some)
    condition = reduce(and_, (rows[name].eqNullSafe(keys[name]) for name in keys.columns))
    return rows.join(keys, condition, "left_semi")


def selected_rows(views: InputViews, job: Job) -> DataFrame:
    """What the SELECT makes, in the target's columns and types. Where transformers follow: in all of its columns, of which those that they do not change are the target's."""
    rows, types = views.query(views.pipeline.transform), target_schema(job).types
    if not views.pipeline.transformers:
        return _in_target_columns(rows, types, job)
    if len({name.casefold() for name in rows.columns}) != len(rows.columns):
        raise JobError(f"The SELECT of `{job.table.name}` makes two columns with one name. Nothing was written.")
    wanted = dict.fromkeys((*_columns_that_stay(job), *filter(None, [job.pipeline_spec.precombine])))
    named = {name.casefold() for name in wanted}
    others = [
        F.col(f"`{name}`").cast(type_).alias(name)
        for name, type_ in _schema_of(rows).types.items()
        if name.casefold() not in named
    ]
    return _in_target_columns(rows, {name: types[name] for name in wanted}, job, others)


def _columns_that_stay(job: Job) -> tuple[str, ...]:
    """The record key and the partition of a row, which no transformer changes."""
    return tuple(dict.fromkeys((*job.table.record_key, *filter(None, [job.table.partition_column]))))


def _schema_of(rows: DataFrame) -> Schema:
    """Without the flag of misfits, which is looked at once."""
    return Schema.of(
        {column.name: str(type_of_spark(column.dataType)) for column in rows.schema if column.name != MISFIT}
    )


def _in_target_columns(rows: DataFrame, types: Mapping[str, str], job: Job, others: Sequence[Column] = ()) -> DataFrame:
    made = {name.casefold(): name for name in rows.columns}
    if missing := [name for name in types if name.casefold() not in made]:
        raise JobError(
            f"The SELECT of `{job.table.name}` makes no column `{missing[0]}`, which table.sql has. Nothing was written."
        )
    sources = {name: made[name.casefold()] for name in types}
    values = [F.col(f"`{sources[name]}`").cast(type_).alias(name) for name, type_ in types.items()]
    flag = None if job.pipeline_spec.transformers else misfit_flag(rows, sources, types)
    return rows.select(*values, *others, *([] if flag is None else [flag]))


def stage(job: Job, rows: DataFrame, uri: str, *, tries_halves: bool = False) -> StagedBatch:
    """`rows`: as the SELECT makes them. Each key once, through the transformers, written below `uri` for the write path. Raises JobError where a row has no key, and where
    a transformer does what it may not; with `tries_halves`, also where one does not make each row of one."""
    with job.phase("compute"):
        has_flag = MISFIT in rows.columns
        batch = _written(rows if not job.pipeline_spec.precombine else each_key_once(rows, job), uri)
        written, keys = _count_keys(job, staged_rows(job, _with_flag(batch) if has_flag else batch))
        if keys < written:  # seldom: rows are sorted by key only where one comes twice, or two share a hash
            batch = _written(each_key_once(staged_rows(job, batch).drop(SEQUENCE_COLUMN), job), f"{uri}/once")
            keys = staged_rows(job, batch).count()
        batch.read = batch.rows = keys
        if job.pipeline_spec.transformers:
            batch = _transformed(job, batch, f"{uri}/transformed", tries_halves=tries_halves)
        _count_partitions(job, staged_rows(job, batch), batch)
    return batch


def _with_flag(batch: StagedBatch) -> StagedBatch:
    return replace(batch, schema=Schema.of({**batch.schema.types, MISFIT: "string"}))


def _written(rows: DataFrame, uri: str) -> StagedBatch:
    batch = StagedBatch(uri, _schema_of(rows))
    numbered = rows.withColumn(SEQUENCE_COLUMN, F.monotonically_increasing_id())
    numbered.write.mode("overwrite").options(**STAGED_BY_SPARK).parquet(batch.rows_uri)
    return batch


def _transformed(job: Job, given: StagedBatch, uri: str, *, tries_halves: bool) -> StagedBatch:
    schema = target_schema(job)
    if not given.rows:
        columns = ", ".join(f"`{name}` {type_}" for name, type_ in schema.types.items())
        return _written(job.spark.createDataFrame([], columns), uri)
    batch = StagedBatch(uri, schema)
    transform(job, given.rows_uri, batch.rows_uri, stays=_columns_that_stay(job), tries_halves=tries_halves)
    batch.read = batch.rows = staged_rows(job, batch).count()
    return batch


def each_key_once(rows: DataFrame, job: Job) -> DataFrame:
    """Of rows with one key the one with the greatest `precombine`, to which any row without one loses; of several such rows always the same one."""
    types = {column.name: type_of_spark(column.dataType) for column in rows.schema if column.name != MISFIT}
    same_key = Window.partitionBy(*job.table.record_key)
    # Of equals always the same one, whenever it is computed. Most keys come once: their rows are not written out as texts for it.
    values = F.struct(*(comparable(F.col(name), type_).alias(name) for name, type_ in types.items()))
    text = F.to_json(values, TIMES_IN_FULL)
    order = [F.when(F.col(_ALIKE) > 1, text).desc()]
    if job.pipeline_spec.precombine:
        order = [F.col(job.pipeline_spec.precombine).desc_nulls_last(), *order]
    if MISFIT in rows.columns:
        # By the cast its key may be that of another row, and what it is compared by another number: it stays, to be refused.
        order = [F.col(MISFIT).isNotNull().desc(), *order]
    numbered = rows.withColumn(_ALIKE, F.count("*").over(same_key))
    ranked = numbered.withColumn(_RANK, F.row_number().over(same_key.orderBy(*order)))
    return ranked.where(f"{_RANK} = 1").drop(_RANK, _ALIKE)


def _count_keys(job: Job, staged: DataFrame) -> tuple[int, int]:
    """The rows, and the different keys by their hashes: too few where two share one, never too many. Raises JobError where a part of a key is null, or the partition, and where the table cannot hold a row."""
    nulls = {f"`{name}` is null": F.col(name).isNull() for name in _columns_that_stay(job)}
    unfit = unfit_keys(job.table, target_schema(job).types)
    misfit = [F.col(MISFIT).isNotNull()] if MISFIT in staged.columns else []
    any_is_wrong = reduce(or_, [*nulls.values(), *unfit.values(), *misfit])
    # Grouping is what takes long here: it is given one number for each row, null where the row is wrong.
    hashes = staged.groupBy(F.when(~any_is_wrong, _hash_of_key(job)).alias("hash")).agg(F.count("*").alias("rows"))
    counted = hashes.agg(
        F.sum("rows").alias("rows"), F.count("hash").alias("keys"), F.count("*").alias("kinds")
    ).first()
    assert counted is not None
    if counted["kinds"] > counted["keys"]:
        raise JobError(f"The SELECT of `{job.table.name}` makes {_what_is_wrong(job, staged, nulls, unfit)}")
    return counted["rows"] or 0, counted["keys"]


def _hash_of_key(job: Job) -> Column:
    return F.xxhash64(*job.table.record_key)


def _what_is_wrong(job: Job, staged: DataFrame, nulls: Mapping[str, Column], unfit: Mapping[str, Column]) -> str:
    """The first kind of it, and what to do."""
    if MISFIT in staged.columns and (misfits := misfits_in_words(staged, target_schema(job).types)):
        return (
            f"values that do not fit the types of table.sql: {misfits}. Nothing was written. "
            "Give these columns wider types in table.sql, leave such rows out (WHERE), or make them null (try_cast)."
        )
    if null := _counted(staged, nulls):
        return f"rows without a key: {null}. Nothing was written. Leave such rows out (WHERE ... IS NOT NULL), or give them a value (coalesce)."
    return f"rows that the table cannot hold: {_counted(staged, unfit)}. Nothing was written. Leave such rows out (WHERE), or give them another value (CASE)."


def _counted(staged: DataFrame, wrong: Mapping[str, Column]) -> str:
    """In words, of how many rows each is true."""
    counts = staged.agg(*(F.count_if(condition) for condition in wrong.values())).first()
    return in_rows({words: rows for words, rows in zip(wrong, counts or (), strict=True) if rows})


def _count_partitions(job: Job, staged: DataFrame, batch: StagedBatch) -> None:
    if column := job.table.partition_column:
        batch.rows_by_partition, batch.layout = partitions_of(staged, F.col(column).cast("string"))


def partitions_of(staged: DataFrame, name: Column) -> tuple[Counter[str] | None, Layout | None]:
    """The rows of each partition, and how they lie in the files. `staged`: each file is of one task, which has numbered its rows. None: there are too many partitions to name."""
    number = F.col(SEQUENCE_COLUMN)
    pieces = staged.groupBy(name.alias("name"), F.shiftright(number, _BITS_IN_FILE).alias("file")).agg(
        F.count("*").alias("rows"), (F.max(number) - F.min(number) + 1 == F.count("*")).alias("is_run")
    )
    partitions = pieces.groupBy("name").agg(
        F.sum("rows").alias("rows"), F.count("*").alias("pieces"), F.bool_and("is_run").alias("are_runs")
    )
    groups = partitions.limit(MAX_PARTITIONS + 1).collect()
    if len(groups) > MAX_PARTITIONS:
        return None, None
    layout = Layout(sum(group["pieces"] for group in groups), all(group["are_runs"] for group in groups))
    return Counter({group["name"]: group["rows"] for group in groups}), layout
