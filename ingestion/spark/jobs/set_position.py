"""Puts a copy elsewhere in its changelog: a commit without rows, whose checkpoint is the new place. The next job reads on from there.

It is one commit, so it is made once, whatever is killed meanwhile. A batch that was read from the old place finds the checkpoint moved, and is read again.
"""

from __future__ import annotations

from functools import partial

from ingestion.domain.log_moves import LogMove, plan_move
from ingestion.domain.schema import SchemaEvolution
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.secret_refs import resolved_options
from ingestion.spark.contract.spec import LogMoveSpec
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading import rereading, staging, write_path
from ingestion.spark.loading.rereading import ReadingStart
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline


def run(job: Job) -> JobReport:
    """Raises JobError, UnfitMove."""
    timeline = hudi.check_table(job.table)
    if not job.table.has_metadata:
        raise JobError(f"The rows of `{job.table.name}` come from no changelog: it has no place there.")
    if done := job.report_of_earlier_attempt(timeline):
        return done
    return rereading.read_until_written(job, partial(_move_and_commit, job, timeline))


def _move_and_commit(job: Job, timeline: Timeline) -> JobReport:
    start = rereading.note_reading_start(job, timeline)
    topic = EventTopic.from_options(resolved_options(job.source_spec, job.secrets))
    move = _move(job, start, topic)
    stored = start.checkpoint.position
    if move.position(stored) == stored:
        return job.nothing_to_do_report(instant=start.checkpoint.instant, checkpoint=dict(stored))
    plan = write_path.CommitPlan("upsert", SchemaEvolution(start.stored), True, move.position(stored), stored, start)
    with write_path.staging_folder(job) as uri:
        batch = staging.StagedBatch(uri, start.stored, notes={"log_move": move.as_json() | _times(topic, move)})
        return write_path.commit_batch(job, batch, plan)


def _times(topic: EventTopic, move: LogMove) -> dict[str, str | None]:
    """When the first message was logged that is read another time or not at all, and the one behind the last; None: there is none."""
    moved = [
        (name, part) for name, parts in move.after.items() for part in parts if move.before[name][part] != parts[part]
    ]
    edges = [sorted((move.before[name][part], move.after[name][part])) for name, part in moved]
    firsts = [topic.logged_at(name, part, first) for (name, part), (first, _) in zip(moved, edges, strict=True)]
    behind = [topic.logged_at(name, part, last) for (name, part), (_, last) in zip(moved, edges, strict=True)]
    known = [time for time in firsts if time is not None]
    upto = None if None in behind else max((time for time in behind if time is not None), default=None)
    return {"from_at": min(known).isoformat() if known else None, "upto_at": upto.isoformat() if upto else None}


def _move(job: Job, start: ReadingStart, topic: EventTopic) -> LogMove:
    """By what the log has now: since it was asked for, a job may have read on, and messages may have been removed."""
    wanted = job.spec.log_move
    assert isinstance(wanted, LogMoveSpec)  # the spec has checked it
    move = plan_move(start.checkpoint.position, wanted.offsets, topic.kept())
    if move.skipped and not wanted.may_skip:
        raise JobError(
            f"About {move.skipped:,} changes of `{job.table.name}` would be left out, and nobody has agreed to that. Nothing was written. "
            "Set the position again and agree, or set an earlier one."
        )
    return move
