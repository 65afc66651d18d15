"""The clock plays a day: flights are scheduled, depart, land; one job is killed halfway and run again."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from ingestion.models import Commit, JobKind, JobRun, JobState
from ingestion.runs.copy_lag import complete_upto
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.play.kill_follower import kill_during_commit
from lakehub.demo.play.lake_counts import rows_and_keys
from lakehub.demo.play.narrator import ClaimFailed
from lakehub.demo.play.settle import play_until_settled
from lakehub.demo.play.story_context import StoryContext

TITLE = "A day is played in steps: flights are scheduled, depart, land"

STEP = timedelta(hours=6)
STEPS = 4
KILLED_STEP = 2
RETEST_WINDOW = timedelta(minutes=6)
CHANGING_DATASETS = ("flights", "weather")
"""The datasets that change; the others are looked at once a month."""
INGESTION_TIMEOUT_S = 240


def play(stage: StoryContext) -> None:
    for step in range(STEPS):
        began, told_from = time.monotonic(), stage.now()
        played = stage.play_on(STEP)
        if step == KILLED_STEP:
            kill_during_commit(stage, DatasetCopy.objects.get(dataset__name="flights", data_center__name="dc1"))
        wait_for_ingestion(stage, since=told_from + STEP)
        stage.narrator.say(f"{stage.now():%d %b %H:%M}  {played}  ({time.monotonic() - began:.1f} s)")
        if step == STEPS - 1:
            _show_accounting(stage)
            _show_no_duplicates(stage)
        # What looked late when the clock leapt is tested again before it leaps on.
        play_until_settled(stage, ahead=RETEST_WINDOW)


def wait_for_ingestion(stage: StoryContext, *, since: datetime) -> None:
    """Until every moving copy was looked at once more."""
    copies = list(DatasetCopy.objects.filter(dataset__name__in=CHANGING_DATASETS))

    def looked_at() -> bool:
        failed = JobRun.objects.filter(kind=JobKind.FOLLOW, state=JobState.FAILED, ended_at__gte=since).first()
        if failed is not None:
            raise ClaimFailed(f"{failed}: {failed.error}")
        return all((read_upto := complete_upto(copy)) is not None and read_upto >= since for copy in copies)

    stage.wait_until("a look at the sources", looked_at, within_s=INGESTION_TIMEOUT_S)


def _show_accounting(stage: StoryContext) -> None:
    commits = Commit.objects.filter(run__kind=JobKind.FOLLOW)
    read = applied = superseded = redelivered = errors = 0
    for commit in commits:
        read += commit.read or 0
        applied += commit.applied or 0
        superseded += commit.superseded or 0
        redelivered += commit.redelivered or 0
        errors += commit.errors or 0
    claim = f"{len(commits)} commits: {read:,} read = {applied:,} applied + {superseded:,} superseded + {redelivered:,} redelivered + {errors:,} errors"
    stage.narrator.check(claim, read == applied + superseded + redelivered + errors and applied > 0)


def _show_no_duplicates(stage: StoryContext) -> None:
    for copy in DatasetCopy.objects.filter(dataset__name="flights").select_related("dataset", "data_center"):
        rows, keys = rows_and_keys(copy)
        there = stage.operations.rows("flights")
        stage.narrator.check(f"{copy}: {rows:,} rows, {keys:,} keys, {there:,} in the source", rows == keys == there)
