"""The clock plays a day: flights are scheduled, depart, land; one job is killed halfway and run again."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from ingestion.models import Commit, JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.killing import kill_halfway
from lakehub.demo.lake import rows_and_keys
from lakehub.demo.settling import settle
from lakehub.demo.stage import Stage
from lakehub.demo.telling import Untrue

TITLE = "A day is played in steps: flights are scheduled, depart, land"

STEP = timedelta(hours=6)
STEPS = 4
KILLED_IN = 2
RETESTED_WITHIN = timedelta(minutes=6)
MOVING = ("flights", "weather")
"""The datasets that change; the others are looked at once a month."""
INGESTED_WITHIN_S = 240


def play(stage: Stage) -> None:
    for step in range(STEPS):
        began, told_from = time.monotonic(), stage.now()
        played = stage.play_on(STEP)
        if step == KILLED_IN:
            kill_halfway(stage, DatasetCopy.objects.get(dataset__name="flights", data_center__name="dc1"))
        wait_for_ingestion(stage, since=told_from + STEP)
        stage.tell.say(f"{stage.now():%d %b %H:%M}  {played}  ({time.monotonic() - began:.1f} s)")
        if step == STEPS - 1:
            _show_the_sum(stage)
            _show_that_nothing_is_doubled(stage)
        # What looked late when the clock leapt is tested again before it leaps on.
        settle(stage, ahead=RETESTED_WITHIN)


def wait_for_ingestion(stage: Stage, *, since: datetime) -> None:
    """Until every moving copy was looked at once more, by the schedule."""
    copies = DatasetCopy.objects.filter(dataset__name__in=MOVING).count()

    def looked_at() -> bool:
        runs = JobRun.objects.filter(kind=JobKind.INCREMENTAL, due_at__gte=since - STEP, ended_at__gte=since)
        failed = runs.filter(state=JobState.FAILED).first()
        if failed is not None:
            raise Untrue(f"{failed}: {failed.error}")
        return runs.filter(state=JobState.SUCCEEDED).values("copy").distinct().count() == copies

    stage.wait_until("the incremental jobs", looked_at, within_s=INGESTED_WITHIN_S)


def _show_the_sum(stage: Stage) -> None:
    commits = Commit.objects.filter(run__kind=JobKind.INCREMENTAL)
    read = applied = superseded = redelivered = errors = 0
    for commit in commits:
        read += commit.read or 0
        applied += commit.applied or 0
        superseded += commit.superseded or 0
        redelivered += commit.redelivered or 0
        errors += commit.errors or 0
    claim = f"{len(commits)} commits: {read:,} read = {applied:,} applied + {superseded:,} superseded + {redelivered:,} redelivered + {errors:,} errors"
    stage.tell.show(claim, read == applied + superseded + redelivered + errors and applied > 0)


def _show_that_nothing_is_doubled(stage: Stage) -> None:
    for copy in DatasetCopy.objects.filter(dataset__name="flights").select_related("dataset", "data_center"):
        rows, keys = rows_and_keys(copy)
        there = stage.operations.rows("flights")
        stage.tell.show(f"{copy}: {rows:,} rows, {keys:,} keys, {there:,} in the source", rows == keys == there)
