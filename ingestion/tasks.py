"""Celery only wakes up: what is due, who has claimed it and until when is in the database. A second delivery changes nothing."""

from __future__ import annotations

import os
import random
import socket
from datetime import timedelta
from functools import cache, partial
from uuid import uuid4

from celery import shared_task
from django.conf import settings

from ingestion import commits, feeds, leases, offboarding, retention, runs, work
from ingestion.launching import launcher
from lakehub import wiring
from lakehub.catalog.lineage import LINEAGE, daily, gone
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.apart import apart

WAKE_UP_LASTS_S = 5


@shared_task
def start_due() -> None:
    """Ask for what is due and wake a worker where something waits."""
    now = wiring.clock.now()
    leases.free_the_dead(socket.gethostname())
    offboarding.settle(now=now)
    feeds.ask_for_what_is_due(now=now)
    if runs.claimable(now=now).exists():
        run_job.apply_async(expires=WAKE_UP_LASTS_S)


@shared_task
def run_job() -> None:
    """Run what is due, one after the other, until nothing is."""
    leases.free_the_dead(socket.gethostname())
    while work.run_next(_worker()) is not None:
        pass


@shared_task
def follow_lakes() -> None:
    """Take in the commits that other writers made."""
    now = wiring.clock.now()
    ours = DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None)
    for copy in ours.select_related("dataset", "data_center"):
        with apart(f"Taking in the timeline of {copy} at {copy.uri}"):
            commits.take_in(copy, now=now)


@shared_task
def follow_lineage() -> None:
    """Once a day: the newest lineage, and a look at the tables of all datasets."""
    name = settings.LAKEHUB_LINEAGE
    source = partial(LINEAGE.get(name), settings.LAKEHUB_LINEAGE_URI) if name else None
    daily.look_once_a_day(source, name=name, offboard_after=gone.patience(), now=wiring.clock.now())


@shared_task
def keep_house() -> None:
    """Lets old runs and touched partitions go."""
    now = wiring.clock.now()
    retention.forget_runs(now=now, kept=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.forget_touched(now=now, kept=timedelta(days=settings.LAKEHUB_HISTORY_KEPT_DAYS))


@cache
def _worker() -> work.Worker:
    """One for the life of the process: the launcher keeps its Spark session."""
    return work.Worker(
        name=leases.holder_name(socket.gethostname(), os.getpid(), uuid4().hex[:8]),
        launcher=launcher(),
        staging=settings.LAKEHUB_STAGING.as_uri(),
        clock=wiring.clock.now,
        ahead=wiring.clock.ahead,
        chance=random.random,
        gate=wiring.input_gate(),
    )
