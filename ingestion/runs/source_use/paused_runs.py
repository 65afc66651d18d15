"""Runs of datasets whose ingestion a person has paused: they keep their position and their sums, and go on when it is resumed.

A run that is at work is not touched: a load of several commits asks `is_paused` between two of them, and all others make one commit. A follow
run is taken from its process, which ends the batch that it is in. Deletes and drops read no source, and are not paused.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import Error as DatabaseProblem
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import job_runs
from lakehub.catalog.models import DatasetCopy, Feed

logger = logging.getLogger(__name__)


def apply_pauses(*, now: datetime) -> int:
    """Pauses the runs of datasets that were paused, and queues those of datasets that were resumed. How many changed."""
    is_idle = Q(state__in=job_runs.READY) | Q(state=JobState.RUNNING, leased_until__lt=Now())
    may_pause = JobRun.objects.filter(is_idle | Q(state=JobState.RUNNING, kind=JobKind.FOLLOW))
    paused = JobRun.objects.filter(state=JobState.PAUSED)
    nobodys = {"leased_by": "", "leased_until": None, "attempt": 0, "error": ""}
    return _update(may_pause, may_pause.filter(job_runs.reads_what_is_paused()), state=JobState.PAUSED, **nobodys) + (
        _update(paused, paused.exclude(job_runs.reads_what_is_paused()), state=JobState.QUEUED, due_at=now)
    )


def is_paused(copy: DatasetCopy) -> bool:
    """What a job at work is told. It goes on where the database does not answer."""
    try:
        return Feed.objects.filter(dataset=copy.dataset_id, paused=True).exists()
    except DatabaseProblem:
        logger.warning("Whether ingestion of %s is paused cannot be read: the job goes on", copy, exc_info=True)
        return False


def _update(runs: QuerySet[JobRun], chosen: QuerySet[JobRun], **changes: object) -> int:
    """Most of the time there are none, and nothing is written."""
    pks = list(chosen.values_list("pk", flat=True))
    return runs.filter(pk__in=pks).update(**changes) if pks else 0
