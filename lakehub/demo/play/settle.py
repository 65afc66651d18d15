"""When has everything that was to happen up to now happened? The story plays on only then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Min

from incidents.models import Message, MessageState
from ingestion.following import follow_runs
from ingestion.models import JobKind, JobRun, JobState, TouchedPartition
from lakehub.demo.play.story_context import StoryContext
from lakehub.kernel.outcome import Outcome
from quality.models import Flip, Unit

IDLE_TIMEOUT_S = 240
RETEST_BATCH_WINDOW = timedelta(seconds=30)
"""Tests that are due this close together are run in one go."""


def play_until_settled(stage: StoryContext, *, ahead: timedelta = timedelta(minutes=3)) -> None:
    """Wait until nothing is left to do; retests that are due within `ahead` are played too, a moment of them at a time."""
    wait_until_idle(stage)
    until = stage.now() + ahead
    while (coming := next_retest(stage.now(), until - stage.now())) is not None:
        stage.play_to(coming + RETEST_BATCH_WINDOW)
        wait_until_idle(stage)


def wait_until_idle(stage: StoryContext, *, within_s: float = IDLE_TIMEOUT_S) -> None:
    stage.wait_until("all that is due to be done", lambda: not any(remaining_work(stage.now())), within_s=within_s)


def remaining_work(now: datetime) -> Iterator[int]:
    """How many are left of each kind of thing that one part hands to the next, in the order of the flow."""
    jobs = JobRun.objects.filter(state__in=(JobState.QUEUED, JobState.RUNNING), due_at__lte=now)
    yield jobs.exclude(kind=JobKind.FOLLOW, state=JobState.RUNNING).count()
    yield follow_runs.overdue_looks(now=now)
    yield TouchedPartition.objects.filter(claimed_at=None).count()
    yield Unit.objects.filter(due_at__lte=now).count()
    yield Flip.objects.filter(claimed_at=None).count()
    yield Message.objects.filter(state=MessageState.PENDING, due_at__lte=now).count()


def next_retest(now: datetime, ahead: timedelta) -> datetime | None:
    """The next time at which a test runs because data changed, or because it did not pass, within `ahead`."""
    waiting = Unit.objects.filter(due_at__gt=now, due_at__lte=now + ahead)
    unsettled = waiting.exclude(retest_due_at=None, latest_outcome=Outcome.PASS)
    next_due_at: datetime | None = unsettled.aggregate(Min("due_at"))["due_at__min"]
    return next_due_at
