"""Units and what is planned of them after the clock was set back: see `lakehub.clock.set_back`."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from lakehub.clock.set_back import bring_back, shorten_leases
from lakehub.kernel.interval import EVERYTHING
from quality.execution.claims import LEASE_DURATION
from quality.models import BaselineAttempt, ChangePoll, ConcurrencySlot, Flip, GenerationStatus, Result, Unit

_FACTS = ("last_pass_at", "first_fail_at", "last_fail_at", "latest_at", "touched_at", "waived_at", "verdict_at")


def put_right(*, now: datetime, back: timedelta) -> None:
    """What was read later than now was read now, so that what is read from now on is newer. What has run before, or covers
    the whole table, runs now if it waits; a partition that was never tested is due when it must be whole, as before."""
    bring_back(Result.objects.all(), "read_at", "started_at", "ended_at", now=now)
    bring_back(Flip.objects.all(), "at", "failing_since", now=now)
    for unread in Unit.objects.filter(touched_at__gt=now).exclude(unread_commits=[]):
        unread.unread_commits = []
        unread.save(update_fields=["unread_commits"])
    bring_back(Unit.objects.all(), *_FACTS, "retest_due_at", "reevaluate_at", now=now)
    begun = Q(latest_at__isnull=False) | Q(end=EVERYTHING.end)
    bring_back(Unit.objects.filter(begun), "due_at", now=now)
    bring_back(ChangePoll.objects.all(), "due_at", "polled_at", now=now)
    bring_back(BaselineAttempt.objects.all(), "retry_at", "attempted_at", now=now)
    bring_back(GenerationStatus.objects.all(), "retry_at", "attempted_at", now=now)
    for model in (Unit, ConcurrencySlot):
        shorten_leases(model._default_manager.all(), "leased_until", LEASE_DURATION)
