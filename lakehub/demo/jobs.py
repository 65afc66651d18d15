"""Asking ingestion for a job as a person would, and waiting for it."""

from __future__ import annotations

from typing import Any

from ingestion import runs
from ingestion.models import JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.settling import wait_until_quiet
from lakehub.demo.stage import Stage
from lakehub.demo.telling import Untrue

DONE_WITHIN_S = 240
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


def ask_and_wait(stage: Stage, copy: DatasetCopy, kind: JobKind, params: dict[str, Any]) -> JobRun:
    """The run, when it has succeeded and what it touched has been taken in."""
    run = runs.ask(copy, kind, params, asked_by="ines", now=stage.now())

    def ended() -> bool:
        run.refresh_from_db()
        return run.state in ENDED

    stage.wait_until(f"the {kind} of {copy}", ended, within_s=DONE_WITHIN_S)
    if run.state != JobState.SUCCEEDED:
        raise Untrue(f"{run}: {run.error}")
    wait_until_quiet(stage)
    return run
