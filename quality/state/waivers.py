"""What a person decided about failing units: they count no more until they pass, or their test gets a new version."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from quality.domain.verdicts.unit_verdict import UnitFacts, Waiver, lift_waiver
from quality.domain.verdicts.unit_verdict import waive as waived
from quality.models import Lane, Unit
from quality.state.unit_state import apply_facts, save_units, unit_facts

MAX_PRIORITY_UNITS = 50
"""So many units of one request go ahead of what is due."""
_DUE_SOON = timedelta(hours=1)
"""What is due by then keeps its turn: behind the late ones it might come later than that."""


def waive_units(units: Collection[int], waiver: Waiver, *, now: datetime) -> list[Unit]:
    """Waives those of the units that are failing; each whose verdict changes leaves a Flip. What is waived is not rerun.

    One that has passed meanwhile is left alone: a waiver would hide its next failure.
    """
    failing = Q(first_fail_at__isnull=False)
    return _update_facts(units, failing, lambda facts: waived(facts, waiver, at=now), now=now)


def lift_waivers(units: Collection[int], *, now: datetime) -> list[Unit]:
    """Takes back what people decided, as when a resolution is undone: what still fails counts again, and is rerun."""
    decided = Q(waiver__in=(Waiver.FALSE_POSITIVE, Waiver.ACCEPTED))
    with transaction.atomic():
        lifted = _update_facts(units, decided, lift_waiver, now=now)
        # What is waived is not rerun: nothing else would ever find out that it passes.
        request_rerun([unit.pk for unit in lifted if unit.first_fail_at is not None], now=now, lane=Lane.DUE)
    return lifted


def request_rerun(units: Collection[int], *, now: datetime, lane: Lane = Lane.REQUESTED) -> int:
    """Makes the units due now; what a person asked for goes ahead of everything else. The number that was not due already.

    Of one request so many do as are soon over, the newest ranges first. The others wait behind what is due, so that
    whoever asks for years of history keeps nobody's alarms waiting.
    """
    if lane is Lane.REQUESTED:
        # Also of what is due already, and of what waits behind it.
        Unit.objects.filter(pk__in=units, read_anew=False).update(read_anew=True)
    if lane is not Lane.REQUESTED or len(units) <= MAX_PRIORITY_UNITS:
        return _make_due(Unit.objects.filter(pk__in=units), lane, now)
    newest = Unit.objects.filter(pk__in=units).order_by("-end", "-start", "pk").values_list("pk", flat=True)
    first = list(newest[:MAX_PRIORITY_UNITS])
    others = Unit.objects.filter(pk__in=set(units).difference(first))
    soon = others.filter(lane=Lane.DUE, due_at__gt=now, due_at__lte=now + _DUE_SOON)
    return (
        _make_due(Unit.objects.filter(pk__in=first), lane, now)
        + soon.count()
        + _make_due(others.exclude(pk__in=soon.values("pk")), Lane.LATE, now)
    )


def _make_due(units: QuerySet[Unit], lane: Lane, now: datetime) -> int:
    return units.exclude(lane__lte=lane, due_at__lte=now).update(due_at=now, lane=lane)


def _update_facts(
    units: Collection[int], which: Q, change: Callable[[UnitFacts], UnitFacts], *, now: datetime
) -> list[Unit]:
    with transaction.atomic():
        chosen = Unit.objects.filter(which, pk__in=units).order_by("pk")
        rows = list(chosen.select_for_update(of=("self",)).select_related("test__version"))
        save_units(rows, [apply_facts(unit, change(unit_facts(unit)), now=now) for unit in rows])
    return rows
