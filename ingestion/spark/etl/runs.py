"""The jobs of a pipeline: the first load, what changed since, partitions anew. Each commit carries how far each input was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import Position
from ingestion.domain.pipelines.view_names import INPUTS
from ingestion.domain.schema import SchemaEvolution, evolve_schema
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec
from ingestion.spark.etl import reach, recomputing
from ingestion.spark.etl.audits import audit, is_audited
from ingestion.spark.etl.committing import check_nobody_else_wrote, replacing
from ingestion.spark.etl.input_changes import ChangedFiles, HistoryGone, bytes_of, changed_files, problem_of_input
from ingestion.spark.etl.overwriting import can_overwrite, has_one_path, overwriting
from ingestion.spark.etl.views import InputViews
from ingestion.spark.job import Job, JobError, logger
from ingestion.spark.loading import rereading, write_path
from ingestion.spark.loading.committing import commit_once, staged_rows
from ingestion.spark.loading.staging import StagedBatch
from ingestion.spark.loading.write_path import CommitPlan
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import DamagedTable, Timeline


def load(job: Job) -> JobReport:
    """All rows, in one commit, of a table that is not there yet."""
    plan = CommitPlan(
        "bulk_insert", SchemaEvolution(recomputing.target_schema(job)), has_stored_rows=False, position=None
    )
    return _commit_all_rows(job, plan, _commit_audited)


def load_again(job: Job, start: rereading.ReadingStart | None = None) -> JobReport:
    """All rows, in one commit, in place of those that are there. `start`: of a job that has not had the table to itself since."""
    plan = CommitPlan("insert_overwrite_table", _evolution(job), has_stored_rows=False, position=None, start=start)
    return _commit_all_rows(job, plan, _commit_audited if start is None else _commit_alone)


def _commit_all_rows(job: Job, plan: CommitPlan, commit: write_path.CommitAttempt) -> JobReport:
    with job.phase("read"):
        position = _position_now(job.pipeline_spec)  # before the rows: what is committed meanwhile is read again
    with write_path.staging_folder(job) as uri:
        batch = recomputing.stage(
            job, recomputing.selected_rows(InputViews.of_now(job.spark, job.pipeline_spec), job), uri
        )
        return write_path.commit_batch(job, batch, replace(plan, position=position), commit)


def _commit_alone(job: Job, batch: StagedBatch, plan: CommitPlan) -> RowCounts | None:
    check_nobody_else_wrote(job, plan)
    return _commit_audited(job, batch, plan)


def _commit_audited(job: Job, batch: StagedBatch, plan: CommitPlan) -> RowCounts | None:
    if is_audited(job):
        rows = staged_rows(job, batch).select(*plan.evolution.target.names)
        audit(job, batch, rows, _partitions_held(job, plan), plan.position)
    return commit_once(job, batch, plan)


def _partitions_held(job: Job, plan: CommitPlan) -> list[str] | None:
    """Those that the table has before all of its rows are replaced: one that gets none is judged as well."""
    column = job.table.partition_column
    if column is None or plan.operation != "insert_overwrite_table":
        return None
    held = hudi.read_table(job.spark, job.table).select(F.col(column).cast("string").alias("name"))
    return [row["name"] for row in held.where("name IS NOT NULL").distinct().collect()]


def follow(job: Job) -> JobReport:
    """What has changed in the inputs since the checkpoint."""
    timeline = hudi.check_table(job.table)
    if done := job.report_of_earlier_attempt(timeline):
        return done
    return rereading.read_until_written(job, partial(_follow_once, job, timeline))


def backfill(job: Job) -> JobReport:
    """The rows of some partitions from all that the inputs hold, whatever was followed."""
    timeline = hudi.check_table(job.table)
    if done := job.report_of_earlier_attempt(timeline):
        return done
    return rereading.read_until_written(job, partial(_backfill_once, job, timeline))


def _follow_once(job: Job, timeline: Timeline) -> JobReport:
    start = rereading.note_reading_start(job, timeline)
    before: Mapping[str, str] = start.checkpoint.position.get(INPUTS, {})
    if job.pipeline_spec.skip_to:
        return _skip(job, start, before)
    try:
        with job.phase("read"):
            changes = {each.name: _changes_of(each, before.get(each.name, "")) for each in job.pipeline_spec.inputs}
        if all(each.after == each.upto for each in changes.values()):
            return job.nothing_to_do_report(
                instant=start.checkpoint.instant, checkpoint=dict(start.checkpoint.position)
            )
        report = _commit_changes(job, start, changes)
        return replace(report, output={**report.output, "inputs": _read_facts(job.pipeline_spec, changes)})
    except HistoryGone as gone:
        logger.warning("The pipeline %s makes all rows anew: %s", job.table.name, gone)
        report = load_again(job, start)
        return replace(report, output={**report.output, "made_anew": str(gone)})


def _changes_of(each: PipelineInputSpec, after: str) -> ChangedFiles:
    """Raises HistoryGone, and JobError as `_damage_named` does."""
    with _damage_named(each):
        return changed_files(each.uri, after, is_followed=bool(each.affected_keys))


@contextmanager
def _damage_named(each: PipelineInputSpec) -> Iterator[None]:
    """Raises JobError where the timeline of the input is damaged. What its writer cannot restore, it makes anew: nothing of this pipeline is dropped for it."""
    try:
        yield
    except DamagedTable as damaged:
        raise JobError(
            f"The timeline of the input `{each.name}` at {each.uri} is damaged. {damaged.fault} Restore that file from a backup, "
            "or have the table made anew by whoever writes it: the next run goes on from there."
        ) from damaged


def _read_facts(pipeline: PipelineSpec, changes: Mapping[str, ChangedFiles]) -> dict[str, dict[str, int]]:
    """Of each input that was written: in how many commits, and the files that were compared for it."""
    return {
        each.name: {"commits": files.commits, "files": len(files.paths), "bytes": bytes_of(each.uri, files.paths)}
        for each in pipeline.inputs
        if (files := changes[each.name]).commits
    }


def _commit_changes(job: Job, start: rereading.ReadingStart, changes: Mapping[str, ChangedFiles]) -> JobReport:
    views = InputViews.of_now(job.spark, job.pipeline_spec)
    views.add_changes(changes)
    position = {INPUTS: {name: each.upto for name, each in changes.items()}}
    with write_path.staging_folder(job) as uri:
        with job.phase("compute"):
            can = can_overwrite(job, _evolution(job).target)
            partitions = reach.affected_partitions(views, changes, job) if can else None
        if partitions and all(map(has_one_path, map(str, partitions))):
            return _overwrite(job, start, views, partitions, uri, position)
        with job.phase("compute"):
            keys = reach.affected_keys(views, changes, job)
        return _replace_keys(job, start, views, keys, uri, position)


def _overwrite(
    job: Job,
    start: rereading.ReadingStart,
    views: InputViews,
    values: Sequence[Any],
    uri: str,
    position: Position | None,
) -> JobReport:
    """Partitions made anew as a whole."""
    batch = recomputing.stage(job, recomputing.rows_of_partitions(views, values, job), uri)
    before = position and start.checkpoint.position
    plan = CommitPlan("insert_overwrite", _evolution(job), True, position, before, start)
    return write_path.commit_batch(job, batch, plan, overwriting([str(value) for value in values]))


def _skip(job: Job, start: rereading.ReadingStart, before: Mapping[str, str]) -> JobReport:
    """Whatever changed up to a position is left out, and nothing that was followed already is followed again."""
    skip_to = job.pipeline_spec.skip_to
    position = {
        each.name: max(before.get(each.name, ""), skip_to.get(each.name, "")) for each in job.pipeline_spec.inputs
    }
    with write_path.staging_folder(job) as uri:
        views = InputViews.of_now(job.spark, job.pipeline_spec)
        return _replace_keys(job, start, views, None, uri, {INPUTS: position})


def _backfill_once(job: Job, timeline: Timeline) -> JobReport:
    start, column = rereading.note_reading_start(job, timeline), job.table.partition_column
    if column is None:
        raise JobError(f"`{job.table.name}` has no partitions: bootstrap it with `replace` to make all of it anew.")
    views = InputViews.of_now(job.spark, job.pipeline_spec)
    values = reach.values_named(job.spec.partitions, job) if can_overwrite(job, _evolution(job).target) else []
    if values and all(map(has_one_path, map(str, values))):
        with write_path.staging_folder(job) as uri:
            return _overwrite(job, start, views, values, uri, position=None)
    made, stored = recomputing.selected_rows(views, job), hudi.read_table(views.session, job.table)
    names, types = job.table.record_key, recomputing.target_schema(job).types
    parts = [
        rows.where(F.col(column).isin(*job.spec.partitions)).select(
            *(F.col(name).cast(types[name]).alias(name) for name in names)
        )
        for rows in (made, stored)
    ]
    with write_path.staging_folder(job) as uri:
        keys = parts[0].union(parts[1]).distinct()
        return _replace_keys(job, start, views, keys, uri, position=None)


def _replace_keys(
    job: Job,
    start: rereading.ReadingStart,
    views: InputViews,
    keys: DataFrame | None,
    uri: str,
    position: Position | None,
) -> JobReport:
    names, types = job.table.record_key, recomputing.target_schema(job).types
    with job.phase("compute"):
        if keys is None:
            keys = views.session.createDataFrame([], ", ".join(f"`{name}` {types[name]}" for name in names))
        keys.where(" AND ".join(f"`{name}` IS NOT NULL" for name in names)).write.parquet(f"{uri}/keys")
        schema = ", ".join(f"`{name}` {types[name]}" for name in names)
        keys, own = (session.read.schema(schema).parquet(f"{uri}/keys") for session in (views.session, job.spark))
        facts = recomputing.KeyFacts.of(keys)
    batch = recomputing.stage(job, recomputing.rows_of_keys(views, keys, facts, job), uri)
    plan = CommitPlan("upsert", _evolution(job), True, position, position and start.checkpoint.position, start)
    if facts.total and not batch.rows:  # of rows that go, the write path sees none
        write_path.prepare_look_up(job)
    return write_path.commit_batch(job, batch, plan, replacing(own, facts))


def _evolution(job: Job) -> SchemaEvolution:
    return evolve_schema(
        hudi.stored_schema(job.spark, job.table),
        recomputing.target_schema(job),
        fixed=write_path.key_columns(job.table),
    )


def _position_now(pipeline: PipelineSpec) -> Position:
    """Raises JobError where an input is no table yet, or one that cannot be followed."""
    for each in pipeline.inputs:
        with _damage_named(each):
            problem = problem_of_input(each.uri)
        if problem:
            raise JobError(f"The input `{each.name}` at {each.uri} {problem}.")
    completions = {each.name: Timeline(each.uri).latest_completion() for each in pipeline.inputs}
    if empty := [each for each in pipeline.inputs if not completions[each.name]]:
        raise JobError(f"The input `{empty[0].name}` at {empty[0].uri} has no commit yet. Bootstrap it first.")
    return {INPUTS: completions}
