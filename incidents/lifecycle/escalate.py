"""An incident gets worse: more data fails, or it matters more. That ends a snooze which waited for it, and is told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from incidents.domain.alerting.routing import Recipient
from incidents.lifecycle import snoozes
from incidents.models import Incident, Span
from incidents.notifications import outbox
from incidents.record import mappers, snooze, transitions


def escalate(
    incident: Incident,
    *,
    why: str,
    now: datetime,
    loaded_spans: list[Span] | None = None,
    besides: Iterable[Recipient] = (),
) -> None:
    """Call it inside the transaction of the change. `loaded_spans`: its spans, where the caller has read them."""
    transitions.add_event(incident, "worse", now=now, text=why)
    if snooze.is_snoozed(incident, now=now) and incident.snoozed_until_worse:
        snoozes.end_snooze(incident, f"worse: {why}", now=now)
    spans = mappers.spans_with_details(incident) if loaded_spans is None else loaded_spans
    outbox.enqueue(incident, outbox.WORSE_OCCASION, spans, now=now, text=why, besides=besides)


def affected_partition(span: Span) -> tuple[int, datetime, datetime]:
    """Which data of which copy; an incident gets worse when there are more of these."""
    return span.copy_id, span.start, span.end
