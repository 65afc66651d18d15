"""What Celery wakes up. Each task reads the clock, does one thing, and may be delivered twice: claims are in the database."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

from celery import shared_task
from django.conf import settings

from lakehub import wiring
from lakehub.kernel.apart import apart
from quality import baseline, execution, findings, generator, retention, retests, watching


def _worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@shared_task
def run_due() -> None:
    """Runs tests that are due, as many as there are; a worker that was busy for a while lets other tasks in."""
    execution.run_due(now=wiring.clock.now(), worker=_worker(), most=10_000, budget=timedelta(seconds=2))


@shared_task
def claim_changes() -> None:
    """Takes in what changed: metadata, new copies, touched partitions, findings."""
    now = wiring.clock.now()
    for part in (
        generator.generate_missing,
        baseline.start_missing,
        retests.claim_touched,
        findings.observe_findings,
    ):
        with apart(part.__name__):
            part(now=now)


@shared_task
def watch() -> None:
    """Looks which partitions changed of the tables that others write."""
    watching.look_due(now=wiring.clock.now())


@shared_task
def judge_due() -> None:
    """Judges what time alone changed."""
    retests.judge_due(now=wiring.clock.now())


@shared_task
def keep_house() -> None:
    """Adds up the hours that are over, and lets old results go."""
    now = wiring.clock.now()
    retention.roll_up(now=now)
    kept = timedelta(days=settings.LAKEHUB_RESULTS_KEPT_DAYS)
    retention.forget(now=now, kept=kept)
    retention.forget_measurements(now=now, kept=kept)
    history = timedelta(days=settings.LAKEHUB_HISTORY_KEPT_DAYS)
    retention.forget_flips(now=now, kept=history)
    retention.forget_finished(now=now, kept=history)
