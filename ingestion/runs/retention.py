"""What ingestion remembers for a while: the runs of its jobs, and which partitions each commit touched."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from ingestion.models import JobRun, TouchedPartition
from lakehub.db.batch_delete import delete_old_rows


def delete_old_runs(*, now: datetime, retention: timedelta) -> int:
    """Deletes runs that ended longer ago than `retention`; their commits stay.

    The newest of a copy, kind and state stays however old: whether the copy is loaded, when it was looked at last and
    since when a job fails is read from it.
    """
    newer = JobRun.objects.filter(
        copy=OuterRef("copy"), kind=OuterRef("kind"), state=OuterRef("state"), pk__gt=OuterRef("pk")
    )
    return delete_old_rows(JobRun.objects.all(), age="ended_at", before=now - retention, where=Q(Exists(newer)))


def delete_old_touched_partitions(*, now: datetime, retention: timedelta) -> int:
    """Deletes touched partitions that were claimed longer ago than `retention`; what nobody has claimed is still to be tested.

    Those of the future stay until their time comes: that rows lie there is a finding until then.
    """
    return delete_old_rows(
        TouchedPartition.objects.all(), age="claimed_at", before=now - retention, where=Q(start__lte=now)
    )
