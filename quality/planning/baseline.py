"""The baseline: from onboarding on, history is tested too, so that the gate knows the past."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from ingestion.models import Commit, JobKind, JobRun, JobState
from lakehub.catalog.models import Dataset, DatasetCopy, FeedKind
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import BEGINNING, EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, floor_to_bucket
from quality.domain.language import THIS, Name
from quality.domain.language.measures import ROWS, Reach
from quality.engines import engine_for, run_scan
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits, Scan
from quality.measuring.table_bindings import TableBindings
from quality.models import BaselineAttempt
from quality.planning import units
from quality.state.dataset_slas import unexpected_partitions
from quality.state.populated_partitions import partitions_named

logger = logging.getLogger(__name__)

MAX_HISTORY = {Grain.HOUR: timedelta(days=60), Grain.DAY: timedelta(days=800), Grain.MONTH: timedelta(days=7300)}
"""History older than this is not tested, and the gate says `unmonitored` of it."""
RETRY_BACKOFF = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=30))
_ACTIVE_STATES = (JobState.QUEUED, JobState.WAITING, JobState.RUNNING)


def start_missing_baselines(*, now: datetime, limit: int = 20) -> int:
    """Starts the baseline of the copies that hold data and have none yet; who waits longest first. The number started."""
    started = 0
    for copy in _copies_without_baseline(now)[:limit]:
        with log_and_continue(f"The baseline of {copy}"):
            started += _start_or_note_failure(copy, now=now)
    return started


def _start_or_note_failure(copy: DatasetCopy, *, now: datetime) -> bool:
    """Notes a failure and when to try again, and raises it."""
    try:
        done = start_baseline(copy, now=now)
    except Exception as problem:
        earlier_attempt = BaselineAttempt.objects.filter(copy=copy).first()
        attempts = 1 if earlier_attempt is None else earlier_attempt.attempts + 1
        retry_at = now + RETRY_BACKOFF.delay(attempts - 1, 0.0)
        problem_text = f"{type(problem).__name__}: {problem}"
        facts = {"problem": problem_text, "attempts": attempts, "attempted_at": now, "retry_at": retry_at}
        BaselineAttempt.objects.update_or_create(copy=copy, defaults=facts)
        raise
    BaselineAttempt.objects.filter(copy=copy).delete()
    return done


def _copies_without_baseline(now: datetime) -> QuerySet[DatasetCopy]:
    """Bootstrapped, or written without a bootstrap, or only watched; with tests to run.

    Not while another copy, to compare with, is on its first way here.
    """
    bootstraps = JobRun.objects.filter(kind=JobKind.BOOTSTRAP)
    bootstrapped = bootstraps.filter(copy=OuterRef("pk"), state=JobState.SUCCEEDED)
    coming = bootstraps.filter(copy__dataset=OuterRef("dataset"), attempt__lte=1, state__in=_ACTIVE_STATES)
    written = ~Q(dataset__feed__kind=FeedKind.CONNECTION) & Exists(Commit.objects.filter(copy=OuterRef("pk")))
    ready = Q(dataset__ingested=False) | ((written | Q(Exists(bootstrapped))) & ~Q(Exists(coming)))
    ready &= Q(baseline_try=None) | Q(baseline_try__retry_at__lte=now)
    waiting = DatasetCopy.objects.filter(
        ready, monitored_from=None, dataset__offboarded_at=None, dataset__coverage__generated_at__isnull=False
    )
    longest_first = F("baseline_try__attempted_at").asc(nulls_first=True)
    related = waiting.select_related("dataset__feed__connection", "data_center")
    return related.order_by(longest_first, "dataset__tier", "pk")


def start_baseline(copy: DatasetCopy, *, now: datetime) -> bool:
    """Sets `monitored_from` and makes the units of history due, behind what is due now. False: another worker was faster."""
    rows = {} if copy.dataset.partition_grain is Grain.NONE else _rows_by_partition(copy)
    begin = _monitored_from(copy.dataset, partitions_named(rows, copy), now=now)
    with transaction.atomic():
        if not DatasetCopy.objects.filter(pk=copy.pk, monitored_from=None).update(monitored_from=begin):
            return False
        copy.monitored_from = begin
        for test in copy.dataset.tests.filter(retired_at=None).select_related("version", "dataset"):
            units.plan_units(test, now=now)
        with_rows = partitions_named([name for name, many in rows.items() if many], copy)
        units.plan_unexpected_partitions(copy, unexpected_partitions(copy.dataset, with_rows), now=now)
    return True


def _monitored_from(dataset: Dataset, there: Iterable[Interval], *, now: datetime) -> datetime:
    """Where the oldest partition that is there starts; without partitions the table is tested whole, whatever its age.

    A copy that is empty, or cannot be read, has no history to test: it is watched from the present partition on, and the
    results of its tests say what is wrong.
    """
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE:
        return BEGINNING
    oldest = floor_to_bucket(now - MAX_HISTORY[grain], grain, zone)
    return max(min((partition.start for partition in there), default=floor_to_bucket(now, grain, zone)), oldest)


def _rows_by_partition(copy: DatasetCopy) -> dict[str, int]:
    """How many each partition holds, by its name."""
    place = TableBindings(copy).binding_of(Name(THIS))
    scan = Scan(place.target, (ROWS,), place.part(Reach.EACH_PARTITION, EVERYTHING))
    try:
        rows = run_scan(engine_for(place.target), scan, Limits()).answers[ROWS]
    except CannotRead as problem:
        logger.warning("%s has no baseline: %s", copy, problem)
        return {}
    return {name: many for name, many in rows.items() if name is not None} if isinstance(rows, Mapping) else {}
