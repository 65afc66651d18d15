"""When the tasks of incidents have something to do."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Min

from incidents.models import Digest, DigestState, Message, MessageState, UserReport
from lakehub.processes.wakeups import Wakeup, earliest

_WAITING = (MessageState.PENDING, MessageState.HELD, MessageState.COLLECTED)


def _next_message_at(_now: datetime) -> datetime | None:
    """Of messages, digests and reminders. A snooze ends with a run, which is a change; its end in time is the message's."""
    digests = Digest.objects.filter(state=DigestState.PENDING)
    return earliest(
        Message.objects.filter(state__in=_WAITING, digest=None).aggregate(at=Min("due_at"))["at"],
        digests.aggregate(at=Min("due_at"))["at"],
        UserReport.objects.filter(remind_at__isnull=False).aggregate(at=Min("remind_at"))["at"],
    )


WAKEUPS = (
    Wakeup("incidents.tasks.process_flips", timedelta(seconds=30), on_change=True),
    Wakeup("incidents.tasks.send_due", timedelta(seconds=30), on_change=True, next_due=_next_message_at),
    Wakeup("incidents.tasks.generate_alerts", timedelta(minutes=1), on_change=True, at_most_every=timedelta(seconds=5)),
    Wakeup("incidents.tasks.send_weekly_reports", timedelta(minutes=1)),
    Wakeup("incidents.tasks.prune_history", timedelta(hours=1)),
)
