"""What Celery wakes up. All are safe to run twice, and at the same time as themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock

from celery import shared_task
from django.conf import settings

from incidents.alerts import generate
from incidents.lifecycle import backfilled_partitions, backfills, intake, resolution, retention, snoozes
from incidents.notifications import reminders, sender
from incidents.notifications.periodic import digests, letters, unverified_mail, weekly_report
from incidents.record.evidence import keep_evidence_of_open_incidents
from lakehub import wiring
from lakehub.kernel.error_isolation import log_and_continue

MAX_ROUNDS = 20
"""Of one call; the next one, a second later, goes on with a flood."""
_sending = Lock()


@contextmanager
def only_sender() -> Iterator[bool]:
    """Whether nobody else in this process sends; never waits, so that the other threads are free to make incidents."""
    is_alone = _sending.acquire(blocking=False)
    try:
        yield is_alone
    finally:
        if is_alone:
            _sending.release()


@shared_task
def process_flips() -> None:
    """Verdicts that changed become spans, incidents and messages; backfills that ended are noted, and so is what was off-boarded."""
    with log_and_continue(backfills.__name__):
        backfills.follow_backfills(now=wiring.clock.now())
    with log_and_continue(backfilled_partitions.__name__):
        backfilled_partitions.note_backfilled(now=wiring.clock.now())
    for _ in range(MAX_ROUNDS):
        if intake.process_flips(now=wiring.clock.now()) == 0:
            break
    with log_and_continue("Ranges that moved"):
        intake.update_stale_ranges()
    with log_and_continue("Incidents of datasets that were off-boarded"):
        resolution.close_offboarded(now=wiring.clock.now())
    with log_and_continue("Incidents of copies that were removed"):
        resolution.close_removed_copies(now=wiring.clock.now())


@shared_task
def generate_alerts() -> None:
    """Alerts follow the metadata of their dataset."""
    generate.generate_outdated_alerts(now=wiring.clock.now())


@shared_task
def send_due() -> None:
    """Snoozes end, producers are reminded; what is due goes out, is held or dropped; what was collected goes as digests."""
    now = wiring.clock.now()
    with only_sender() as is_alone:
        if not is_alone:
            return
        for part in (
            snoozes.end_due_snoozes,
            reminders.send_due_reminders,
            sender.send_due_messages,
            digests.write_due_digests,
            digests.send_due_digests,
        ):
            with log_and_continue(part.__module__):
                part(now=now)


@shared_task
def send_weekly_reports() -> None:
    """Once a week the owners of datasets are told what is not tested, was silent or is gone; at once what is not verified."""
    now = wiring.clock.now()
    if settings.LAKEHUB_WEEKLY_REPORT:
        weekly_report.write_due_reports(now=now)
    unverified_mail.write_due_letters(now=now)
    with only_sender() as is_alone:
        if is_alone:  # else they go out a minute later
            letters.send_due_letters(now=now)


@shared_task
def prune_history() -> None:
    """Lets old questions to the gate go, and how messages went."""
    now = wiring.clock.now()
    keep_evidence_of_open_incidents()
    retention.prune_questions(now=now, retention=timedelta(days=settings.LAKEHUB_HISTORY_KEPT_DAYS))
    retention.prune_deliveries(now=now, retention=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.prune_digests(now=now, retention=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.prune_bulk_actions(now=now)
