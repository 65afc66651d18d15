"""Leases by the database's clock: who may write a copy, and whose a run is. A lease that was not renewed is free again."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import DateTimeField, ExpressionWrapper, Q
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from ingestion.models import CopyLease, JobRun, JobState
from lakehub.catalog.models import DatasetCopy

LEASE_DURATION = timedelta(seconds=60)
"""Renewed every quarter of it."""


def lease_end(lease: timedelta = LEASE_DURATION) -> Combinable:
    """The database's time, and `lease` more."""
    return ExpressionWrapper(Now() + lease, output_field=DateTimeField[datetime, datetime]())


def acquire(copy: DatasetCopy, holder: str, lease: timedelta = LEASE_DURATION) -> bool:
    """True where `holder` may write the copy now; taking it again renews it."""
    CopyLease.objects.get_or_create(copy=copy)
    free = Q(holder="") | Q(holder=holder) | Q(until__lt=Now())
    return bool(CopyLease.objects.filter(free, copy=copy).update(holder=holder, until=lease_end(lease)))


def hold_off(copies: Collection[int]) -> None:
    """Until the transaction ends no worker begins to write these copies: whoever wants to waits, and then reads them anew."""
    CopyLease.objects.bulk_create([CopyLease(copy_id=copy) for copy in copies], ignore_conflicts=True)
    list(CopyLease.objects.select_for_update(of=("self",)).filter(copy__in=copies).order_by("pk"))


def holder_name(host: str, process: int, serial: str) -> str:
    return f"{host}:{process}:{serial}"


def release_leases_of_dead_processes(host: str) -> int:
    """Leases of processes of this host that have ended need not run out: a worker that was killed is succeeded at once. How many were freed."""
    runs = JobRun.objects.filter(state=JobState.RUNNING, leased_by__startswith=f"{host}:")
    copies = CopyLease.objects.filter(holder__startswith=f"{host}:")
    holders = {*runs.values_list("leased_by", flat=True), *copies.values_list("holder", flat=True)}
    dead = [holder for holder in holders if not _is_running(int(holder.split(":")[1]))]
    if not dead:
        return 0
    return runs.filter(leased_by__in=dead).update(leased_until=lease_end(-LEASE_DURATION)) + copies.filter(
        holder__in=dead
    ).update(holder="", until=None)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def release(copy: DatasetCopy, holder: str) -> None:
    CopyLease.objects.filter(copy=copy, holder=holder).update(holder="", until=None)
