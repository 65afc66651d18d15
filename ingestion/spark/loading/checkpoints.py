"""The checkpoint that a job starts from, or an error that says how to get one."""

from __future__ import annotations

from ingestion.domain.checkpoint import Checkpoint
from ingestion.spark.job import JobError
from ingestion.spark.tables.timeline import Timeline


def require_checkpoint(timeline: Timeline) -> Checkpoint:
    checkpoint = timeline.checkpoint()
    if checkpoint is None:
        raise JobError(
            f"The table at {timeline.uri} has no commit that carries a checkpoint: it was not loaded by a bootstrap, or that one is too long ago. "
            "Bootstrap it (with `replace` where it has rows)."
        )
    return checkpoint
