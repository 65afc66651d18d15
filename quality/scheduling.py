"""Who runs what, when: a claim is a conditional update with a lease on the database's clock. Queues only wake workers up."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import uuid4

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from lakehub.leases import kept
from quality.models import Lane, Unit

LEASE = timedelta(seconds=30)
"""How long a worker that died keeps others from its units; a worker that lives extends it."""
BATCH = 200


@dataclass(frozen=True)
class Claim:
    """Units of one copy and lane that are this worker's for now. `token` proves it when the results are stored."""

    token: str
    lane: Lane
    units: tuple[Unit, ...]


def claim(*, now: datetime, worker: str, limit: int = BATCH) -> Claim | None:
    """The most urgent due units of one copy, so that they share scans; None where nothing is due and free."""
    head = due(now).order_by("lane", "due_at").values_list("lane", "copy_id").first()
    if head is None:
        return None
    lane, copy_id = head
    wanted = list(due(now).filter(lane=lane, copy_id=copy_id).order_by("due_at").values_list("pk", flat=True)[:limit])
    token = f"{worker}:{uuid4().hex}"
    due(now).filter(pk__in=wanted).update(leased_by=token, leased_until=Now() + LEASE)
    mine = Unit.objects.filter(pk__in=wanted, leased_by=token).select_related(
        "test__version", "test__dataset__feed__connection", "copy__dataset__feed__connection", "copy__data_center"
    )
    units = tuple(mine.order_by("due_at"))
    return Claim(token, Lane(lane), units) if units else None


def due(now: datetime) -> QuerySet[Unit]:
    """Due by the instance's clock, and not leased by the database's."""
    return Unit.objects.filter(Q(leased_until=None) | Q(leased_until__lt=Now()), due_at__lte=now)


def held(claimed: Claim) -> AbstractContextManager[None]:
    """Extends the lease while the block runs."""
    return kept(partial(_extend, claimed), every=LEASE / 3)


def _extend(claimed: Claim) -> None:
    Unit.objects.filter(leased_by=claimed.token).update(leased_until=Now() + LEASE)


def release(claimed: Claim) -> None:
    """Gives back what was not run; it stays due."""
    Unit.objects.filter(leased_by=claimed.token).update(leased_by="", leased_until=None)
