"""Who runs what, when: a claim is a conditional update with a lease on the database's clock. Queues only wake workers up."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from uuid import uuid4

from django.db import transaction
from django.db.models import F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from lakehub.catalog.models import DatasetCopy
from lakehub.leases import kept
from quality import slots
from quality.domain.turns import Waiting, in_turn
from quality.models import CopyTurn, TeamTurn, Unit

LEASE = timedelta(seconds=30)
"""How long a worker that died keeps others from its units; a worker that lives extends it."""
BATCH = 200
READ_AHEAD = 20
"""So many copies of the line are looked up at once; workers that meet spread over as many."""
LOOK_AGAIN_S = 1.0
"""A worker that claims again and again goes by the same order for so long; what is more urgent waits no longer than that."""

_LOOKS = 10
"""Where each look is in vain for so long, others are at work."""


@dataclass(frozen=True)
class Claim:
    """Units of one copy that are this worker's for now. `token` proves it when the results are stored."""

    token: str
    units: tuple[Unit, ...]
    has_slots: bool = False


def claim(*, now: datetime, worker: str, limit: int = BATCH) -> Claim | None:
    """The due units of the copy whose turn it is, so that they share scans; None where nothing is due and free."""
    return Line(worker).claim(now=now, limit=limit)


class Line:
    """The copies with due units in the order of their turns, as one worker sees it. See `quality.domain.turns`."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._copies: deque[Waiting] = deque()
        self._places: dict[int, DatasetCopy] = {}
        self._full: list[str] = []
        self._number = 0
        self._looked = 0.0

    def claim(self, *, now: datetime, limit: int = BATCH) -> Claim | None:
        """The next claim. Where others have taken what was in the line, or it has become old, it looks again."""
        for _ in range(_LOOKS):
            if not self._copies or self._is_old():
                self._look(now)
            if not self._copies:
                return None
            claimed = self._first(now, limit)
            if claimed is not None:
                return claimed
        return None

    def _first(self, now: datetime, limit: int) -> Claim | None:
        """What can be claimed first in the line as it is; it is left where it becomes old."""
        while self._copies:
            claimed = self._take(self._copies.popleft(), now, limit)
            if claimed is not None:
                return claimed
            full = slots.full()
            if set(full) != set(self._full):
                self._drop_blocked(full, now)
            else:
                self._drop_taken(now)
            if self._is_old():
                break
        return None

    def _is_old(self) -> bool:
        return time.monotonic() - self._looked > LOOK_AGAIN_S

    def _drop_blocked(self, full: list[str], now: datetime) -> None:
        """The line without all that needs a slot of what is full now, and what is taken: else each would be tried."""
        self._full = full
        free = {one.copy for one in waiting(now, without=full)}
        self._copies = deque(one for one in self._copies if one.copy in free)

    def _drop_taken(self, now: datetime) -> None:
        """What comes next without what other workers took meanwhile; among equals it goes on at another place than they."""
        coming = [self._copies.popleft() for _ in range(min(READ_AHEAD, len(self._copies)))]
        free = {one.copy for one in waiting(now, without=self._full, among=[one.copy for one in coming])}
        left = [one for one in coming if one.copy in free]
        equal = [one for one in left if (one.lane, one.tier) == (left[0].lane, left[0].tier)]
        place = random.randrange(len(equal)) if equal else 0
        self._copies.extendleft(reversed([*equal[place:], *equal[:place], *left[len(equal) :]]))

    def _look(self, now: datetime) -> None:
        self._looked, self._full = time.monotonic(), slots.full()
        self._copies, self._places = deque(in_turn(waiting(now, without=self._full))), {}
        if self._copies:
            self._number = TeamTurn.objects.aggregate(newest=Coalesce(Max("number"), 0))["newest"]

    def _take(self, chosen: Waiting, now: datetime, limit: int) -> Claim | None:
        token = f"{self._worker}:{uuid4().hex}"
        with transaction.atomic():
            free = due(now).filter(slots.not_on(self._full), copy=chosen.copy).order_by("lane", "due_at")
            rows = free.select_related("test__version").select_for_update(of=("self",), skip_locked=True)
            units, has_slots = slots.fitting(_together(list(rows[:limit])), token, until=LEASE)
            if not units:
                return None
            Unit.objects.filter(pk__in=[unit.pk for unit in units]).update(leased_by=token, leased_until=Now() + LEASE)
            self._count_turn(chosen)
        copy = self._place(chosen.copy)
        for unit in units:
            unit.copy, unit.test.dataset = copy, copy.dataset
        return Claim(token, tuple(units), has_slots)

    def _place(self, copy: int) -> DatasetCopy:
        """The copy with its dataset, read with those that come next."""
        if copy not in self._places:
            coming = [copy, *(one.copy for one in islice(self._copies, READ_AHEAD))]
            copies = DatasetCopy.objects.select_related("dataset__feed__connection", "data_center")
            self._places = copies.in_bulk(coming)
        return self._places[copy]

    def _count_turn(self, served: Waiting) -> None:
        """Of workers that count at once two may have one number: then the lower id goes first."""
        self._number += 1
        copy = CopyTurn(copy_id=served.copy, number=self._number)
        team = TeamTurn(team_id=served.team, number=self._number)
        CopyTurn.objects.bulk_create([copy], update_conflicts=True, unique_fields=["copy"], update_fields=["number"])
        TeamTurn.objects.bulk_create([team], update_conflicts=True, unique_fields=["team"], update_fields=["number"])


def due(now: datetime) -> QuerySet[Unit]:
    """Due by the instance's clock, and not leased by the database's."""
    return Unit.objects.filter(Q(leased_until=None) | Q(leased_until__lt=Now()), due_at__lte=now)


def waiting(now: datetime, *, without: Sequence[str] = (), among: Sequence[int] | None = None) -> list[Waiting]:
    """The copies with units that are due, free, and need nothing of what is full (`without`): one look into the index a copy."""
    first = due(now).filter(slots.not_on(without), copy=OuterRef("pk")).order_by("lane", "due_at").values("lane")[:1]
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
    return [Waiting(*row) for row in rows]


def _together(units: Sequence[Unit]) -> list[Unit]:
    """Those of the most urgent lane, and of the others what is tested on the same range: it shares their scans."""
    if not units:
        return []
    ranges = {(unit.start, unit.end) for unit in units if unit.lane == units[0].lane}
    return [unit for unit in units if unit.lane == units[0].lane or (unit.start, unit.end) in ranges]


def held(claimed: Claim) -> AbstractContextManager[None]:
    """Extends the lease while the block runs."""
    return kept(partial(_extend, claimed), every=LEASE / 3)


def mine(claimed: Claim) -> QuerySet[Unit]:
    """The units of the claim whose lease was not lost."""
    return Unit.objects.filter(pk__in=[unit.pk for unit in claimed.units], leased_by=claimed.token)


def _extend(claimed: Claim) -> None:
    mine(claimed).update(leased_until=Now() + LEASE)
    slots.extend(claimed.token, until=LEASE)


def release(claimed: Claim) -> None:
    """Gives back what was not run; it stays due."""
    mine(claimed).update(leased_by="", leased_until=None)
    slots.give_back(claimed.token)
