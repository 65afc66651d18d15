"""How many claims may run at once on what is scarce: an engine, or one connection of an engine.

A slot is a row with a lease, taken in the transaction that claims the units and given back in the one that stores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from uuid import uuid4

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from lakehub.kernel.errors import Conflict
from quality.models import ConcurrencySlot, SlowSource

UNLEASED = Q(leased_until=None) | Q(leased_until__lt=Now())


@contextmanager
def slots_held(limits: dict[str, int], busy: str, *, until: timedelta) -> Iterator[None]:
    """A slot of each resource around what a request runs itself. Raises Conflict, which says `busy`, where one has none left."""
    token = uuid4().hex
    with transaction.atomic():
        has_all = take_slots(limits, token, until)
    if not has_all:
        raise Conflict(busy)
    try:
        yield
    finally:
        release_slots(token)


def scan_slots_held(uses: str, *, until: timedelta) -> AbstractContextManager[None]:
    """What a unit with this `uses` would take, for a request that scans by itself."""
    limits = ConcurrencySlot.limits_of(uses)
    if not limits:
        return nullcontext()
    most = ", ".join(f"{limit} at once on {resource}" for resource, limit in limits.items())
    return slots_held(
        limits, f"Others are reading there just now (at most {most}): try again in a moment.", until=until
    )


def take_slots(limits: dict[str, int], token: str, until: timedelta) -> bool:
    leased_resources = (
        set(ConcurrencySlot.objects.filter(leased_by=token, resource__in=limits).values_list("resource", flat=True))
        if limits
        else set()
    )
    taken: list[int] = []
    for resource, limit in limits.items():
        if resource not in leased_resources:
            slot = _free_slot(resource, limit)
            if slot is None:
                ConcurrencySlot.objects.filter(pk__in=taken).update(leased_by="", leased_until=None)
                return False
            ConcurrencySlot.objects.filter(pk=slot).update(leased_by=token, leased_until=Now() + until)
            taken.append(slot)
    return True


def _free_slot(resource: str, limit: int) -> int | None:
    """A free slot, locked; one that another worker is just taking is not."""
    for slots_created in (False, True):
        free = ConcurrencySlot.objects.filter(UNLEASED, resource=resource, number__lt=limit).order_by("number")
        slot = free.select_for_update(skip_locked=True).values_list("pk", flat=True).first()
        if slot is not None or slots_created or ConcurrencySlot.objects.filter(resource=resource).count() >= limit:
            return slot
        rows = [ConcurrencySlot(resource=resource, number=number) for number in range(limit)]
        ConcurrencySlot.objects.bulk_create(rows, ignore_conflicts=True)
    return None


def slow_among(sources: Collection[str]) -> set[str]:
    """Those that are known to be slow, of connections of engines such as `sqlalchemy:ops`."""
    return set(SlowSource.objects.filter(resource__in=sources).values_list("resource", flat=True))


def extend_slots(token: str, *, until: timedelta) -> None:
    ConcurrencySlot.objects.filter(leased_by=token).update(leased_until=Now() + until)


def release_slots(token: str) -> None:
    ConcurrencySlot.objects.filter(leased_by=token).update(leased_by="", leased_until=None)
