"""What Celery wakes up. All are safe to run twice, and at the same time as themselves."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from incidents import alerts, backfilling, intake, retention, snoozing
from incidents.messages import digests, reminding, sending, weekly
from lakehub import wiring
from lakehub.kernel.apart import apart

MOST_ROUNDS = 20
"""Of one call; the next one, a second later, goes on with a flood."""


@shared_task
def take_in() -> None:
    """Verdicts that changed become spans, incidents and messages; backfills that ended are noted."""
    with apart(backfilling.__name__):
        backfilling.follow(now=wiring.clock.now())
    for _ in range(MOST_ROUNDS):
        if intake.take_in(now=wiring.clock.now()) == 0:
            break


@shared_task
def make_alerts() -> None:
    """Alerts follow the metadata of their dataset."""
    alerts.generate_missing(now=wiring.clock.now())


@shared_task
def send_due() -> None:
    """Snoozes end, producers are reminded; what is due goes out, is held or dropped; what was collected goes as digests."""
    now = wiring.clock.now()
    for part in (snoozing.end_due, reminding.remind_due, sending.send_due, digests.write_due, digests.send_due):
        with apart(part.__module__):
            part(now=now)


@shared_task
def report_weekly() -> None:
    """Once a week the owners of datasets are told what is not tested, was silent or is gone."""
    now = wiring.clock.now()
    if settings.LAKEHUB_WEEKLY_REPORT:
        weekly.write_due(now=now)
    weekly.send_due(now=now)


@shared_task
def keep_house() -> None:
    """Lets old questions to the gate go, and how messages went."""
    now = wiring.clock.now()
    retention.forget_questions(now=now, kept=timedelta(days=settings.LAKEHUB_HISTORY_KEPT_DAYS))
    retention.forget_deliveries(now=now, kept=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.forget_digests(now=now, kept=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.forget_undos(now=now)
