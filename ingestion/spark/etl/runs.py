"""The jobs of a pipeline: the first load, what changed since, partitions recomputed. Each commit carries how far each input was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import Position
from ingestion.domain.pipelines.view_names import INPUTS, READ_AT, VERSION
from ingestion.domain.schema import SchemaEvolution, evolve_schema
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec
from ingestion.spark.etl import reach, recomputing
from ingestion.spark.etl.audits import audit, is_audited
from ingestion.spark.etl.checks.input_types import TypesChanged, check_types
from ingestion.spark.etl.committing import check_nobody_else_wrote, replacing
from ingestion.spark.etl.input_changes import ChangedFiles, HistoryGone, bytes_of, changed_files
from ingestion.spark.etl.overwriting import can_overwrite, has_one_path, overwriting
from ingestion.spark.etl.views import InputViews, damage_named
from ingestion.spark.job import Job, JobError, logger
from ingestion.spark.loading import rereading, write_path
from ingestion.spark.loading.committing import commit_once, staged_rows
from ingestion.spark.loading.staging import StagedBatch
from ingestion.spark.loading.write_path import CommitPlan
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline

_MAX_READ_AT = 1_000
"""Of one input, in one checkpoint."""


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
        views = InputViews.of_now(job.spark, job.pipeline_spec)
    with write_path.staging_folder(job) as uri:
        batch = recomputing.stage(job, recomputing.selected_rows(views, job), uri)
        position = _position_of(job.pipeline_spec, views.completions)
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
    if job.pipeline_spec.skip_to:
        return _skip(job, start)
    if changed := _version_changes(job, start):
        return _make_anew(job, start, changed)
    latest = {each.name: Timeline(each.uri).latest_completion() for each in job.pipeline_spec.inputs}
    if _are_where_they_were(job.pipeline_spec, start.checkpoint.position, latest):
        return _nothing_to_do(job, start, latest)
    try:
        with job.phase("read"):
            views, changes = _open(job, start)
        report = _commit_changes(job, start, views, changes)
        return replace(report, output={**report.output, "inputs": _read_facts(job.pipeline_spec, changes)})
    except (HistoryGone, TypesChanged) as why:
        return _make_anew(job, start, str(why))


def _make_anew(job: Job, start: rereading.ReadingStart, why: str) -> JobReport:
    logger.warning("The pipeline %s recomputes all rows: %s", job.table.name, why)
    report = load_again(job, start)
    return replace(report, output={**report.output, "made_anew": why})


def _version_changes(job: Job, start: rereading.ReadingStart) -> str:
    """Why the rows that are stored may be others by the pipeline as it is now; empty: they are not."""
    version = job.pipeline_spec.version
    return "" if version is None else version.changes_since(start.checkpoint.position.get(VERSION))


def _are_where_they_were(pipeline: PipelineSpec, position: Position, latest: Mapping[str, str]) -> bool:
    """The inputs that are followed: others change no row by themselves. Where backfills have read other commits of them there is something to follow, even if that is that these
    were taken back. `latest`: completions by name."""
    before = position.get(INPUTS, {})
    followed = [each.name for each in pipeline.inputs if each.affected_keys]
    return not position.get(READ_AT) and all(before.get(name) == latest[name] for name in followed)


def _nothing_to_do(job: Job, start: rereading.ReadingStart, latest: Mapping[str, str]) -> JobReport:
    """What was replaced in an input that is not followed need not be kept for the pipeline, so its place is reported as that of now, although no commit carries it."""
    position = start.checkpoint.position
    inputs = {**position.get(INPUTS, {}), **{name: completion for name, completion in latest.items() if completion}}
    return job.nothing_to_do_report(instant=start.checkpoint.instant, checkpoint={**position, INPUTS: inputs})


def _open(job: Job, start: rereading.ReadingStart) -> tuple[InputViews, dict[str, ChangedFiles]]:
    """The inputs, and what has changed in them. That is asked first: of a damaged timeline Spark does not say which file it is. Raises as `_changes_of` does."""
    inputs = job.pipeline_spec.inputs
    changes = {each.name: _changes_of(each, Timeline(each.uri).latest_completion(), start, job) for each in inputs}
    views = InputViews.of_now(job.spark, job.pipeline_spec)
    moved = [each for each in inputs if views.completions[each.name] != changes[each.name].upto]
    return views, changes | {each.name: _changes_of(each, views.completions[each.name], start, job) for each in moved}


def _changes_of(each: PipelineInputSpec, upto: str, start: rereading.ReadingStart, job: Job) -> ChangedFiles:
    """Raises HistoryGone, TypesChanged, and JobError as `damage_named` does."""
    position = start.checkpoint.position
    with damage_named(each):
        files = changed_files(
            each.uri,
            position.get(INPUTS, {}).get(each.name, ""),
            upto,
            also_read_at=position.get(READ_AT, {}).get(each.name, ()),
            is_followed=bool(each.affected_keys),
        )
        if each.affected_keys and files.commits:
            check_types(each.name, each.uri, (files.after, files.upto), job.pipeline_spec.transform)
    return files


def _read_facts(pipeline: PipelineSpec, changes: Mapping[str, ChangedFiles]) -> dict[str, dict[str, int]]:
    """Of each input that was written: in how many commits, and the files that were compared for it."""
    return {
        each.name: {"commits": files.commits, "files": len(files.paths), "bytes": bytes_of(each.uri, files.paths)}
        for each in pipeline.inputs
        if (files := changes[each.name]).commits
    }


def _commit_changes(
    job: Job, start: rereading.ReadingStart, views: InputViews, changes: Mapping[str, ChangedFiles]
) -> JobReport:
    views.add_changes(changes)
    position = _position_of(job.pipeline_spec, views.completions)
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
    """Partitions recomputed as a whole."""
    batch = recomputing.stage(job, recomputing.rows_of_partitions(views, values, job), uri)
    plan = CommitPlan("insert_overwrite", _evolution(job), True, position, start=start)
    return write_path.commit_batch(job, batch, plan, overwriting([str(value) for value in values]))


def _skip(job: Job, start: rereading.ReadingStart) -> JobReport:
    """Whatever changed up to a position is left out, and nothing that was followed already is followed again."""
    stored, skip_to = start.checkpoint.position, job.pipeline_spec.skip_to
    before = stored.get(INPUTS, {})
    position = {
        each.name: max(before.get(each.name, ""), skip_to.get(each.name, "")) for each in job.pipeline_spec.inputs
    }
    read_at = {
        name: later
        for name, completions in stored.get(READ_AT, {}).items()
        if (later := [completion for completion in completions if completion > position.get(name, "")])
    }
    # The rows stay, and so does the version that made them.
    kept = {name: note for name, note in {VERSION: stored.get(VERSION), READ_AT: read_at}.items() if note}
    with write_path.staging_folder(job) as uri:
        views = InputViews.of_now(job.spark, job.pipeline_spec)
        return _replace_keys(job, start, views, None, uri, {**_position_of(job.pipeline_spec, position), **kept})


def _backfill_once(job: Job, timeline: Timeline) -> JobReport:
    start, column = rereading.note_reading_start(job, timeline), job.table.partition_column
    if column is None:
        raise JobError(f"`{job.table.name}` has no partitions: bootstrap it with `replace` to recompute all of it.")
    if changed := _version_changes(job, start):
        raise JobError(
            f"Single partitions of `{job.table.name}` cannot be recomputed: {changed}, so they would not match the other partitions. Nothing was written. "
            "Let an incremental run recompute all rows, or bootstrap it with `replace`; then ask for the backfill again."
        )
    views = InputViews.of_now(job.spark, job.pipeline_spec)
    position = _position_after_backfill(job, start, views)
    values = reach.values_named(job.spec.partitions, job) if can_overwrite(job, _evolution(job).target) else []
    if values and all(map(has_one_path, map(str, values))):
        with write_path.staging_folder(job) as uri:
            return _overwrite(job, start, views, values, uri, position)
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
        return _replace_keys(job, start, views, keys, uri, position)


def _position_after_backfill(job: Job, start: rereading.ReadingStart, views: InputViews) -> Position | None:
    """Followed inputs go on from where they were, and what they held when they were read here counts as rows of before: a row of theirs may be another one, or
    gone, by the next run, and what was made of it has to be found then. None: it is what was followed. Raises JobError where they were read at too many."""
    before: Position = start.checkpoint.position
    read = {name: set(completions) for name, completions in before.get(READ_AT, {}).items()}
    for name in (each.name for each in views.pipeline.inputs if each.affected_keys):
        if (completion := views.completions[name]) != before.get(INPUTS, {}).get(name):
            read.setdefault(name, set()).add(completion)
    if not read:
        return None
    if max(map(len, read.values())) > _MAX_READ_AT:
        raise JobError(
            f"Backfills have read the inputs of `{job.table.name}` at {_MAX_READ_AT:,} commits that its runs have not followed yet. Let a run follow them first."
        )
    return {**before, READ_AT: {name: sorted(completions) for name, completions in read.items()}}


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
        keys.write.parquet(f"{uri}/keys")
        schema = ", ".join(f"`{name}` {types[name]}" for name in names)
        keys, own = (session.read.schema(schema).parquet(f"{uri}/keys") for session in (views.session, job.spark))
        facts = recomputing.KeyFacts.of(keys)
    batch = recomputing.stage(job, recomputing.rows_of_keys(views, keys, facts, job), uri)
    before = start.checkpoint.position
    # Rows that are as they were need no commit, wherever they were read: only inputs that were followed further do.
    is_further = position is not None and position[INPUTS] != before.get(INPUTS)
    plan = CommitPlan("upsert", _evolution(job), True, position, before if is_further else position, start)
    if facts.total and not batch.rows:  # of rows that go, the write path sees none
        write_path.prepare_look_up(job)
    return write_path.commit_batch(job, batch, plan, replacing(own.dropna(), facts))


def _evolution(job: Job) -> SchemaEvolution:
    return evolve_schema(
        hudi.stored_schema(job.spark, job.table),
        recomputing.target_schema(job),
        fixed=write_path.key_columns(job.table),
    )


def _position_of(pipeline: PipelineSpec, completions: Mapping[str, str]) -> Position:
    """With which version of the pipeline all rows agree then."""
    version = {} if pipeline.version is None else {VERSION: pipeline.version.note}
    return {INPUTS: completions, **version}
