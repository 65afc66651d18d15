"""What a person decides over rows that audits refused: to publish them all the same, or to leave the changes out. Fixed rows need no decision."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from ingestion.models import BatchOutcome, JobKind, JobRun, RefusedBatch
from ingestion.pipelines.refusals import end_batch
from ingestion.runs import job_runs
from lakehub.accounts.audit import audit_log
from lakehub.kernel.errors import Conflict, Refused

MAX_REASON_LENGTH = 2000


def publish(batch: RefusedBatch, *, reason: str, actor: str, now: datetime) -> JobRun:
    """Queues the same run without audits: it commits what the inputs hold then. Raises Refused without a reason, and Conflict where it is decided."""
    with transaction.atomic():
        decided = _decide(batch, "publish", reason, actor, now)
        params = {**decided.run.params, "unaudited": True}
        return job_runs.request_run(decided.copy, decided.kind, params, asked_by=actor, now=now, is_checked=True)


def drop(batch: RefusedBatch, *, reason: str, actor: str, now: datetime) -> JobRun | None:
    """Queues a run that goes past the changes; what they reach stays as it is until it changes again, or is backfilled. None: the refused run was to follow
    no changes, and is done with. Raises as `publish` does."""
    with transaction.atomic():
        decided = _decide(batch, "drop", reason, actor, now)
        if decided.kind != JobKind.INCREMENTAL:
            end_batch(decided, BatchOutcome.DROPPED, now=now)
            return None
        params: dict[str, Any] = {"skip_to": decided.position}
        return job_runs.request_run(decided.copy, decided.kind, params, asked_by=actor, now=now, is_checked=True)


def _decide(batch: RefusedBatch, what: str, reason: str, actor: str, now: datetime) -> RefusedBatch:
    reason = reason.strip()
    if not reason or len(reason) > MAX_REASON_LENGTH:
        raise Refused.for_fields(
            {"reason": f"Say why, in at most {MAX_REASON_LENGTH:,} characters: it is kept in the audit log."}
        )
    fresh = RefusedBatch.objects.select_for_update().filter(pk=batch.pk).select_related("copy__dataset", "run").first()
    if fresh is None or fresh.ended_at is not None:
        raise Conflict("The batch is over: a later run has passed, or somebody has decided. Nothing was changed.")
    fresh.decided_by, fresh.reason = actor, reason
    fresh.save(update_fields=["decided_by", "reason"])
    audit_log.record(actor, f"{what} refused batch", f"copy:{fresh.copy}", now=now, run=fresh.run_id, reason=reason)
    return fresh
