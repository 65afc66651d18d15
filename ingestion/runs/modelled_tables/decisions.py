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


def publish(batch: RefusedBatch, *, seen: int, reason: str, actor: str, now: datetime) -> JobRun:
    """Queues the same run without audits: it commits what the inputs hold then. `seen`: the run whose refusal the person was shown.

    Raises Refused without a reason, and Conflict where the batch is over, decided, or another one by now."""
    with transaction.atomic():
        decided = _decide(batch, "publish", seen, reason, actor, now)
        return _request(decided, {**_asked(decided.run), "unaudited": True}, actor, now)


def drop(batch: RefusedBatch, *, seen: int, reason: str, actor: str, now: datetime) -> JobRun | None:
    """Queues a run that goes past the changes; what they reach stays as it is until it changes again, or is backfilled. None: the refused run was to follow
    no changes, and is done with. Raises as `publish` does."""
    with transaction.atomic():
        decided = _decide(batch, "drop", seen, reason, actor, now)
        if decided.kind == JobKind.INCREMENTAL:
            return _request(decided, {"skip_to": decided.position}, actor, now)
        end_batch(decided, BatchOutcome.DROPPED, now=now)
        return None


def is_decided(batch: RefusedBatch) -> bool:
    """A run is about to do what was decided, or does it."""
    run = batch.decision_run
    return run is not None and run.state in job_runs.ACTIVE


def _asked(run: JobRun) -> dict[str, Any]:
    return {name: value for name, value in run.params.items() if name != "skip_to"}


def _request(batch: RefusedBatch, params: dict[str, Any], actor: str, now: datetime) -> JobRun:
    run = job_runs.request_run(batch.copy, batch.kind, params, asked_by=actor, now=now, is_checked=True)
    batch.decision_run = run
    batch.save(update_fields=["decision_run"])
    return run


def _decide(batch: RefusedBatch, what: str, seen: int, reason: str, actor: str, now: datetime) -> RefusedBatch:
    reason = reason.strip()
    if not reason or len(reason) > MAX_REASON_LENGTH:
        raise Refused.for_fields(
            {"reason": f"Say why, in at most {MAX_REASON_LENGTH:,} characters: it is kept in the audit log."}
        )
    fresh = RefusedBatch.objects.select_for_update().filter(pk=batch.pk).first()
    if fresh is None or fresh.ended_at is not None:
        raise Conflict("The batch is over: a later run has passed, or somebody has decided. Nothing was changed.")
    if fresh.run_id != seen:
        raise Conflict(
            f"Run {fresh.run_id} was refused since: look at what it has made, and decide then. Nothing was changed."
        )
    if is_decided(fresh):
        raise Conflict(f"{fresh.decided_by} has decided, and run {fresh.decision_run_id} does it. Nothing was changed.")
    fresh.decided_by, fresh.reason = actor, reason
    fresh.save(update_fields=["decided_by", "reason"])
    audit_log.record(actor, f"{what} refused batch", f"copy:{fresh.copy}", now=now, run=fresh.run_id, reason=reason)
    return fresh
