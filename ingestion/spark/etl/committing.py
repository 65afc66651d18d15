"""The rows of some record keys in place of those that the target holds of them: one commit, in which rows are new, others, or gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts
from ingestion.domain.column_types import ColumnType, parse_type
from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.etl.audits import audit, is_audited
from ingestion.spark.etl.few_rows import columns_of_arrow, columns_of_few, place_few
from ingestion.spark.etl.recomputing import KeyFacts
from ingestion.spark.file_groups import direct_write
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.many_rows.committing import open_many_rows
from ingestion.spark.file_groups.many_rows.tasks import FILE_ID, PARTITION
from ingestion.spark.file_groups.record_locations import (
    PREPPED,
    is_empty_key,
    partition_path,
    record_key,
    stored_file_id,
    with_locations,
)
from ingestion.spark.file_groups.rewriting import KEY, REMOVED
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading import staging, write_path
from ingestion.spark.loading.committing import (
    CommitPlan,
    check_balance,
    check_judged_now,
    has_nothing_to_commit,
    marks_of,
    staged_rows,
)
from ingestion.spark.loading.rereading import ReadAgain, check_entries
from ingestion.spark.loading.row_fates import FateCounts
from ingestion.spark.tables import hudi
from ingestion.spark.tables.commit_failpoint import sleep_inside_commit
from ingestion.spark.tables.hudi import META_COLUMNS
from ingestion.spark.tables.spark_columns import comparable
from ingestion.spark.tables.timeline import TABLE_SERVICES, Timeline

_BITS = {"bigint": 63, "int": 31, "date": 31}
_IS_NEW, _IS_SAME, _IS_GONE, _MOVES = "_lakehub_new", "_lakehub_same", "_lakehub_gone", "_lakehub_moves"
MAX_TEXT_BYTES = 200_000
"""Of a row: Spark's tasks get thousands of rows at once."""
_HELD_IN = "_lakehub_held_in"
"""The value of the partition column in the row that the table holds."""


def replacing(keys: DataFrame, facts: KeyFacts) -> Callable[[Job, staging.StagedBatch, CommitPlan], RowCounts | None]:
    """A `CommitAttempt`: the staged rows are all that the target is to hold of these `keys`."""

    def commit(job: Job, batch: staging.StagedBatch, plan: CommitPlan) -> RowCounts | None:
        check_nobody_else_wrote(job, plan)
        judged = _judged(job, batch, plan, keys, facts).persist()
        try:
            return _commit_judged(job, batch, plan, judged, keys)
        finally:
            judged.unpersist()

    return commit


def check_nobody_else_wrote(job: Job, plan: CommitPlan) -> None:
    """Raises ReadAgain: who wrote since the inputs were read, such as a backfill, may have read newer ones, and what it wrote would go back to what was then."""
    assert plan.start is not None
    recent = Timeline(job.table.uri).commits_since(plan.start.began).commits
    if others := [commit for commit in recent if commit.operation not in TABLE_SERVICES]:
        raise ReadAgain(f"the commit {others[-1].instant} has written the target since the inputs were read")


def _judged(job: Job, batch: staging.StagedBatch, plan: CommitPlan, keys: DataFrame, facts: KeyFacts) -> DataFrame:
    """A row for each staged and each stored row of the keys: with where it is stored, and what becomes of it."""
    table, target = job.table, plan.evolution.target
    index: Index = INDEXES.get(table.index)()
    stored = index.stored_rows(
        job.spark, table, BatchKeys(keys, facts.total, _partitions_of(keys, facts, table), table)
    )
    stored = stored.join(keys, list(table.record_key), "left_semi")
    types = {name: parse_type(type_) for name, type_ in target.types.items()}
    held = stored.select(
        *(F.col(name).alias(f"_held_{name}") for name in META_COLUMNS),
        F.struct(*_in_columns_of(target, stored)).alias("_held"),
    )
    made = staged_rows(job, batch).select(F.struct(*target.names).alias("_made"))
    same_key = [F.col("_made")[name] == F.col("_held")[name] for name in table.record_key]
    both = made.join(held, same_key, "full")
    content = [_content(F.col(part), types) for part in ("_made", "_held")]
    gone, new = F.col("_made").isNull(), F.col("_held").isNull()
    row = F.coalesce("_made", "_held")
    frame = both.select(
        *(F.col(f"_held_{name}").alias(name) for name in META_COLUMNS),
        *(row[name].alias(name) for name in target.names),
        gone.alias(_IS_GONE),
        new.alias(_IS_NEW),
        (~gone & ~new & content[0].eqNullSafe(content[1])).alias(_IS_SAME),
        (F.lit(None) if table.partition_column is None else F.col("_held")[table.partition_column])
        .cast("string")
        .alias(_HELD_IN),
    )
    moves = F.coalesce(F.col("_hoodie_partition_path") != partition_path(table), F.lit(False)) & ~F.col(_IS_GONE)
    return frame.withColumn(_MOVES, moves)


