"""An incident gets worse: more data fails, or it matters more. That ends a snooze which waited for it, and is told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from incidents import moves, snoozing
from incidents.domain.routing import Recipient
from incidents.messages import outbox
from incidents.models import Incident, Span


def tell(
    incident: Incident,
    *,
    why: str,
    now: datetime,
    told: list[Span] | None = None,
    besides: Iterable[Recipient] = (),
) -> None:
    """Call it inside the transaction of the change. `told` are the spans, where the caller has read them."""
    moves.note(incident, "worse", now=now, text=why)
    if snoozing.is_snoozed(incident, now=now) and incident.snoozed_until_worse:
        snoozing.wake(incident, f"worse: {why}", now=now)
    spans = outbox.spans_to_tell(incident) if told is None else told
    outbox.enqueue(incident, outbox.WORSE, spans, now=now, text=why, besides=besides)


def place(span: Span) -> tuple[int, datetime, datetime]:
    """Which data of which copy; an incident gets worse when there are more of these."""
    return span.copy_id, span.start, span.end
