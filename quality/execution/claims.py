"""Who runs what, when: a claim is a conditional update with a lease on the database's clock. Queues only wake workers up."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from uuid import uuid4

from django.db import transaction
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from lakehub.catalog.models import DatasetCopy
from quality.domain.scheduling.fair_queue import QueuedCopy, fair_order
from quality.measuring import concurrency
from quality.measuring.concurrency import UNLEASED, slow_among, take_slots
from quality.models import SLOW_SOURCES, ConcurrencySlot, CopyTurn, SlowSource, TeamTurn, Unit

LEASE_DURATION = timedelta(seconds=30)
"""How long a worker that died keeps others from its units; a worker that lives extends it."""
CLAIM_BATCH = 200
PREFETCHED_COPIES = 20
"""So many copies of the line are looked up at once; workers that meet spread over as many."""
REFRESH_AFTER_S = 1.0
"""A worker that claims again and again goes by the same order for so long; what is more urgent waits no longer than that."""

_MAX_REFRESHES = 10
"""Where each look is in vain for so long, others are at work."""


@dataclass(frozen=True)
class Claim:
    """Units of one copy that are this worker's for now. `token` proves it when the results are stored."""

    token: str
    units: tuple[Unit, ...]
    has_slots: bool = False


def claim_due_units(*, now: datetime, worker: str, limit: int = CLAIM_BATCH) -> Claim | None:
    """The due units of the copy whose turn it is, so that they share scans; None where nothing is due and free."""
    return ClaimQueue(worker).claim(now=now, limit=limit)


