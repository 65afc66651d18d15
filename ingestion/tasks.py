"""Celery only wakes up: what is due, who has claimed it and until when is in the database. A second delivery changes nothing."""

from __future__ import annotations

import random
import socket
import time
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from celery import shared_task
from django.conf import settings

from ingestion.following import follow_runs
from ingestion.index_shares import shares
from ingestion.lake import commits, readers
from ingestion.lake.lake_copies import recorded_copies
from ingestion.lake.timeline_changes import TimelineChanges
from ingestion.launchers.configured import configured_launcher, launcher_folder
from ingestion.ports import input_gate, source_turn
from ingestion.positions import audit, behind
from ingestion.runs import feed_schedule, job_runs, leases, offboarding, rebuilds, retention, run_worker
from ingestion.runs.backfills import schedule
from ingestion.runs.modelled_tables import lag
from ingestion.runs.replicas import lag as replica_lag
from ingestion.runs.sent_lineage import sending
from ingestion.runs.source_use import paused_runs, raw_chunks
from lakehub import wiring
from lakehub.catalog.lineage import daily, lineage_source, missing_tables
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.scratch import sweep_scratch

WAKE_UP_EXPIRES_S = 5
COUNTS_FOR_S = 120
_timeline_changes = TimelineChanges()
"""Since this process began."""


@shared_task
def start_due_runs() -> None:
    """Ask for what is due and wake a worker where something waits."""
    now = wiring.clock.now()
    leases.release_leases_of_dead_processes(socket.gethostname())
    offboarding.close_offboarded(now=now)
    shares.recompute_all()
    rebuilds.switch_whole_rebuilds(holder=leases.own_holder_name(), now=now)
    rebuilds.drop_cancelled(now=now)
    follow_runs.end_unwanted(now=now)
    paused_runs.apply_pauses(now=now)
    feed_schedule.request_due_runs(now=now)
    schedule.advance_backfills(now=now)  # behind what follows the inputs
    readers.report_passed_readers(now=now, wall=datetime.now(UTC))
    if job_runs.claimable_runs(now=now).exists():
        run_job.apply_async(expires=WAKE_UP_EXPIRES_S)


@shared_task
def request_clusterings() -> None:
    """Ask for small files to be put together where there are many. The files of tables are listed for it, which holds up no start of a job here."""
    feed_schedule.request_due_clusterings(now=wiring.clock.now(), wall=datetime.now(UTC))


@shared_task(has_own_deadline=True)
def run_job() -> None:
    """Run what is due, one after the other, until nothing is. Each run ends by the `deadline_s` of its feed."""
    leases.release_leases_of_dead_processes(socket.gethostname())
    while run_worker.run_next(_worker()) is not None:
        # Before the next run begins: of a feed that is always at work no other moment is free.
        rebuilds.switch_whole_rebuilds(holder=leases.own_holder_name(), now=wiring.clock.now())


@shared_task
def record_lake_commits() -> None:
    """Take in the commits that other writers made."""
    now = wiring.clock.now()
    for copy in recorded_copies():
        with log_and_continue(f"Taking in the timeline of {copy} at {copy.uri or copy.source_table}"):
            _timeline_changes.take_in(copy, partial(commits.record_new_commits, copy, now=now))


@shared_task
def check_captured_copies() -> None:
    """Which are behind for too long, and whether their commits have read what the log has. The log is counted for some minutes at most."""
    behind.judge_lags(now=wiring.clock.now())
    until = time.monotonic() + COUNTS_FOR_S
    audit.count_due_hours(now=wiring.clock.now(), has_time=lambda: time.monotonic() < until)


@shared_task
def check_pipelines() -> None:
    """Which modelled tables are behind their inputs for too long."""
    lag.judge_lags(now=wiring.clock.now())


@shared_task
def check_replicas() -> None:
    """Which replicas lack commits of their sources for too long."""
    replica_lag.judge_lags(now=wiring.clock.now())


@shared_task
def send_lineage() -> None:
    """The events of runs of pipelines that have ended, to the receiver that the operator has set."""
    sending.send_owed_lineage(now=wiring.clock.now())


@shared_task
def check_lineage() -> None:
    """Once a day: the newest lineage, and jobs are forgotten whose events nobody posts any more."""
    daily.run_daily_posted(now=wiring.clock.now())
    if (source := lineage_source()) is not None:
        daily.run_daily_lineage(source, name=settings.LAKEHUB_LINEAGE, now=wiring.clock.now())


@shared_task
def check_tables() -> None:
    """Once a day: a look at the tables of all datasets. A worker's, as sources may be silent, and jobs have one process."""
    daily.run_daily_tables(source_turn(), offboard_after=missing_tables.offboarding_delay(), now=wiring.clock.now())


@shared_task
def prune_history() -> None:
    """Lets old runs, commits and touched partitions go, and what processes that ended left on the disk."""
    now = wiring.clock.now()
    retention.delete_old_runs(now=now, retention=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.delete_old_backfills(now=now, retention=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.delete_old_commits(now=now, retention=timedelta(days=settings.LAKEHUB_RUNS_KEPT_DAYS))
    retention.delete_old_capture_hours(now=now)
    retention.delete_old_touched_partitions(now=now, retention=timedelta(days=settings.LAKEHUB_HISTORY_KEPT_DAYS))
    raw_chunks.delete_old(wall=datetime.now(UTC), retention=timedelta(days=settings.LAKEHUB_RAW_DAYS))
    retention.delete_old_job_folders(launcher_folder(), now=now, wall=datetime.now(UTC))
    sweep_scratch()


@cache
def _worker() -> run_worker.Worker:
    """One for the life of the process: the launcher keeps its Spark session."""
    return run_worker.Worker(
        name=leases.own_holder_name(),
        launcher=configured_launcher(),
        staging=settings.LAKEHUB_STAGING.as_uri(),
        clock=wiring.clock.now,
        clock_offset=wiring.clock.ahead,
        draw_jitter=random.random,
        gate=input_gate(),
    )
