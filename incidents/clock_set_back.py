"""Incidents and messages after the clock was set back: see `lakehub.clock.set_back`."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from incidents.models import Digest, DigestState, Incident, Message, MessageState, Span, UserReport
from incidents.models.message import UnverifiedMail, WeeklyReportMail
from incidents.notifications.sender import LEASE
from lakehub.clock.set_back import bring_back, shift, shorten_leases


def put_right(*, now: datetime, back: timedelta) -> None:
    """What was tried or held is looked at now. What waits by intention (a digest's hour, an escalation) and was counted from
    the wrong time waits for as long as was meant; what a person set to an hour stays."""
    wrongly_written = Message.objects.filter(created_at__gt=now)
    shift(wrongly_written, "due_at", now=now, back=back)
    was_looked_at = Q(state=MessageState.HELD) | (Q(state=MessageState.PENDING) & (Q(attempt__gt=0) | ~Q(error="")))
    bring_back(Message.objects.filter(was_looked_at), "due_at", now=now)
    shift(UserReport.objects.filter(incident__opened_at__gt=now), "remind_at", now=now, back=back)
    bring_back(Digest.objects.filter(state=DigestState.PENDING), "due_at", now=now)
    for letters in (WeeklyReportMail, UnverifiedMail):
        bring_back(letters._default_manager.filter(state=MessageState.PENDING), "due_at", now=now)
    for model in (Message, Digest, WeeklyReportMail, UnverifiedMail):
        bring_back(model._default_manager.all(), "created_at", "sent_at", now=now)
        shorten_leases(model._default_manager.all(), "leased_until", LEASE)
    bring_back(Incident.objects.all(), "opened_at", "acknowledged_at", "resolved_at", "snoozed_at", now=now)
    bring_back(Span.objects.all(), "began_at", "ended_at", now=now)
