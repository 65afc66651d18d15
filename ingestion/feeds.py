"""What is due: a copy that was never loaded gets a bootstrap, every other one an incremental each time its feed's interval has passed.

Loaded means: a bootstrap has succeeded since the last drop. One that was given up is asked for again after the feed's interval.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Max, OuterRef, QuerySet, Subquery

from ingestion import runs
from ingestion.domain.lag import lag
from ingestion.models import JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict

LOOKS = (JobKind.BOOTSTRAP, JobKind.INCREMENTAL)
"""The runs that read what is new in the source."""


def ask_for_what_is_due(*, now: datetime) -> list[JobRun]:
    """What is known of a copy's newest runs is a look into an index for each, however many there were."""
    copies = fed().annotate(
        loaded=_newest("pk", kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED),
        dropped=_newest("pk", kind=JobKind.DROP, state=JobState.SUCCEEDED),
        failed_at=_newest("ended_at", kind=JobKind.BOOTSTRAP, state=JobState.FAILED),
        began_at=_newest("started_at", kind=JobKind.BOOTSTRAP, started_at__isnull=False),
        looked_at=_newest("started_at", kind=JobKind.INCREMENTAL, started_at__isnull=False),
    )
    asked = []
    for copy in copies:
        is_loaded = (copy.loaded or 0) > (copy.dropped or 0)
        last = (copy.looked_at, copy.began_at) if is_loaded else (copy.failed_at,)
        if all(at is None or at + copy.dataset.feed.every <= now for at in last):
            asked.append(_ask(copy, JobKind.INCREMENTAL if is_loaded else JobKind.BOOTSTRAP, now))
    return [run for run in asked if run is not None]


def fed() -> QuerySet[DatasetCopy]:
    """Copies that Lakehub feeds, and that no job is at work on."""
    at_work = JobRun.objects.filter(state__in=runs.LIVE).values("copy")
    live = DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None, dataset__feed__paused=False)
    return live.exclude(pk__in=at_work).select_related("dataset__feed", "data_center")


def lag_of(copy: DatasetCopy, *, now: datetime) -> timedelta | None:
    """How far the copy may be behind its source: what was committed there since the last look that took everything in is not known to be here."""
    dropped = copy.runs.filter(kind=JobKind.DROP, state=JobState.SUCCEEDED).aggregate(at=Max("pk"))["at"]
    looks = copy.runs.filter(kind__in=LOOKS, state=JobState.SUCCEEDED, pk__gt=dropped or 0)
    complete_upto = looks.aggregate(at=Max("started_at"))["at"]
    return lag(complete_upto=complete_upto, every=copy.dataset.feed.every, now=now)


def _newest(fact: str, **which: object) -> Subquery:
    return Subquery(JobRun.objects.filter(copy=OuterRef("pk"), **which).order_by("-pk").values(fact)[:1])


def _ask(copy: DatasetCopy, kind: JobKind, now: datetime) -> JobRun | None:
    try:
        return runs.ask(copy, kind, asked_by=runs.SCHEDULE, now=now)
    except Conflict:
        # Another scheduler was faster.
        return None
