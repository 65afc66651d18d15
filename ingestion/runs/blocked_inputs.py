"""A run whose inputs the gate blocks waits; it goes on by itself when an incident of an input resolves, or when asking again
is allowed, or by the word of an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from ingestion.models import BlockedInput, JobRun, JobState
from ingestion.ports import GATE_CONSUMER, InputDecision, InputGate
from ingestion.runs import job_runs
from ingestion.runs.inputs import inputs_of_run
from lakehub.accounts.audit import audit_log
from lakehub.kernel.errors import Conflict, Refused
from lakehub.processes.task_wakeup import wake_task

DEFAULT_RECHECK_AFTER = timedelta(minutes=5)
"""Where the gate names no time."""
MAX_RECHECK_AFTER = timedelta(minutes=15)
"""Asking costs little, and not everything that unblocks an input is an incident that resolves."""


def wait_if_blocked(run: JobRun, worker: str, gate: InputGate, *, now: datetime) -> bool:
    """Asks about all inputs of a claimed run at once. Where one is blocked the run waits, and is not `worker`'s any more.

    Raises Refused where the feed names an input that is not there.
    """
    if run.regardless_by:
        return False
    blocked = _ask_gate(run, gate, now)
    if not blocked:
        if _delete_blocked_inputs(run):
            JobRun.objects.filter(pk=run.pk).update(waits_since=None)
            run.waits_since = None
        return False
    _mark_waiting(run, worker, blocked, now=now)
    if not _ask_gate(run, gate, now):
        # What resolved while this was written down found no run that waits.
        JobRun.objects.filter(pk=run.pk, state=JobState.WAITING).update(due_at=now)
    return True


def wake_waiting_runs(dataset_id: int, *, now: datetime) -> int:
    """Something of the dataset is good again: the runs that wait for it are due at once. How many. In the caller's transaction."""
    waiting = JobRun.objects.filter(state=JobState.WAITING, blocked_by__copy__dataset=dataset_id, due_at__gt=now)
    woken = JobRun.objects.filter(pk__in=waiting.values("pk"), state=JobState.WAITING).update(due_at=now)
    if woken:
        wake_task("ingestion.tasks.run_job")
    return woken


def start_regardless(run: JobRun, *, why: str, actor: str, now: datetime) -> JobRun:
    """Starts a run that waits without asking the gate. Raises Refused, Conflict."""
    if not why.strip():
        raise Refused.for_fields({"why": "Say why it may read what is blocked: whoever looks at the data will ask."})
    with transaction.atomic():
        waiting = JobRun.objects.filter(pk=run.pk, state=JobState.WAITING)
        if not waiting.update(
            state=JobState.QUEUED, due_at=now, regardless_by=actor, regardless_why=why, error="", waits_since=None
        ):
            run.refresh_from_db()
            raise Conflict(
                f"Run {run.pk} of {run.copy} is {run.state}: it does not wait any more. Nothing was changed."
            )
        blocked = [
            f"{blocked_input.copy}: {blocked_input.reason}"
            for blocked_input in run.blocked_by.select_related("copy__dataset", "copy__data_center")
        ]
        audit_log.record(actor, "start regardless", f"run:{run.pk}", now=now, why=why, blocked=blocked)
        wake_task("ingestion.tasks.run_job")
    run.refresh_from_db(fields=["state", "due_at", "regardless_by", "regardless_why", "error", "waits_since"])
    return run


def _ask_gate(run: JobRun, gate: InputGate, now: datetime) -> list[InputDecision]:
    inputs = inputs_of_run(run, now=now)
    answers = gate(inputs, consumer=GATE_CONSUMER, request_id=str(run.key), now=now) if inputs else ()
    return [answer for answer in answers if not answer.allowed]


def _mark_waiting(run: JobRun, worker: str, blocked: Sequence[InputDecision], *, now: datetime) -> None:
    retry_at = min([answer.retry_at for answer in blocked if answer.retry_at] or [now + DEFAULT_RECHECK_AFTER])
    with transaction.atomic():
        _delete_blocked_inputs(run)
        if job_runs.mark_waiting(
            run, worker, to=min(retry_at, now + MAX_RECHECK_AFTER), why=_waiting_reason(blocked), now=now
        ):
            BlockedInput.objects.bulk_create(_blocked_input(run, answer) for answer in blocked)


def _blocked_input(run: JobRun, answer: InputDecision) -> BlockedInput:
    over = answer.job_input.data_range
    return BlockedInput(
        run=run,
        copy_id=answer.job_input.copy,
        start=over.start,
        end=over.end,
        verdict=answer.verdict,
        reason=answer.reason,
        incidents=list(answer.incidents),
        retry_at=answer.retry_at,
    )


def _delete_blocked_inputs(run: JobRun) -> bool:
    """Whether there were any."""
    deleted, _ = BlockedInput.objects.filter(run=run).delete()
    return bool(deleted)


def _waiting_reason(blocked: Sequence[InputDecision]) -> str:
    return "waits for " + "; ".join(f"{answer.job_input}: {answer.reason}" for answer in blocked)
