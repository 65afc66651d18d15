"""A run whose inputs the gate blocks waits; it goes on by itself when an incident of an input resolves, or when asking again
is allowed, or by the word of an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from ingestion import runs
from ingestion.inputs import inputs_of
from ingestion.models import BlockedInput, JobRun, JobState
from ingestion.ports import CONSUMER, InputAnswer, InputGate
from lakehub.accounts import audit
from lakehub.kernel.errors import Conflict, Refused
from lakehub.waking import wake

ASKS_AGAIN_AFTER = timedelta(minutes=5)
"""Where the gate names no time."""
AT_MOST = timedelta(minutes=15)
"""Asking costs little, and not everything that unblocks an input is an incident that resolves."""


def hold(run: JobRun, worker: str, gate: InputGate, *, now: datetime) -> bool:
    """Asks about all inputs of a claimed run at once. Where one is blocked the run waits, and is not `worker`'s any more.

    Raises Refused where the feed names an input that is not there.
    """
    if run.regardless_by:
        return False
    blocked = _blocked(run, gate, now)
    if not blocked:
        _let_go(run)
        return False
    _wait(run, worker, blocked, now=now)
    if not _blocked(run, gate, now):
        # What resolved while this was written down found no run that waits.
        JobRun.objects.filter(pk=run.pk, state=JobState.WAITING).update(due_at=now)
    return True


def look_again(dataset_id: int, *, now: datetime) -> int:
    """Something of the dataset is good again: the runs that wait for it are due at once. How many. In the caller's transaction."""
    waiting = JobRun.objects.filter(state=JobState.WAITING, blocked_by__copy__dataset=dataset_id, due_at__gt=now)
    found = JobRun.objects.filter(pk__in=waiting.values("pk"), state=JobState.WAITING).update(due_at=now)
    if found:
        wake("ingestion.tasks.run_job")
    return found


def start_regardless(run: JobRun, *, why: str, actor: str, now: datetime) -> JobRun:
    """Starts a run that waits without asking the gate. Raises Refused, Conflict."""
    if not why.strip():
        raise Refused.because({"why": "Say why it may read what is blocked: whoever looks at the data will ask."})
    with transaction.atomic():
        waiting = JobRun.objects.filter(pk=run.pk, state=JobState.WAITING)
        if not waiting.update(state=JobState.QUEUED, due_at=now, regardless_by=actor, regardless_why=why, error=""):
            run.refresh_from_db()
            raise Conflict(
                f"Run {run.pk} of {run.copy} is {run.state}: it does not wait any more. Nothing was changed."
            )
        blocked = [
            f"{one.copy}: {one.reason}" for one in run.blocked_by.select_related("copy__dataset", "copy__data_center")
        ]
        audit.record(actor, "start regardless", f"run:{run.pk}", now=now, why=why, blocked=blocked)
        wake("ingestion.tasks.run_job")
    run.refresh_from_db(fields=["state", "due_at", "regardless_by", "regardless_why", "error"])
    return run


def _blocked(run: JobRun, gate: InputGate, now: datetime) -> list[InputAnswer]:
    wanted = inputs_of(run, now=now)
    answers = gate(wanted, consumer=CONSUMER, request_id=str(run.key), now=now) if wanted else ()
    return [answer for answer in answers if not answer.allowed]


def _wait(run: JobRun, worker: str, blocked: Sequence[InputAnswer], *, now: datetime) -> None:
    retry_at = min([answer.retry_at for answer in blocked if answer.retry_at] or [now + ASKS_AGAIN_AFTER])
    with transaction.atomic():
        _let_go(run)
        if runs.wait(run, worker, to=min(retry_at, now + AT_MOST), why=_told(blocked), now=now):
            BlockedInput.objects.bulk_create(_row(run, answer) for answer in blocked)


def _row(run: JobRun, answer: InputAnswer) -> BlockedInput:
    over = answer.wanted.over
    return BlockedInput(
        run=run,
        copy_id=answer.wanted.copy,
        start=over.start,
        end=over.end,
        verdict=answer.verdict,
        reason=answer.reason,
        incidents=list(answer.incidents),
        retry_at=answer.retry_at,
    )


def _let_go(run: JobRun) -> None:
    BlockedInput.objects.filter(run=run).delete()


def _told(blocked: Sequence[InputAnswer]) -> str:
    return "waits for " + "; ".join(f"{answer.wanted}: {answer.reason}" for answer in blocked)