def _partitions_of(keys: DataFrame, facts: KeyFacts, table: TableSpec) -> set[str] | None:
    """Those that the keys name; None: they name none, or too many."""
    column = table.partition_column
    if column is None or column not in table.record_key:
        return None
    if column in facts.values:
        return {*map(str, facts.values[column])}
    rows = keys.select(column).distinct().limit(staging.MAX_PARTITIONS + 1).collect()
    return {str(row[0]) for row in rows} if len(rows) <= staging.MAX_PARTITIONS else None


def _in_columns_of(target: Schema, stored: DataFrame) -> list[Column]:
    """What the table has in the columns of `target`; those that it lacks are null."""
    return [
        (F.col(f"`{name}`") if name in stored.columns else F.lit(None)).cast(type_).alias(name)
        for name, type_ in target.types.items()
    ]


def _content(row: Column, types: Mapping[str, ColumnType]) -> Column:
    return F.struct(*(comparable(row[name], type_).alias(name) for name, type_ in types.items()))


def _commit_judged(
    job: Job, batch: staging.StagedBatch, plan: CommitPlan, judged: DataFrame, keys: DataFrame
) -> RowCounts | None:
    with job.phase("judge"):
        sums = judged.agg(
            F.count_if(F.col(_IS_SAME)).alias("same"), F.count("*").alias("rows"), F.count_if(F.col(_MOVES)).alias("moved"),
            F.count_if(_arrives() & _has_empty_name(job.table)).alias("empty"),
            F.max(_text_bytes(plan.evolution.target)).alias("text_bytes"),
        ).first()  # fmt: skip
        assert sums is not None
        index: Index = INDEXES.get(job.table.index)()
        new = judged.where(F.col(_IS_NEW) & ~is_empty_key(job.table)).select(record_key(job.table).alias("key"))
        check_entries(job, index, new)
    counts = RowCounts(read=sums["rows"], applied=sums["rows"] - sums["same"], redelivered=sums["same"])
    counted = FateCounts(counts, sums["moved"])
    batch.read = sums["rows"]
    check_balance(counted, job.table)
    if has_nothing_to_commit(counted, plan):
        return counts
    marks = marks_of(job, batch, counted, plan)
    changed = judged.where(~F.col(_IS_SAME))
    if counts.applied and is_audited(job):
        touched = _partitions_touched(changed, job.table)
        audit(job, batch, _rows_after(job, batch, plan.evolution.target, keys, touched), touched, plan.position)
    changed = changed.drop(_HELD_IN)
    if counts.applied and _commit_few(job, batch, plan, changed, counts.applied, index, marks):
        return None
    is_usual = not sums["empty"] and (sums["text_bytes"] or 0) <= MAX_TEXT_BYTES
    if counts.applied and is_usual and _commit_many(job, plan, changed, index, marks):
        return None
    if not counts.applied:
        frame, options = hudi.empty_frame(job.spark, plan.evolution.target), dict[str, str]()
    else:
        frame, options = _placed(changed, job.table)
    check_judged_now(job, plan)
    with job.phase("write"), sleep_inside_commit(job.spark) as failing:
        hudi.write_commit(frame, job.table, "upsert", {**index.write_options(job.table), **options, **failing}, marks)
    return None


def _partitions_touched(changed: DataFrame, table: TableSpec) -> list[str] | None:
    """Those from which rows go too. None: the table has none."""
    if table.partition_column is None:
        return None
    here = changed.where(~F.col(_IS_GONE)).select(F.col(table.partition_column).cast("string").alias("name"))
    names = here.union(changed.where(~F.col(_IS_NEW)).select(_HELD_IN)).distinct()
    return sorted(row["name"] for row in names.collect() if row["name"] is not None)


def _rows_after(
    job: Job, batch: staging.StagedBatch, target: Schema, keys: DataFrame, touched: list[str] | None
) -> DataFrame:
    """What the table will hold of the partitions `touched`, or all of it."""
    types = target.types
    stored = hudi.read_table(job.spark, job.table)
    kept, made = stored.select(*_in_columns_of(target, stored)), staged_rows(job, batch).select(*types)
    if touched is not None and job.table.partition_column is not None:
        column = job.table.partition_column
        kept, made = (rows.where(F.col(column).isin(*touched)) for rows in (kept, made))
    return kept.join(keys, list(job.table.record_key), "left_anti").select(*types).unionByName(made)


def _commit_few(
    job: Job,
    batch: staging.StagedBatch,
    plan: CommitPlan,
    changed: DataFrame,
    rows: int,
    index: Index,
    marks: Mapping[str, str],
) -> bool:
    """False: it is Spark's."""
    target = plan.evolution.target
    columns = columns_of_few(job, target, index, rows)
    if columns is None:
        return False
    with job.phase("judge"):
        placed = place_few(job, changed, target, batch.uri, is_gone=_IS_GONE)
    if placed is None:
        return False
    check_judged_now(job, plan)
    with job.phase("write"):
        direct_write.write_rows(job.spark, job.table, placed, columns, index.write_options(job.table), marks)
    return True


