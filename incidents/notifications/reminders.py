"""Producers who have not answered a user's report are asked again, ever more seldom, until they acknowledge or reject."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from incidents.domain.incident.state_machine import IncidentState
from incidents.models import Incident, UserReport
from incidents.notifications import outbox
from incidents.record import transitions
from lakehub.catalog.models import TIERS
from lakehub.kernel.backoff import Backoff

FIRST_REMINDER_AFTER = (
    timedelta(hours=1),
    timedelta(hours=2),
    timedelta(hours=4),
    timedelta(hours=8),
    timedelta(days=1),
)
"""By tier; the last one for all that are left."""
REMINDER_BACKOFF = {
    tier: Backoff(
        base=FIRST_REMINDER_AFTER[min(tier, len(FIRST_REMINDER_AFTER) - 1)], cap=timedelta(days=3), jitter_share=0.0
    )
    for tier in TIERS
}


def start_reminders(incident: Incident, *, now: datetime) -> None:
    """The producers were just asked."""
    due = now + REMINDER_BACKOFF[incident.dataset.tier].delay(0, 0.0)
    UserReport.objects.filter(pk=incident.pk).update(reminders=0, remind_at=due)


def send_due_reminders(*, now: datetime, limit: int = 50) -> int:
    """Asks again where nobody has answered in time. How many were asked for."""
    due = UserReport.objects.filter(remind_at__lte=now)
    if not due.exists():
        return 0  # an update takes the lock of a small database even where it changes nothing
    due.exclude(incident__state=IncidentState.WAITING).update(remind_at=None)
    numbers = list(due.order_by("remind_at").values_list("pk", flat=True)[:limit])
    return sum(_send_reminder(number, now) for number in numbers)


def _send_reminder(number: int, now: datetime) -> bool:
    with transaction.atomic():
        report = UserReport.objects.select_related("incident__dataset__team").get(pk=number)
        count = report.reminders + 1
        due = now + REMINDER_BACKOFF[report.incident.dataset.tier].delay(count, 0.0)
        unchanged = UserReport.objects.filter(
            pk=number, remind_at=report.remind_at, incident__state=IncidentState.WAITING
        )
        if report.remind_at is None or report.remind_at > now or unchanged.update(reminders=count, remind_at=due) != 1:
            return False
        text = f"Reminder {count}: nobody has acknowledged or rejected it. {report.text}"
        transitions.add_event(
            report.incident, "reminded", now=now, text=f"reminder {count}; the next one at {due:%Y-%m-%d %H:%M} UTC"
        )
        outbox.enqueue(report.incident, "reported", (), now=now, text=text)
    return True
