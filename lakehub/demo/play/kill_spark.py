"""A job is killed halfway, as by a power cut: while its commit is on the way and nothing of it can be read."""

from __future__ import annotations

import time

from ingestion.models import JobKind, JobRun, JobState
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.play.story_context import StoryContext

POLL_INTERVAL_S = 0.01
RERUN_TIMEOUT_S = 240


def kill_during_commit(stage: StoryContext, copy: DatasetCopy) -> JobRun:
    """Wait for a commit of `copy` to begin, kill Spark with its worker, start it again; the run, when it has succeeded."""
    timeline = Timeline(copy.uri)
    stage.wait_until(
        f"a commit of {copy} to begin", lambda: bool(timeline.pending()), within_s=60, every_s=POLL_INTERVAL_S
    )
    stage.processes.kill_spark()
    began = time.monotonic()
    (run,) = JobRun.objects.filter(copy=copy, kind=JobKind.INCREMENTAL, state=JobState.RUNNING)
    unfinished = ", ".join(timeline.pending())
    stage.narrator.say(f"{copy}: Spark killed (-9) in its commit {unfinished or ', just after it'}")
    stage.processes.start_spark()

    def done() -> bool:
        run.refresh_from_db()
        return run.state == JobState.SUCCEEDED

    stage.wait_until("the job to run again", done, within_s=RERUN_TIMEOUT_S)
    stage.narrator.check(
        f"it ran again by itself, attempt {run.attempt}, after {time.monotonic() - began:.1f} s", run.attempt > 1
    )
    return run