def _commit_many(job: Job, plan: CommitPlan, changed: DataFrame, index: Index, marks: Mapping[str, str]) -> bool:
    """False: only Hudi can write it."""
    target = plan.evolution.target
    columns = columns_of_arrow(job, target, index)
    if columns is None:
        return False
    with job.phase("judge"):
        rows = open_many_rows(
            job.table, _rows_of_files(changed, job.table, target), target, columns, index.write_options(job.table)
        )
    if rows is None:
        return False
    check_judged_now(job, plan)
    with job.phase("write"), write_path.folder_in_lake(job) as folder:
        rows.write(index.write_options(job.table), marks, folder)
    return True


def _has_empty_name(table: TableSpec) -> Column:
    """Hudi has a word of its own for an empty text in a key, and for one that names a partition."""
    if table.partition_column is None:
        return is_empty_key(table)
    return is_empty_key(table) | (F.col(table.partition_column).cast("string") == "")


def _text_bytes(target: Schema) -> Column:
    """Of the texts of a row."""
    long = [name for name, type_ in target.types.items() if type_ in ("string", "binary")]
    return reduce(Column.__add__, (F.coalesce(F.octet_length(name), F.lit(0)) for name in long), F.lit(0))


def _arrives() -> Column:
    return F.col(_IS_NEW) | F.col(_MOVES)


def _rows_of_files(changed: DataFrame, table: TableSpec, target: Schema) -> DataFrame:
    """As those of ManyRows: one that moves is removed from where it is, and new where it goes."""
    is_removed = F.col(_IS_GONE) | F.col(_MOVES)
    stored = [
        F.col("_hoodie_record_key").alias(KEY),
        F.col("_hoodie_partition_path").alias(PARTITION),
        stored_file_id().alias(FILE_ID),
        is_removed.alias(REMOVED),
    ]
    new = [
        record_key(table).alias(KEY),
        partition_path(table).alias(PARTITION),
        F.lit(None).cast("string").alias(FILE_ID),
        F.lit(False).alias(REMOVED),
    ]
    parts = [
        rows.select(*own, *target.names)
        for rows, own in ((changed.where(~F.col(_IS_NEW)), stored), (changed.where(_arrives()), new))
    ]
    return parts[0].unionByName(parts[1])


def _placed(rows: DataFrame, table: TableSpec) -> tuple[DataFrame, dict[str, str]]:
    """A prepped upsert: rows that go are marked by a value that no row has in one column."""
    column, value, marker = _mark(rows)
    flags = (_IS_GONE, _IS_NEW, _IS_SAME, _MOVES)
    removed = with_locations(rows.where(F.col(_IS_GONE) | F.col(_MOVES)).drop(*flags), table)
    removed = removed.withColumn(column, value)
    kept = rows.where(~F.col(_IS_GONE))
    placed = with_locations(
        kept.withColumns({name: F.when(~F.col(_MOVES), F.col(name)) for name in META_COLUMNS}).drop(*flags), table
    )
    return placed.unionByName(removed), PREPPED | {
        "hoodie.payload.delete.field": column,
        "hoodie.payload.delete.marker": marker,
        # As rows are written each tells Hudi's record index of itself, and a key that is removed last is gone from it. After the commit both are seen.
        "hoodie.metadata.streaming.write.enabled": "false",
    }


def _mark(rows: DataFrame) -> tuple[str, Column, str]:
    """A column, a value that no row has in it, and that value as Hudi writes it."""
    types = {name: type_ for name, type_ in rows.dtypes if not name.startswith(("_hoodie_", "_lakehub_"))}
    texts = [name for name, type_ in types.items() if type_ == "string"]
    if texts:
        marker = f"/{uuid4().hex}"
        return texts[0], F.lit(marker), marker
    for name, type_ in types.items():
        # Hudi has a date as its days.
        number = F.unix_date(name) if type_ == "date" else F.col(name)
        if type_ in _BITS and (free := _free_number(rows, number, _BITS[type_])) is not None:
            value = F.lit(free).cast("int" if type_ == "date" else type_)
            return name, F.date_from_unix_date(value) if type_ == "date" else value, str(free)
    raise JobError(
        f"The target has no column of texts, whole numbers or dates, by which rows to remove are marked: {types}. Nothing was written. Add one."
    )


def _free_number(rows: DataFrame, number: Column, bits: int) -> int | None:
    """Beyond all that the rows have. None: they have the least that there is, and the greatest."""
    ends = rows.agg(F.min(number).alias("least"), F.max(number).alias("greatest")).first()
    assert ends is not None
    if ends["least"] is None or ends["greatest"] < 2**bits - 1:
        return 0 if ends["least"] is None else int(ends["greatest"]) + 1
    return int(ends["least"]) - 1 if ends["least"] > -(2**bits) else None
