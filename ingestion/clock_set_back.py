"""Job runs, feeds and leases after the clock was set back: see `lakehub.clock.set_back`."""

from __future__ import annotations

from datetime import datetime, timedelta

from ingestion.models import (
    BlockedInput,
    Capture,
    Commit,
    CopyLease,
    IndexAllowance,
    JobRun,
    LineageReceiver,
    TapServer,
)
from ingestion.runs.leases import LEASE_DURATION
from lakehub.catalog.models import LineageDay
from lakehub.clock.set_back import bring_back, shorten_leases


def put_right(*, now: datetime, back: timedelta) -> None:
    """What waits to be tried again is tried now. A feed counts from its last run, which was not later than now."""
    bring_back(JobRun.objects.all(), "due_at", "started_at", "ended_at", "progress_at", "waits_since", now=now)
    bring_back(Commit.objects.all(), "completed_at", now=now)
    bring_back(Capture.objects.all(), "captured_at", now=now)
    bring_back(TapServer.objects.all(), "seen_at", now=now)
    # As `now` it would seem to be after the beginning of each capture that was brought back to `now` as well.
    TapServer.objects.filter(caught_up_at__gte=now).update(caught_up_at=None)
    bring_back(BlockedInput.objects.all(), "retry_at", now=now)
    bring_back(LineageDay.objects.all(), "due_at", now=now)
    LineageDay.objects.filter(day__gt=now.date()).delete()
    LineageReceiver.objects.update(next_try_at=None)
    leases = (
        (JobRun, "leased_until"),
        (CopyLease, "until"),
        (LineageDay, "leased_until"),
        (IndexAllowance, "leased_until"),
        (LineageReceiver, "leased_until"),
    )
    for model, field in leases:
        shorten_leases(model._default_manager.all(), field, LEASE_DURATION)
