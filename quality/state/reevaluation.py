"""Evaluates verdicts again that time alone may have changed."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from quality.models import Unit
from quality.state.unit_state import apply_facts, save_units, unit_facts


def reevaluate_due_units(*, now: datetime, limit: int = 500) -> int:
    """Judges again the units whose verdict time alone may have changed. The number judged."""
    with transaction.atomic():
        waiting = list(
            Unit.objects.filter(reevaluate_at__lte=now).order_by("reevaluate_at").values_list("pk", flat=True)[:limit]
        )
        rows = Unit.objects.filter(pk__in=waiting).select_related("test__version")
        units = list(rows.select_for_update(of=("self",), skip_locked=True)) if waiting else []
        save_units(units, [apply_facts(unit, unit_facts(unit), now=now) for unit in units])
    return len(units)
