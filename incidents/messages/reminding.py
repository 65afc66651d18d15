"""Producers who have not answered a user's report are asked again, ever more seldom, until they acknowledge or reject."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from incidents import moves
from incidents.domain.lifecycle import State
from incidents.messages import outbox
from incidents.models import Incident, UserReport
from lakehub.catalog.models import TIERS
from lakehub.kernel.backoff import Backoff

FIRST = (timedelta(hours=1), timedelta(hours=2), timedelta(hours=4), timedelta(hours=8), timedelta(days=1))
"""By tier; the last one for all that are left."""
WAITS = {tier: Backoff(base=FIRST[min(tier, len(FIRST) - 1)], cap=timedelta(days=3), spread=0.0) for tier in TIERS}


def begin(incident: Incident, *, now: datetime) -> None:
    """The producers were just asked."""
    due = now + WAITS[incident.dataset.tier].delay(0, 0.0)
    UserReport.objects.filter(pk=incident.pk).update(reminders=0, remind_at=due)


def remind_due(*, now: datetime, limit: int = 50) -> int:
    """Asks again where nobody has answered in time. How many were asked for."""
    due = UserReport.objects.filter(remind_at__lte=now)
    if not due.exists():
        return 0  # an update takes the lock of a small database even where it changes nothing
    due.exclude(incident__state=State.WAITING).update(remind_at=None)
    numbers = list(due.order_by("remind_at").values_list("pk", flat=True)[:limit])
    return sum(_remind(number, now) for number in numbers)


def _remind(number: int, now: datetime) -> bool:
    with transaction.atomic():
        told = UserReport.objects.select_related("incident__dataset__team").get(pk=number)
        count = told.reminders + 1
        due = now + WAITS[told.incident.dataset.tier].delay(count, 0.0)
        unchanged = UserReport.objects.filter(pk=number, remind_at=told.remind_at, incident__state=State.WAITING)
        if told.remind_at is None or told.remind_at > now or unchanged.update(reminders=count, remind_at=due) != 1:
            return False
        text = f"Reminder {count}: nobody has acknowledged or rejected it. {told.text}"
        moves.note(
            told.incident, "reminded", now=now, text=f"reminder {count}; the next one at {due:%Y-%m-%d %H:%M} UTC"
        )
        outbox.enqueue(told.incident, "reported", (), now=now, text=text)
    return True
