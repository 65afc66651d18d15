"""What a person decided about failing units: they count no more until they pass, or their test gets a new version."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from django.db import transaction

from quality.domain.verdicts import UnitFacts, Waiver, lift_waiver
from quality.domain.verdicts import waive as waived
from quality.facts import FIELDS, JUDGED, facts_of, settle
from quality.models import Lane, Unit


def waive(units: Collection[int], waiver: Waiver, *, now: datetime) -> list[Unit]:
    """Waives the units; each whose verdict changes leaves a Flip. A streak that is waived is not rerun any more."""
    return _change(units, lambda facts: waived(facts, waiver, at=now), now=now)


def lift(units: Collection[int], *, now: datetime) -> list[Unit]:
    """Takes waivers back, as when a resolution is undone: what still fails counts again."""
    return _change(units, lift_waiver, now=now)


def ask_rerun(units: Collection[int], *, now: datetime) -> int:
    """Makes the units due now, ahead of everything else. The number that was not under way already."""
    idle = Unit.objects.filter(pk__in=units).exclude(lane=Lane.ASKED, due_at__lte=now)
    return idle.update(due_at=now, lane=Lane.ASKED)


def _change(units: Collection[int], change: Callable[[UnitFacts], UnitFacts], *, now: datetime) -> list[Unit]:
    with transaction.atomic():
        rows = list(
            Unit.objects.select_for_update(of=("self",))
            .select_related("test__version")
            .filter(pk__in=units)
            .order_by("pk")
        )
        for unit in rows:
            settle(unit, change(facts_of(unit)), now=now)
        Unit.objects.bulk_update(rows, (*FIELDS, *JUDGED))
    return rows
