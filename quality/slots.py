"""How many claims may run at once on what is scarce: an engine, or one connection of an engine.

A slot is a row with a lease, taken in the transaction that claims the units and given back in the one that stores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Now

from lakehub.kernel.errors import Conflict
from quality.models import Slot, Unit

FREE = Q(leased_until=None) | Q(leased_until__lt=Now())


def needed(uses: str) -> dict[str, int]:
    """The limited resources that a unit with this `uses` takes, with their limits: of `sqlalchemy:ops` the engine and the connection."""
    engine, _, connection = uses.partition(":")
    limits: dict[str, int] = settings.LAKEHUB_ENGINE_LIMITS
    found = {engine: limits[engine]} if engine in limits else {}
    return found | {uses: settings.LAKEHUB_CONNECTION_LIMIT} if connection else found


def full() -> list[str]:
    """The resources of which every slot is taken."""
    taken = Slot.objects.exclude(FREE).values_list("resource").annotate(Count("pk"))
    return [resource for resource, count in taken if count >= needed(resource).get(resource, count + 1)]


def not_on(resources: Iterable[str]) -> Q:
    """The units that use none of them."""
    blocked = Q(pk__in=[])
    for resource in resources:
        blocked |= Q(uses=resource) | Q(uses__startswith=f"{resource}:")
    return ~blocked


def fitting(units: Collection[Unit], token: str, *, until: timedelta) -> tuple[list[Unit], bool]:
    """Those of the units for which every slot could be taken, and whether any was. Call it in the claim's transaction."""
    able: dict[str, bool] = {}
    for uses in sorted({unit.uses for unit in units}):
        able[uses] = _take_all(needed(uses), token, until)
    return [unit for unit in units if able[unit.uses]], any(needed(uses) for uses, has in able.items() if has)


@contextmanager
def held(limits: dict[str, int], busy: str, *, until: timedelta) -> Iterator[None]:
    """A slot of each resource around what a request runs itself. Raises Conflict, which says `busy`, where one has none left."""
    token = uuid4().hex
    with transaction.atomic():
        has_all = _take_all(limits, token, until)
    if not has_all:
        raise Conflict(busy)
    try:
        yield
    finally:
        give_back(token)


def held_for_scans(uses: str, *, until: timedelta) -> AbstractContextManager[None]:
    """What a unit with this `uses` would take, for a request that scans by itself."""
    limits = needed(uses)
    if not limits:
        return nullcontext()
    most = ", ".join(f"{limit} at once on {resource}" for resource, limit in limits.items())
    return held(limits, f"Others are reading there just now (at most {most}): try again in a moment.", until=until)


def _take_all(limits: dict[str, int], token: str, until: timedelta) -> bool:
    held = (
        set(Slot.objects.filter(leased_by=token, resource__in=limits).values_list("resource", flat=True))
        if limits
        else set()
    )
    taken: list[int] = []
    for resource, limit in limits.items():
        if resource not in held:
            slot = _free(resource, limit)
            if slot is None:
                Slot.objects.filter(pk__in=taken).update(leased_by="", leased_until=None)
                return False
            Slot.objects.filter(pk=slot).update(leased_by=token, leased_until=Now() + until)
            taken.append(slot)
    return True


def _free(resource: str, limit: int) -> int | None:
    """A free slot, locked; one that another worker is just taking is not."""
    for made in (False, True):
        free = Slot.objects.filter(FREE, resource=resource, number__lt=limit).order_by("number")
        slot = free.select_for_update(skip_locked=True).values_list("pk", flat=True).first()
        if slot is not None or made or Slot.objects.filter(resource=resource).count() >= limit:
            return slot
        rows = [Slot(resource=resource, number=number) for number in range(limit)]
        Slot.objects.bulk_create(rows, ignore_conflicts=True)
    return None


def extend(token: str, *, until: timedelta) -> None:
    Slot.objects.filter(leased_by=token).update(leased_until=Now() + until)


def give_back(token: str) -> None:
    Slot.objects.filter(leased_by=token).update(leased_by="", leased_until=None)
