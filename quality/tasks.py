"""What Celery wakes up. Each task reads the clock, does one thing, and may be delivered twice: claims are in the database."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

from celery import shared_task
from django.conf import settings

from lakehub import wiring
from lakehub.kernel.error_isolation import log_and_continue
from quality.execution import ingestion_findings, retention, worker
from quality.generation import generate
from quality.planning import baseline, change_polling, touched_partitions
from quality.state import reevaluation


def _worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@shared_task
def run_due() -> None:
    """Runs tests that are due, as many as there are; a worker that was busy for a while lets other tasks in."""
    worker.run_due_units(now=wiring.clock.now(), worker=_worker_name(), most=10_000, budget=timedelta(seconds=2))


@shared_task
def claim_changes() -> None:
    """Takes in what changed: metadata, new copies, touched partitions, findings."""
    now = wiring.clock.now()
    for part in (
        generate.generate_outdated,
        baseline.start_missing_baselines,
        touched_partitions.claim_touched_partitions,
        ingestion_findings.observe_findings,
    ):
        with log_and_continue(part.__name__):
            part(now=now)


@shared_task
def watch() -> None:
    """Looks which partitions changed of the tables that others write."""
    change_polling.poll_due_copies(now=wiring.clock.now())


@shared_task
def judge_due() -> None:
    """Judges what time alone changed."""
    reevaluation.reevaluate_due_units(now=wiring.clock.now())


@shared_task
def keep_house() -> None:
    """Adds up the hours that are over, and lets old results go."""
    now = wiring.clock.now()
    retention.roll_up_results(now=now)
    results_retention = timedelta(days=settings.LAKEHUB_RESULTS_KEPT_DAYS)
    retention.delete_old_results(now=now, retention=results_retention)
    retention.delete_old_failing_rows(now=now, retention=results_retention)
    retention.delete_old_measurements(now=now, retention=results_retention)
    history = timedelta(days=settings.LAKEHUB_HISTORY_KEPT_DAYS)
    retention.delete_old_flips(now=now, retention=history)
    retention.delete_old_external_runs(now=now, retention=history)
