"""Asking ingestion for a job as a person would, and waiting for it."""

from __future__ import annotations

from typing import Any

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import job_runs
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.play.narrator import ClaimFailed
from lakehub.demo.play.settle import wait_until_idle
from lakehub.demo.play.story_context import StoryContext

JOB_TIMEOUT_S = 240
END_STATES = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


def request_and_wait(stage: StoryContext, copy: DatasetCopy, kind: JobKind, params: dict[str, Any]) -> JobRun:
    """The run, when it has succeeded and what it touched has been taken in."""
    run = job_runs.request_run(copy, kind, params, asked_by="ines", now=stage.now())

    def ended() -> bool:
        run.refresh_from_db()
        return run.state in END_STATES

    stage.wait_until(f"the {kind} of {copy}", ended, within_s=JOB_TIMEOUT_S)
    if run.state != JobState.SUCCEEDED:
        raise ClaimFailed(f"{run}: {run.error}")
    wait_until_idle(stage)
    return run
