"""Snooze: the messages of an incident are held until a time, until it gets worse, or for so many more failures.

Its tests go on, its verdict and the gate's answer stay. It ends with the incident, and without a time after MAX_SNOOZE
whatever happens, so that nothing is silent for ever.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from incidents.models import Incident, Message, MessageState, Span
from incidents.notifications import outbox
from incidents.record import transitions
from incidents.record.snooze import Snooze
from lakehub.kernel.outcome import Outcome
from quality.models import Result


def end_snooze(
    incident: Incident, why: str, *, now: datetime, actor: str = "", expected_revision: int | None = None
) -> None:
    """Ends the snooze; what it held is looked at again at once. Call it in a transaction."""
    transitions.update_incident(incident, Snooze().fields(now=now), expected_revision=expected_revision)
    transitions.add_event(incident, "snooze_ended", now=now, actor=actor, text=why)
    recheck_messages(incident, now=now)


def recheck_messages(incident: Incident, *, now: datetime) -> None:
    held_messages = Message.objects.filter(incident=incident, state=MessageState.HELD, due_at__gt=now)
    held_messages.update(due_at=now)


def failures_since(incident: Incident, since: datetime) -> int:
    """How many runs of what is failing have failed since."""
    units = Span.objects.filter(incident=incident, ended_at=None).values("unit")
    return Result.objects.filter(unit__in=units, outcome=Outcome.FAIL, read_at__gt=since).count()


def end_due_snoozes(*, now: datetime) -> int:
    """Ends the snoozes whose failures are all there. The number ended."""
    waiting = Incident.objects.filter(
        resolved_at=None, snoozed_until__gt=now, snoozed_failures__isnull=False, snoozed_at__isnull=False
    )
    return sum(_end_if_due(number, now=now) for number in waiting.values_list("pk", flat=True))


def _end_if_due(number: int, *, now: datetime) -> bool:
    with transaction.atomic():
        locked = Incident.objects.select_for_update(of=("self",)).filter(pk=number, snoozed_until__gt=now)
        incident = locked.select_related("dataset__team").first()
        if incident is None or incident.snoozed_at is None or incident.snoozed_failures is None:
            return False
        failure_limit, failure_count = incident.snoozed_failures, failures_since(incident, incident.snoozed_at)
        if failure_count < failure_limit:
            return False
        why = f"failed {failure_count} more {'time' if failure_count == 1 else 'times'} since it was snoozed"
        end_snooze(incident, why, now=now)
        outbox.enqueue(incident, outbox.WORSE_OCCASION, now=now, text=why)
        return True
