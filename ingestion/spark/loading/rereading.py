"""A batch was read before its job was alone with the table: what came between is looked at, within the permit, before it is written."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from ingestion.domain.checkpoint import Checkpoint, Position, is_restamp_due
from ingestion.domain.schema import Schema, SchemaEvolution, evolve_schema, require_one_spelling
from ingestion.domain.write_races import TableCommit, why_read_again
from ingestion.spark.contract.report import JobReport
from ingestion.spark.indexes import Index
from ingestion.spark.job import Job, JobError, logger
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import LakeCommit, Timeline

_MAX_READINGS = 3


class ReadAgain(Exception):
    """What was read may not be written: the source has to be read again. The message says why."""


class JudgeAgain(JobError):
    """A commit was completed after the stored rows were read."""


@dataclass(frozen=True)
class ReadingStart:
    """The table when a job began to read its source: the newest completion, its columns, its checkpoint."""

    began: str
    stored: Schema
    checkpoint: Checkpoint


def note_reading_start(job: Job, timeline: Timeline) -> ReadingStart:
    """To be called before the source is read. Raises JobError where the table has no checkpoint."""
    began = timeline.latest_completion()
    return ReadingStart(began, hudi.stored_schema(job.spark, job.table), job.require_checkpoint(timeline))


def read_until_written(job: Job, read_and_commit: Callable[[], JobReport]) -> JobReport:
    """`read_and_commit` again for each ReadAgain, some times at most. Raises JobError then: nothing was written."""
    why = ""
    for _ in range(_MAX_READINGS):
        try:
            return read_and_commit()
        except ReadAgain as problem:
            why = str(problem)
            logger.info("The job %s reads its source again: %s", job.spec.run_id, why)
    raise JobError(
        f"The source was read {_MAX_READINGS} times, and each time the table at {job.table.uri} changed meanwhile so that the rows read could not be written: {why}. "
        "Nothing was written. Run the job again when fewer others write the table, or read fewer partitions at once."
    )


def table_commits(commits: tuple[LakeCommit, ...]) -> tuple[TableCommit, ...]:
    return tuple(
        TableCommit(
            commit.instant,
            commit.completed,
            commit.run.get("kind", ""),
            commit.operation,
            frozenset(name for name, change in commit.partitions.items() if change.deletes),
        )
        for commit in commits
    )


def check_judged(timeline: Timeline, judged_at: str) -> None:
    """Raises JudgeAgain where a commit was completed after `judged_at`, the newest completion before the stored rows were read.

    Our own jobs keep each other out; a writer of another kind, or of a lake that is not on files, does not ask for the permit.
    """
    latest = timeline.latest_completion()
    if latest != judged_at:
        raise JudgeAgain(
            f"Another writer has committed to {timeline.uri} at {latest}, again and again while the batch was compared with the table. "
            "Nothing was written. Run the job again when that writer has ended."
        )


def check_entries(job: Job, index: Index, new_keys: Collection[str] | DataFrame) -> None:
    """`new_keys`: without a row in the files that the index has named. Raises JudgeAgain where the table has rows of them: inserted, they would be there twice."""
    corrected = index.correct(job.spark, job.table, new_keys)
    if corrected:
        job.corrected_entries += corrected
        raise JudgeAgain(
            f"For {corrected:,} keys the index of `{job.table.name}` named files without them, again and again while the batch was compared with the table. "
            "Nothing was written. Rebuild the index."
        )


def check_reading(
    start: ReadingStart, timeline: Timeline, partitions: set[str] | None, position: Position | None
) -> None:
    """Raises ReadAgain. `position`: what the batch would set the checkpoint to; None: it leaves it as it is."""
    latest = timeline.checkpoint()
    if position is not None and (latest is None or latest.position != start.checkpoint.position):
        raise ReadAgain("another run has moved the checkpoint since the source was read")
    recent = timeline.commits_since(start.began)
    if why := why_read_again(start.began, table_commits(recent.commits), partitions, oldest=recent.oldest):
        raise ReadAgain(why)


def evolution_now(
    job: Job, start: ReadingStart, evolution: SchemaEvolution, staged: Schema, keys: tuple[str, ...]
) -> SchemaEvolution:
    """The evolution from the columns that the table has now. Raises ReadAgain where the rows were made to fit other types, and
    UnfitColumnName where another job has added a column of theirs in other cases."""
    stored = hudi.stored_schema(job.spark, job.table)
    if stored == start.stored:
        return evolution
    require_one_spelling(stored, staged, f"The source of `{job.table.name}`")
    planned = evolve_schema(stored, staged, fixed=keys)
    if any(planned.target.types[name] != type_ for name, type_ in staged.types.items()):
        raise ReadAgain("the table's columns have other types since the source was read")
    return replace(planned, conflicts=evolution.conflicts, refused=evolution.refused)


def checkpoint_to_stamp(checkpoint: Checkpoint | None) -> Position | None:
    """For a commit that says nothing of the source: the latest checkpoint where the archive would soon take it, none otherwise.

    To be asked within the permit: a checkpoint read before would set the follower back.
    """
    if checkpoint is None or not is_restamp_due(checkpoint, commits_kept=hudi.MIN_COMMITS_KEPT):
        return None
    return checkpoint.position
