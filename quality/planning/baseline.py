"""The baseline: from onboarding on, history is tested too, so that the gate knows the past."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from ingestion.models import Commit, JobKind, JobRun, JobState
from lakehub.catalog.models import Dataset, DatasetCopy, FeedKind
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import BEGINNING, EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, floor_to_bucket, parse_partition_name, partition_at
from quality.domain.generation.definitions import runs_in
from quality.domain.language import THIS, UPSTREAM, Name
from quality.domain.language.measures import ROWS, Reach
from quality.domain.language.values import Failed
from quality.domain.parsed import parsed_or_blank
from quality.domain.scheduling.history import History, history_of
from quality.engines import engine_for, run_scan
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits, Scan
from quality.measuring.slow_sources import source_turn
from quality.measuring.table_bindings import TableBindings
from quality.models import BaselineAttempt
from quality.planning import units
from quality.state.dataset_slas import production_calendar_or_none

logger = logging.getLogger(__name__)

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
    bootstraps = JobRun.objects.filter(kind=JobKind.BOOTSTRAP, copy__rebuild=None)
    bootstrapped = bootstraps.filter(copy=OuterRef("pk"), state=JobState.SUCCEEDED)
    coming = bootstraps.filter(copy__dataset=OuterRef("dataset"), attempt__lte=1, state__in=_ACTIVE_STATES)
    written = ~Q(dataset__feed__kind=FeedKind.CONNECTION) & Exists(Commit.objects.filter(copy=OuterRef("pk")))
    ready = Q(dataset__ingested=False) | ((written | Q(Exists(bootstrapped))) & ~Q(Exists(coming)))
    ready &= Q(baseline_try=None) | Q(baseline_try__retry_at__lte=now)
    waiting = DatasetCopy.objects.filter(
        ready, monitored_from=None, dataset__offboarded_at=None, dataset__coverage__generated_at__isnull=False
    )
    longest_first = F("baseline_try__attempted_at").asc(nulls_first=True)
    related = waiting.select_related("dataset__feed__connection", "connection", "data_center")
    return related.order_by(longest_first, "dataset__tier", "pk")


def start_baseline(copy: DatasetCopy, *, now: datetime) -> bool:
    """Sets `monitored_from` and makes the units of history due, behind what is due now. False: another worker was faster.

    Raises SourceDeferred where as many wait for slow sources as may.
    """
    with source_turn(copy):
        history = _history(copy, now=now)
    begin = _monitored_from(copy.dataset, history, now=now)
    with transaction.atomic():
        if not DatasetCopy.objects.filter(pk=copy.pk, monitored_from=None).update(monitored_from=begin):
            return False
        copy.monitored_from = begin
        live = copy.dataset.tests.filter(retired_at=None, planned=True, version__isnull=False)
        for test in live.select_related("version", "dataset"):
            assert test.version is not None
            if runs_in(parsed_or_blank(test.version.flattened), copy.data_center.name):
                units.plan_units_on_copy(test, copy, now=now, history=history.partitions)
    return True


def _monitored_from(dataset: Dataset, history: History, *, now: datetime) -> datetime:
    """Where the oldest partition that is there starts; without partitions the table is tested whole, whatever its age.

    A copy that is empty, and has nothing to be compared with, has no history to test: it is watched from the present
    partition on, and the results of its tests say what is wrong.
    """
    if dataset.partition_grain is Grain.NONE:
        return BEGINNING
    return history.since or floor_to_bucket(now, dataset.partition_grain, dataset.zone)


def _history(copy: DatasetCopy, *, now: datetime) -> History:
    """What it holds, or what upstream or another copy holds and it should: the newest, whatever their age.

    Raises CannotRead of the copy itself: to take it for empty would leave its history untested for good.
    """
    dataset, places = copy.dataset, TableBindings(copy)
    rows: Counter[Interval] = Counter()
    if dataset.partition_grain is not Grain.NONE:
        rows.update(_rows_by_partition(Name(THIS), places, copy))
        others = dataset.copies.exclude(pk=copy.pk).values_list("data_center__name", flat=True)
        for name in (*(Name(THIS, center) for center in others), Name(UPSTREAM)):
            try:
                rows.update(_rows_by_partition(name, places, copy))
            except CannotRead as problem:
                logger.info("%s has no history by %s: %s", copy, name, problem)
    calendar = production_calendar_or_none(dataset)
    return history_of(rows, grain=dataset.partition_grain, zone=dataset.zone, produced=calendar, now=now)


def _rows_by_partition(name: Name, places: TableBindings, copy: DatasetCopy) -> dict[Interval, int]:
    """How many rows each partition holds of what the name stands for. Raises CannotRead, also where it stands for nothing."""
    place = places.binding_of(name)
    scan = Scan(place.target, (ROWS,), place.part(Reach.EACH_PARTITION, EVERYTHING))
    rows = run_scan(engine_for(place.target), scan, Limits()).answers[ROWS]
    if not isinstance(rows, Mapping):
        raise CannotRead(f"its partitions cannot be counted: {rows.cause if isinstance(rows, Failed) else rows}")
    counts: Counter[Interval] = Counter()
    for value, count in rows.items():
        with suppress(ValueError):  # what is no partition is a finding
            start = parse_partition_name(value or "", place.grain, place.zone).start
            counts[partition_at(start, copy.dataset.partition_grain, copy.dataset.zone)] += count
    return counts
