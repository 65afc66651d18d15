"""What ingestion remembers for a while: the runs of its jobs, and which partitions each commit touched."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from ingestion.models import JobRun, TouchedPartition
from lakehub.pruning import prune


def forget_runs(*, now: datetime, kept: timedelta) -> int:
    """Deletes runs that ended longer ago than `kept`; their commits stay.

    The newest of a copy, kind and state stays however old: whether the copy is loaded, when it was looked at last and
    since when a job fails is read from it.
    """
    newer = JobRun.objects.filter(
        copy=OuterRef("copy"), kind=OuterRef("kind"), state=OuterRef("state"), pk__gt=OuterRef("pk")
    )
    return prune(JobRun.objects.all(), age="ended_at", before=now - kept, where=Q(Exists(newer)))


def forget_touched(*, now: datetime, kept: timedelta) -> int:
    """Deletes touched partitions that were claimed longer ago than `kept`; what nobody has claimed is still to be tested."""
    return prune(TouchedPartition.objects.all(), age="claimed_at", before=now - kept)
