"""The process that follows copies is killed halfway, as by a power cut: while its commit is on the way and nothing of it can be read."""

from __future__ import annotations

import time

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs.copy_lag import complete_upto
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.tables.unfinished_writes import pending_writes
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.play.story_context import StoryContext

POLL_INTERVAL_S = 0.01
RERUN_TIMEOUT_S = 240


def kill_during_commit(stage: StoryContext, copy: DatasetCopy) -> JobRun:
    """Wait for a commit of `copy` to begin, kill its follower, start it again; the run, when it has looked at everything."""
    timeline = Timeline(copy.uri)
    stage.wait_until(
        f"a commit of {copy} to begin", lambda: bool(pending_writes(timeline)), within_s=60, every_s=POLL_INTERVAL_S
    )
    stage.processes.kill_follower()
    began = time.monotonic()
    run = JobRun.objects.get(copy=copy, kind=JobKind.FOLLOW, state=JobState.RUNNING)
    looked_at, killed = complete_upto(copy), run.leased_by
    unfinished = ", ".join(pending_writes(timeline))
    stage.narrator.say(f"{copy}: Spark killed (-9) in its commit {unfinished or ', just after it'}")
    stage.processes.start_follower()
    stage.wait_until("following to go on", lambda: complete_upto(copy) != looked_at, within_s=RERUN_TIMEOUT_S)
    run.refresh_from_db()
    stage.narrator.check(
        f"its run {run.pk} goes on by itself in another process, after {time.monotonic() - began:.1f} s",
        run.leased_by not in ("", killed),
    )
    return run
