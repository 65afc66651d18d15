"""When has everything that was to happen up to now happened? The story plays on only then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Min

from incidents.models import Message, MessageState
from ingestion.models import JobRun, JobState, TouchedPartition
from lakehub.demo.stage import Stage
from lakehub.kernel.outcome import Outcome
from quality.models import Flip, Unit

SETTLES_WITHIN_S = 240
A_MOMENT = timedelta(seconds=30)
"""Tests that are due this close together are run in one go."""


def settle(stage: Stage, *, ahead: timedelta = timedelta(minutes=3)) -> None:
    """Wait until nothing is left to do; retests that are due within `ahead` are played too, a moment of them at a time."""
    wait_until_quiet(stage)
    until = stage.now() + ahead
    while (coming := next_retest(stage.now(), until - stage.now())) is not None:
        stage.play_to(coming + A_MOMENT)
        wait_until_quiet(stage)


def wait_until_quiet(stage: Stage, *, within_s: float = SETTLES_WITHIN_S) -> None:
    stage.wait_until("all that is due to be done", lambda: not any(left(stage.now())), within_s=within_s)


def left(now: datetime) -> Iterator[int]:
    """How many are left of each kind of thing that one part hands to the next, in the order of the flow."""
    yield JobRun.objects.filter(state__in=(JobState.QUEUED, JobState.RUNNING), due_at__lte=now).count()
    yield TouchedPartition.objects.filter(claimed_at=None).count()
    yield Unit.objects.filter(due_at__lte=now).count()
    yield Flip.objects.filter(claimed_at=None).count()
    yield Message.objects.filter(state=MessageState.PENDING, due_at__lte=now).count()


def next_retest(now: datetime, ahead: timedelta) -> datetime | None:
    """The next time at which a test runs because data changed, or because it did not pass, within `ahead`."""
    waiting = Unit.objects.filter(due_at__gt=now, due_at__lte=now + ahead)
    unsettled = waiting.exclude(retest_due_at=None, latest_outcome=Outcome.PASS)
    found: datetime | None = unsettled.aggregate(Min("due_at"))["due_at__min"]
    return found