class ClaimQueue:
    """The copies with due units in the order of their turns, as one worker sees it. See `quality.domain.scheduling.fair_queue`."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._copies: deque[QueuedCopy] = deque()
        self._copy_rows: dict[int, DatasetCopy] = {}
        self._full: list[str] = []
        self._turn_number = 0
        self._refreshed_at = 0.0

    def claim(self, *, now: datetime, limit: int = CLAIM_BATCH) -> Claim | None:
        """The next claim. Where others have taken what was in the line, or it has become old, it looks again."""
        for _ in range(_MAX_REFRESHES):
            if not self._copies or self._is_stale():
                self._refresh(now)
            if not self._copies:
                return None
            claimed = self._claim_first(now, limit)
            if claimed is not None:
                return claimed
        return None

    def _claim_first(self, now: datetime, limit: int) -> Claim | None:
        """What can be claimed first in the line as it is; it is left where it becomes old."""
        while self._copies:
            claimed = self._claim_copy(self._copies.popleft(), now, limit)
            if claimed is not None:
                return claimed
            full = full_resources()
            if set(full) != set(self._full):
                self._drop_blocked(full, now)
            else:
                self._drop_taken(now)
            if self._is_stale():
                break
        return None

    def _is_stale(self) -> bool:
        return time.monotonic() - self._refreshed_at > REFRESH_AFTER_S

    def _drop_blocked(self, full: list[str], now: datetime) -> None:
        """The line without all that needs a slot of what is full now, and what is taken: else each would be tried."""
        self._full = full
        free = {queued_copy.copy for queued_copy in copies_waiting(now, without=full)}
        self._copies = deque(queued_copy for queued_copy in self._copies if queued_copy.copy in free)

    def _drop_taken(self, now: datetime) -> None:
        """What comes next without what other workers took meanwhile; among equals it goes on at another place than they."""
        coming = [self._copies.popleft() for _ in range(min(PREFETCHED_COPIES, len(self._copies)))]
        free = {
            queued_copy.copy
            for queued_copy in copies_waiting(
                now, without=self._full, among=[queued_copy.copy for queued_copy in coming]
            )
        }
        left = [queued_copy for queued_copy in coming if queued_copy.copy in free]
        equal = [
            queued_copy for queued_copy in left if (queued_copy.lane, queued_copy.tier) == (left[0].lane, left[0].tier)
        ]
        place = random.randrange(len(equal)) if equal else 0
        self._copies.extendleft(reversed([*equal[place:], *equal[:place], *left[len(equal) :]]))

    def _refresh(self, now: datetime) -> None:
        self._refreshed_at, self._full = time.monotonic(), full_resources()
        self._copies, self._copy_rows = deque(fair_order(copies_waiting(now, without=self._full))), {}
        if self._copies:
            self._turn_number = TeamTurn.objects.aggregate(newest=Coalesce(Max("number"), 0))["newest"]

    def _claim_copy(self, chosen: QueuedCopy, now: datetime, limit: int) -> Claim | None:
        token = f"{self._worker}:{uuid4().hex}"
        with transaction.atomic():
            free = due_units(now).filter(avoiding(self._full), copy=chosen.copy).order_by("lane", "due_at")
            rows = free.select_related("test__version").select_for_update(of=("self",), skip_locked=True)
            units, has_slots = units_with_slots(_sharing_scans(list(rows[:limit])), token, until=LEASE_DURATION)
            if not units:
                return None
            Unit.objects.filter(pk__in=[unit.pk for unit in units]).update(
                leased_by=token, leased_until=Now() + LEASE_DURATION
            )
            self._count_turn(chosen)
        copy = self._copy_row(chosen.copy)
        for unit in units:
            unit.copy, unit.test.dataset = copy, copy.dataset
        return Claim(token, tuple(units), has_slots)

    def _copy_row(self, copy: int) -> DatasetCopy:
        """The copy with its dataset, read with those that come next."""
        if copy not in self._copy_rows:
            coming = [copy, *(queued_copy.copy for queued_copy in islice(self._copies, PREFETCHED_COPIES))]
            copies = DatasetCopy.objects.select_related("dataset__feed__connection", "connection", "data_center")
            self._copy_rows = copies.in_bulk(coming)
        return self._copy_rows[copy]

    def _count_turn(self, served: QueuedCopy) -> None:
        """Of workers that count at once two may have one number: then the lower id goes first."""
        self._turn_number += 1
        copy = CopyTurn(copy_id=served.copy, number=self._turn_number)
        team = TeamTurn(team_id=served.team, number=self._turn_number)
        CopyTurn.objects.bulk_create([copy], update_conflicts=True, unique_fields=["copy"], update_fields=["number"])
        TeamTurn.objects.bulk_create([team], update_conflicts=True, unique_fields=["team"], update_fields=["number"])


def due_units(now: datetime) -> QuerySet[Unit]:
    """Due by the instance's clock, and not leased by the database's."""
    return Unit.objects.filter(Q(leased_until=None) | Q(leased_until__lt=Now()), due_at__lte=now)


def copies_waiting(
    now: datetime, *, without: Sequence[str] = (), among: Sequence[int] | None = None
) -> list[QueuedCopy]:
    """The copies with units that are due, free, and need nothing of what is full (`without`): one look into the index a copy."""
    first = due_units(now).filter(avoiding(without), copy=OuterRef("pk")).order_by("lane", "due_at").values("lane")[:1]
    chosen = DatasetCopy.objects.all() if among is None else DatasetCopy.objects.filter(pk__in=among)
    copies = chosen.annotate(lane=Subquery(first)).exclude(lane=None)
    rows = copies.values_list(
        "pk",
        "lane",
        "dataset__tier",
        "dataset__team",
        Coalesce(F("dataset__team__turn__number"), 0),
        Coalesce(F("turn__number"), 0),
    )
    return [QueuedCopy(*row) for row in rows]


def _sharing_scans(units: Sequence[Unit]) -> list[Unit]:
    """Those of the most urgent lane, and of the others what is tested on the same range: it shares their scans."""
    if not units:
        return []
    ranges = {(unit.start, unit.end) for unit in units if unit.lane == units[0].lane}
    return [unit for unit in units if unit.lane == units[0].lane or (unit.start, unit.end) in ranges]


def extend_lease(claimed: Claim) -> None:
    _owned_units(claimed).update(leased_until=Now() + LEASE_DURATION)
    concurrency.extend_slots(claimed.token, until=LEASE_DURATION)


def release_claim(claimed: Claim) -> None:
    """Gives back what was not run; it stays due."""
    _owned_units(claimed).update(leased_by="", leased_until=None)
    concurrency.release_slots(claimed.token)


def _owned_units(claimed: Claim) -> QuerySet[Unit]:
    """The units of the claim whose lease was not lost."""
    return Unit.objects.filter(pk__in=[unit.pk for unit in claimed.units], leased_by=claimed.token)


def full_resources() -> list[str]:
    """The resources of which every slot is taken; where that is those of slow sources, each source that is slow."""
    taken = ConcurrencySlot.objects.exclude(UNLEASED).values_list("resource").annotate(Count("pk"))
    full = [
        resource for resource, count in taken if count >= ConcurrencySlot.limits_of(resource).get(resource, count + 1)
    ]
    if SLOW_SOURCES in full:
        full += SlowSource.objects.values_list("resource", flat=True)
    return full


def avoiding(resources: Iterable[str]) -> Q:
    """The units that use none of them."""
    blocked = Q(pk__in=[])
    for resource in resources:
        blocked |= Q(resource=resource) | Q(resource__startswith=f"{resource}:")
    return ~blocked


def units_with_slots(units: Collection[Unit], token: str, *, until: timedelta) -> tuple[list[Unit], bool]:
    """Those of the units for which every slot could be taken, and whether any was. Call it in the claim's transaction."""
    able: dict[str, bool] = {}
    limited = False
    resources = {unit.resource for unit in units}
    of_connections = {uses for uses in resources if ":" in uses}
    slow = slow_among(of_connections) if of_connections else set()
    for uses in sorted(resources):
        limits = ConcurrencySlot.limits_of(uses) | (ConcurrencySlot.limits_of(SLOW_SOURCES) if uses in slow else {})
        able[uses] = not limits or take_slots(limits, token, until)
        limited |= bool(limits) and able[uses]
    return [unit for unit in units if able[unit.resource]], limited
