"""Leases by the database's clock: who may write a copy, and whose a run is. A lease that was not renewed is free again.

A copy's lease is held by a run that is alone on the copy for its whole length, by all others while they write.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from uuid import uuid4

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import DateTimeField, ExpressionWrapper, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from ingestion.models import CopyLease, IndexAllowance, JobRun, JobState, SourcePlace, TapServer
from ingestion.spark.contract.job_kinds import EXCLUSIVE_KINDS
from lakehub.catalog.models import DatasetCopy

logger = logging.getLogger(__name__)
LEASE_DURATION = timedelta(seconds=60)
"""Renewed every quarter of it."""
RUN_SEPARATOR = ":"
"""Between the worker and the run, in the name of a holder: runs of one process are told apart."""


def lease_end(lease: timedelta = LEASE_DURATION) -> Combinable:
    """The database's time, and `lease` more."""
    return ExpressionWrapper(Now() + lease, output_field=DateTimeField[datetime, datetime]())


def acquire(copy: DatasetCopy, holder: str, lease: timedelta = LEASE_DURATION, *, is_shared: bool = False) -> bool:
    """True where `holder` may write the copy now; taking it again renews it."""
    CopyLease.objects.get_or_create(copy=copy)
    free = Q(holder="") | Q(holder=holder) | Q(until__lt=Now())
    taken = {"holder": holder, "until": lease_end(lease), "is_shared": is_shared}
    return bool(CopyLease.objects.filter(free, copy=copy).update(**taken))


def hold_off(copies: Collection[int]) -> None:
    """Until the transaction ends no worker begins to write these copies: whoever wants to waits, and then reads them anew."""
    CopyLease.objects.bulk_create([CopyLease(copy_id=copy) for copy in copies], ignore_conflicts=True)
    list(CopyLease.objects.select_for_update(of=("self",)).filter(copy__in=copies).order_by("pk"))


def holder_name(host: str, process: int, serial: str) -> str:
    return f"{host}:{process}:{serial}"


def own_holder_name() -> str:
    """Of this process; another one each time."""
    return holder_name(socket.gethostname(), os.getpid(), uuid4().hex[:8])


def release_leases_of_dead_processes(host: str) -> int:
    """Leases of processes of this host that have ended need not run out: a worker that was killed is succeeded at once. How many were freed."""
    runs = JobRun.objects.filter(state=JobState.RUNNING, leased_by__startswith=f"{host}:")
    copies = CopyLease.objects.filter(holder__startswith=f"{host}:")
    places = SourcePlace.objects.filter(leased_by__startswith=f"{host}:", leased_until__isnull=False)
    servers = TapServer.objects.filter(leased_by__startswith=f"{host}:")
    allowances = IndexAllowance.objects.filter(leased_by__startswith=f"{host}:")
    holders = {
        *runs.values_list("leased_by", flat=True),
        *copies.values_list("holder", flat=True),
        *places.values_list("leased_by", flat=True),
        *servers.values_list("leased_by", flat=True),
        *allowances.values_list("leased_by", flat=True),
    }
    dead = [holder for holder in holders if not _is_running(int(holder.split(":")[1]))]
    if not dead:
        return 0
    places.filter(leased_by__in=dead).delete()
    allowances.filter(leased_by__in=dead).delete()
    servers.filter(leased_by__in=dead).update(leased_by="", leased_until=None)
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


def may_share(copy: DatasetCopy) -> bool:
    """Whether a run that shares the copy may begin: who holds its lease, if anyone, only writes at the moment.

    Whoever wants the copy for themselves looks for running jobs after they have taken the lease, so one of the two sees the other.
    """
    with transaction.atomic():
        hold_off([copy.pk])
        return not _held(copy).filter(is_shared=False).exists()


def is_free(copy: DatasetCopy) -> bool:
    """Whether nobody writes the copy at the moment: who begins now and has others to see to need not wait for its lease."""
    return not _held(copy).exists()


def _held(copy: DatasetCopy) -> QuerySet[CopyLease]:
    return CopyLease.objects.filter(copy=copy, until__gte=Now()).exclude(holder="")


def lease_of_run(run: JobRun, worker: str) -> CopyWriteLease:
    holder = f"{worker}{RUN_SEPARATOR}{run.pk}"
    return CopyWriteLease(run.copy, holder, is_shared=run.kind not in EXCLUSIVE_KINDS)


@dataclass
class CopyWriteLease:
    """The lease of a copy as a run takes it, and as a thread beside it renews it. A `contract.write_lease.WriteLease`."""

    copy: DatasetCopy
    holder: str
    is_shared: bool = True
    _is_held: bool = False
    _lock: Lock = field(default_factory=Lock)
    """A renewal never takes the lease again that was just released."""

    def try_acquire(self) -> bool:
        """Also False where the database does not answer: a job that has read its source asks again as long as it has time."""
        with self._lock:
            try:
                self._is_held = self._acquire()
            except (DatabaseError, InterfaceError) as problem:
                connection.close()
                logger.warning("%s cannot be leased, which is tried again: %s", self.copy, problem)
                self._is_held = False
            return self._is_held

    def _acquire(self) -> bool:
        return acquire(self.copy, self.holder, is_shared=self.is_shared)

    def renew(self) -> bool:
        """False: it was lost."""
        with self._lock:
            return not self._is_held or self._acquire()

    def release(self) -> None:
        with self._lock:
            self._is_held = False
            release(self.copy, self.holder)


def release(copy: DatasetCopy, holder: str) -> None:
    CopyLease.objects.filter(copy=copy, holder=holder).update(holder="", until=None)
