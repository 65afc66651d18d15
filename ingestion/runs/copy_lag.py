"""How far a copy may be behind its source."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Max

from ingestion.domain.lag import lag
from ingestion.models import JobKind, JobState
from lakehub.catalog.models import DatasetCopy

SYNC_KINDS = (JobKind.BOOTSTRAP, JobKind.INCREMENTAL)
"""The runs that read what is new in the source."""


def lag_of_copy(copy: DatasetCopy, *, now: datetime) -> timedelta | None:
    """How far the copy may be behind its source: what was committed there since the last look that took everything in is not known to be here."""
    dropped = copy.runs.filter(kind=JobKind.DROP, state=JobState.SUCCEEDED).aggregate(at=Max("pk"))["at"]
    looks = copy.runs.filter(kind__in=SYNC_KINDS, state=JobState.SUCCEEDED, pk__gt=dropped or 0)
    complete_upto = looks.aggregate(at=Max("started_at"))["at"]
    return lag(complete_upto=complete_upto, every=copy.dataset.feed.every, now=now)
