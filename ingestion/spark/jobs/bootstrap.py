"""The first load of a table: everything that the source has, each commit with the checkpoint that belongs to it.

A large table is loaded in several commits, each a range of keys that no other has: until the last, the checkpoint says that the load is unfinished and where it goes on, in
this process or another. A table that is loaded is not loaded twice, whatever became of the report. With `replace` everything is read again and takes the place of what is
there in one commit: readers see the old rows until then, and the timeline goes on (docs/ingestion.md says what becomes of history and incidents).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import reduce

from ingestion.domain.checkpoint import UnfinishedSnapshot, number_of_commit, unfinished_snapshot
from ingestion.domain.schema import Schema
from ingestion.spark.contract.report import PAUSED, UNFINISHED, JobReport
from ingestion.spark.etl import runs as pipeline_runs
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading import write_path
from ingestion.spark.loading.staging import StagedBatch
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import LakeCommit, Timeline
from lakehub.kernel import failpoint

logger = logging.getLogger(__name__)


def run(job: Job) -> JobReport:
    timeline = Timeline(job.table.uri)
    commits = _existing_commits(job, timeline)
    checkpoint = timeline.checkpoint() if commits else None
    unfinished = None if checkpoint is None else unfinished_snapshot(checkpoint.position)
    own_commits = job.own_commits(commits)
    if unfinished is None and own_commits:
        _require_index(job)
        return reduce(JobReport.followed_by, map(job.report_of, own_commits))
    if commits and job.spec.replace:
        return _replace(job)
    if commits and unfinished is None:
        return _report_of_loaded_table(job, timeline)
    job.go_on_after(_commits_made(unfinished, own_commits))
    return _load(job, unfinished, [job.report_of(commit) for commit in own_commits])


def _commits_made(unfinished: UnfinishedSnapshot | None, own_commits: Sequence[LakeCommit]) -> int:
    """Of the load, by all runs: the timeline does not have those that are archived. A number that is given twice would make a write
    that failed pass for the one that had the number before."""
    numbers = [number_of_commit(commit.run["run_id"]) for commit in own_commits]
    return max([0 if unfinished is None else unfinished.commits, *numbers])


def _load(job: Job, unfinished: UnfinishedSnapshot | None, reports: list[JobReport]) -> JobReport:
    """Range by range, as long as there is time and nobody pauses it. `reports`: of the commits that the run has made before."""
    if job.spec.pipeline is not None:
        return _settled(job, pipeline_runs.load(job))
    while True:
        report, unfinished = _load_range(job, unfinished)
        reports.append(report)
        if unfinished is None:
            return _settled(job, reduce(JobReport.followed_by, reports))
        failpoint.reach("ingestion.between_commits")
        if (status := _reason_to_stop(job)) is not None:
            return replace(reduce(JobReport.followed_by, reports), status=status, has_more=True)
        job.begin_next_commit()


def _reason_to_stop(job: Job) -> str | None:
    """Asked between two commits; the status of the report then."""
    if job.guidance.is_paused():
        return PAUSED
    return None if job.has_time_for_more else UNFINISHED


def _load_range(job: Job, before: UnfinishedSnapshot | None) -> tuple[JobReport, UnfinishedSnapshot | None]:
    """Its rows are inserted without a look at those that are stored: no other range has their keys."""
    source = job.open_source()
    after = None if before is None else before.after
    snapshot = source.snapshot(upto=job.spec.upto_at, after=after, limits=job.reading_limits)
    arriving, reading = write_path.begin_reading(job, snapshot)
    if before is not None:
        job.rows_before, job.rows_total = before.rows, before.total
    stored = Schema(()) if before is None else hudi.stored_schema(job.spark, job.table)
    evolution = write_path.plan_schema(arriving or source.schema(), job.table, stored)
    with write_path.staging_folder(job) as uri:
        batch = write_path.stage_reading(job, reading, evolution, uri)
        _refuse_rows_without_key(job, batch)
        rows = batch.read + (0 if before is None else before.rows)
        commits = number_of_commit(job.spec.run_id)
        unfinished = UnfinishedSnapshot(batch.position, rows, job.rows_total, commits) if batch.has_more else None
        position = write_path.position_of_load(job, batch.position) if unfinished is None else unfinished.position
        plan = write_path.CommitPlan("bulk_insert", evolution, has_stored_rows=False, position=position)
        return write_path.commit_batch(job, batch, plan), unfinished


def _replace(job: Job) -> JobReport:
    """In one commit, so that nobody reads a part of the new rows beside none of the old."""
    if job.spec.pipeline is not None:
        return _settled(job, pipeline_runs.load_again(job))
    source = job.open_source()
    arriving, reading = write_path.begin_reading(job, source.snapshot(upto=job.spec.upto_at))
    evolution = write_path.plan_schema(arriving or source.schema(), job.table, hudi.stored_schema(job.spark, job.table))
    with write_path.staging_folder(job) as uri:
        batch = write_path.stage_reading(job, reading, evolution, uri)
        _refuse_rows_without_key(job, batch)
        if not batch.rows and not reading.begins_empty:
            raise JobError(
                f"The source has no row that fits ({batch.read} read, {batch.errors} do not fit), so replacing would empty the table at {job.table.uri}; nothing was written. "
                "Look at the source; to empty the table on purpose, drop the copy."
            )
        _forget_deleted_rows(job)
        plan = write_path.CommitPlan(
            "insert_overwrite_table",
            evolution,
            has_stored_rows=False,
            position=write_path.position_of_load(job, batch.position),
        )
        return _settled(job, write_path.commit_batch(job, batch, plan))


def _settled(job: Job, report: JobReport) -> JobReport:
    """The table is whole now: its index may have something to do that is better done once."""
    index: Index = INDEXES.get(job.table.index)()
    with job.phase("index"):
        index.settle(job.spark, job.table, report.counts.applied)
    _let_go_of_chunks(job)
    return report


def _require_index(job: Job) -> None:
    """An attempt before has loaded all, and may have ended before its index was there."""
    index: Index = INDEXES.get(job.table.index)()
    index.prepare_look_up(job.spark, job.table, nullcontext)


def _let_go_of_chunks(job: Job) -> None:
    """Those of earlier loads, and where they are not kept those of this one. What cannot be removed now is removed when it is old."""
    folder, raw = job.raw_folder, job.spec.raw
    if folder is None or raw is None:
        return
    try:
        if raw.is_kept:
            folder.keep_newest()
        else:
            folder.remove()
    except OSError as problem:
        logger.warning("Raw chunks below %s are not removed: %s", raw.uri, problem)


def _refuse_rows_without_key(job: Job, batch: StagedBatch) -> None:
    """A key that is null in some rows is the wrong key: they would be left out now, and each time. A partition that is null
    is a finding, and all other partitions go on."""
    rows = {name: batch.nulls[name] for name in job.table.record_key if batch.nulls[name]}
    rows.pop(job.table.partition_column or "", None)
    if rows:
        counts = ", ".join(f"`{name}` in {count:,}" for name, count in rows.items())
        raise JobError(
            f"Of {batch.read:,} rows some have no record key ({', '.join(job.table.record_key)}); null is {counts}. Nothing was "
            "written. Fill it in at the source, or off-board the dataset and onboard it with a record key that is never null; "
            "a dataset that is only monitored may have such rows."
        )


def _forget_deleted_rows(job: Job) -> None:
    """Those of an earlier load: a source that was set up anew counts its changes anew, so what came later there may be less. Before the rows
    take their place: whoever dies in between begins again."""
    if job.table.has_metadata:
        hudi.remove_table(job.table.tombstone_uri)


def _existing_commits(job: Job, timeline: Timeline) -> tuple[LakeCommit, ...]:
    if not timeline.exists:
        hudi.check_location_free(job.table)
        _forget_deleted_rows(job)
        return ()
    commits = timeline.commits()
    if commits:
        hudi.check_table(job.table)
    else:
        # A first write died before it committed anything; its keys may have been others.
        hudi.remove_failed_first_write(job.table)
    return commits


def _report_of_loaded_table(job: Job, timeline: Timeline) -> JobReport:
    checkpoint = timeline.checkpoint()
    if checkpoint is None:
        raise JobError(
            f"The table at {job.table.uri} has commits, but none of them carries a checkpoint of ours. "
            "To take its place, bootstrap with `replace`; to keep it, name another URI."
        )
    return job.nothing_to_do_report(instant=checkpoint.instant, checkpoint=dict(checkpoint.position))
