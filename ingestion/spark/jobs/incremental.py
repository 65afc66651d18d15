"""What changed in the source since the checkpoint, upserted; the new checkpoint travels in the same commit.

A reading is bounded, so much that came at once is several commits. Where the run's time is half over it ends, and its report says that there is more.
It reads beside other jobs, and goes on from the checkpoint that it finds: where another run has moved that meanwhile, it reads again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial, reduce
from itertools import islice

from ingestion.domain.checkpoint import Position, holds_nothing_beyond, is_restamp_due, source_position
from ingestion.domain.schema import SchemaEvolution
from ingestion.sources import LogReading, SourceReading
from ingestion.spark.changes.accepted_columns import with_accepted
from ingestion.spark.changes.committing import commit_events
from ingestion.spark.changes.emptying import delete_emptied
from ingestion.spark.changes.renaming import fill_renamed
from ingestion.spark.contract.report import NOTHING_TO_DO, SUCCEEDED, JobReport
from ingestion.spark.etl import runs as pipeline_runs
from ingestion.spark.job import Job
from ingestion.spark.loading import rereading, staging, write_path
from ingestion.spark.loading.rereading import ReadingStart
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import LakeCommit, Timeline


def run(job: Job) -> JobReport:
    if job.spec.pipeline is not None:
        return pipeline_runs.follow(job)
    timeline = hudi.check_table(job.table)
    if own_commits := job.own_commits(_commits_to_search(job, timeline)):
        # It died after a commit: whether that was to be the last, the next run finds out.
        return replace(reduce(JobReport.followed_by, map(job.report_of, own_commits)), has_more=True)
    before, last = None, _run_batch(job, timeline, None)
    report = last
    while last.has_more and _goes_on(job, last) and not _stands_still(before, last):
        job.begin_next_commit()
        before, last = last, _run_batch(job, timeline, last)
        report = report.followed_by(last)
    return report


def _stands_still(before: JobReport | None, last: JobReport) -> bool:
    """What comes next cannot be read by this job, such as events of a schema that it was not told of: the next one is."""
    return last.status == NOTHING_TO_DO and before is not None and before.checkpoint == last.checkpoint


def _commits_to_search(job: Job, timeline: Timeline) -> Iterable[LakeCommit]:
    """Those among which an earlier attempt may have left its own.

    A followed table has thousands, and each of its batches has an id of its own, given to one launch. So where that launch is repeated,
    its commit is the one that carries the checkpoint; or another run has gone on from there, and so does this one.
    """
    if not job.spec.one_commit:
        return timeline.commits()
    return islice((commit for commit in timeline.newest_first() if commit.checkpoint_json), 1)


def _goes_on(job: Job, last: JobReport) -> bool:
    """What was read without anything to commit has its position in no commit: the next job would read it again."""
    return job.has_time_for_more and not (job.spec.one_commit and last.status == SUCCEEDED)


def _run_batch(job: Job, timeline: Timeline, before: JobReport | None) -> JobReport:
    return rereading.read_until_written(job, partial(_read_and_commit, job, timeline, before))


def _read_and_commit(job: Job, timeline: Timeline, before: JobReport | None) -> JobReport:
    start = rereading.note_reading_start(job, timeline)
    position = _position_to_read_from(start, before)
    changes = job.open_source().changes(source_position(position), upto=job.spec.upto_at, limits=job.reading_limits)
    if isinstance(changes, LogReading):
        if changes.emptied.position is not None:
            delete_emptied(job, start, changes)
        if changes.renames.due:
            fill_renamed(job, start, changes)
        return commit_events(job, start, changes) or _report_nothing_new(job, start, changes)
    arriving, reading = write_path.begin_reading(job, changes)
    if arriving is None:
        return _report_nothing_new(job, start, reading)
    evolution = write_path.plan_schema(arriving, job.table, start.stored)
    with write_path.staging_folder(job) as uri:
        batch = write_path.stage_reading(job, reading, evolution, uri)
        if reading.unchanged() or not batch.read:
            return _report_nothing_new(job, start, reading)
        stored = start.checkpoint.position
        after = write_path.position_of_changes(job, batch.position, stored, has_more=batch.has_more)
        inserts_new = job.table.append_only and holds_nothing_beyond(stored)
        plan = write_path.CommitPlan("upsert", evolution, True, after, stored, start, inserts_new=inserts_new)
        return replace(write_path.commit_batch(job, batch, plan), has_more=batch.has_more)


def _position_to_read_from(start: ReadingStart, before: JobReport | None) -> Position:
    """That of the checkpoint; or the one behind it to which the batch before has read, without anything to commit."""
    if before is None or before.status != NOTHING_TO_DO or before.instant != start.checkpoint.instant:
        return start.checkpoint.position
    return before.checkpoint or start.checkpoint.position


def _report_nothing_new(job: Job, start: ReadingStart, reading: SourceReading) -> JobReport:
    """No commit, unless other writers' commits are about to push the checkpoint into the archive, or the log goes on elsewhere without a message: what is
    between may be gone when the next one comes. Or the table gets columns that no row has yet."""
    checkpoint, evolution = start.checkpoint, SchemaEvolution(start.stored)
    if isinstance(reading, LogReading):
        evolution = with_accepted(evolution, reading.accepted, job.table)
    has_moved = isinstance(reading, LogReading) and not reading.has_more()
    goes_on_at = reading.position() if has_moved else checkpoint.position
    if goes_on_at != checkpoint.position or is_restamp_due(checkpoint, commits_kept=hudi.MIN_COMMITS_KEPT):
        plan = write_path.CommitPlan("upsert", evolution, True, goes_on_at, checkpoint.position, start)
        with write_path.staging_folder(job) as uri:
            return write_path.commit_batch(job, staging.StagedBatch(uri, evolution.target), plan)
    position = checkpoint.position
    if reading.has_more():
        position = write_path.position_of_changes(job, reading.position(), position, has_more=True)
    return job.nothing_to_do_report(instant=checkpoint.instant, checkpoint=dict(position), has_more=reading.has_more())
