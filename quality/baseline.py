"""The baseline: from onboarding on, history is tested too, so that the gate knows the past."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from ingestion.models import JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.calendar import Grain, floor_to_bucket, partition_named
from lakehub.kernel.interval import BEGINNING, EVERYTHING
from quality import units
from quality.domain.expression import THIS, Name
from quality.domain.expression.measures import ROWS, Reach
from quality.domain.expression.values import Failed
from quality.engines import ENGINES
from quality.engines.scan import CannotRead, Limits, Scan
from quality.places import Places

LONGEST = {Grain.HOUR: timedelta(days=60), Grain.DAY: timedelta(days=800), Grain.MONTH: timedelta(days=7300)}
"""History older than this is not tested, and the gate says `unmonitored` of it."""
_COMING = (JobState.QUEUED, JobState.RUNNING)


def start_missing(*, now: datetime, limit: int = 20) -> int:
    """Starts the baseline of the copies that hold data and have none yet. The number started."""
    return sum(start(copy, now=now) for copy in _waiting()[:limit])


def _waiting() -> QuerySet[DatasetCopy]:
    """Bootstrapped, or only watched; with tests to run. Not while another copy, to compare with, is on its first way here."""
    bootstraps = JobRun.objects.filter(kind=JobKind.BOOTSTRAP)
    bootstrapped = bootstraps.filter(copy=OuterRef("pk"), state=JobState.SUCCEEDED)
    coming = bootstraps.filter(copy__dataset=OuterRef("dataset"), attempt__lte=1, state__in=_COMING)
    ready = Q(dataset__ingested=False) | (Exists(bootstrapped) & ~Exists(coming))
    waiting = DatasetCopy.objects.filter(
        ready, monitored_from=None, dataset__offboarded_at=None, dataset__coverage__isnull=False
    )
    return waiting.select_related("dataset__feed__connection", "data_center").order_by("dataset__tier", "pk")


def start(copy: DatasetCopy, *, now: datetime) -> bool:
    """Sets `monitored_from` and makes the units of history due, behind what is due now. False: there is nothing to read yet."""
    begin = _begin(copy, now=now)
    if begin is None:
        return False
    with transaction.atomic():
        if not DatasetCopy.objects.filter(pk=copy.pk, monitored_from=None).update(monitored_from=begin):
            return False
        for test in copy.dataset.tests.filter(retired_at=None).select_related("version", "dataset"):
            units.plan(test, now=now)
    return True


def _begin(copy: DatasetCopy, *, now: datetime) -> datetime | None:
    """Where the oldest partition of the copy starts. A table without partitions is tested whole, whatever its age."""
    dataset = copy.dataset
    if dataset.partition_grain is Grain.NONE:
        return BEGINNING
    place = Places(copy).of(Name(THIS))
    try:
        scan = Scan(place.target, (ROWS,), place.part(Reach.EACH_PARTITION, EVERYTHING))
        rows = ENGINES.get(place.engine)().measure(scan, Limits()).answers[ROWS]
    except CannotRead:
        return None
    if isinstance(rows, Failed) or not isinstance(rows, dict):
        return None
    starts = [
        partition_named(str(name), dataset.partition_grain, dataset.zone).start for name in rows if name is not None
    ]
    if not starts:
        return None
    oldest = floor_to_bucket(now - LONGEST[dataset.partition_grain], dataset.partition_grain, dataset.zone)
    return max(min(starts), oldest)
