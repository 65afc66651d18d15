"""How long it took until what was real was detected, acknowledged and resolved.

Measured of detected incidents from the first failure of their first unit to the moment they were opened (so the sustain
period is in it), and of acknowledged reports from when it began to be wrong, as far as the reporter knows, to the report;
from there until somebody acknowledged it; and from there until it was resolved, by whom or whatever. After a reopening the
acknowledgement of the new round counts, from the first opening on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Min, QuerySet

from incidents.domain.reactions import Reaction, reaction
from incidents.models import Incident
from incidents.scores.behind import reacted, real
from incidents.scores.lives import as_text, instant, plain_rows
from incidents.scores.scope import ALL, Scope
from lakehub.kernel.interval import Interval


@dataclass(frozen=True)
class Reactions:
    """Detect and acknowledge: of incidents opened in the window. Resolve: of those resolved in it."""

    detect: Reaction
    acknowledge: Reaction
    resolve: Reaction


def reactions_of(window: Interval, scope: Scope = ALL) -> Reactions:
    """Six queries, over the incidents of the window and those that are open."""
    within = Incident.objects.filter(scope.of_datasets("dataset__"), **_category(scope))
    opened = within.filter(reacted("detect", window))
    unseen = opened.filter(acknowledged_at=None, resolved_at=None).count()
    still_open = within.filter(real(), resolved_at=None, opened_at__lt=window.end).count()
    resolved = within.filter(reacted("resolve", window))
    return Reactions(
        detect=reaction(_until_detected(opened.filter(reported=False), opened.filter(reported=True))),
        acknowledge=reaction(
            _between(opened.filter(acknowledged_at__isnull=False), "opened_at", "acknowledged_at"), unseen
        ),
        resolve=reaction(_between(resolved, "opened_at", "resolved_at"), still_open),
    )


def _category(scope: Scope) -> dict[str, str]:
    return {"category": scope.category} if scope.category else {}


def _until_detected(detected: QuerySet[Incident], told: QuerySet[Incident]) -> Iterator[timedelta]:
    began = detected.annotate(began=Min("spans__began_at")).filter(began__isnull=False).order_by()
    yield from _between(began, "began", "opened_at")
    yield from _between(told, "report__occurred_at", "opened_at")


def _between(rows: QuerySet[Any, Any], start_column: str, end_column: str) -> Iterator[timedelta]:
    """From the first to the second; never less than nothing, where a reporter's clock ran ahead."""
    for start, end in plain_rows(rows.values_list(as_text(start_column), as_text(end_column))):
        yield max(instant(end) - instant(start), timedelta())
