"""An incident gets worse: more data fails, or it matters more. That ends a snooze which waited for it, and is told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from incidents.domain.alerting.routing import Recipient
from incidents.lifecycle import snoozes
from incidents.models import Incident, Span
from incidents.notifications import outbox
from incidents.record import snooze, transitions


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
    outbox.enqueue(incident, outbox.WORSE_OCCASION, loaded_spans, now=now, text=why, besides=besides)


def newly_affected(span_rows: Iterable[Span], started: Iterable[Span], ended: Iterable[Span]) -> list[Span]:
    """What fails besides, where more partitions or copies fail than did before these spans started and ended."""
    began = {span.pk for span in started}
    after = [span for span in span_rows if span.ended_at is None]
    before = {affected_partition(span) for span in (*after, *ended) if span.pk not in began}
    more = [span for span in after if affected_partition(span) not in before]
    return more if len(set(map(affected_partition, after))) > len(before) else []


def affected_partition(span: Span) -> tuple[int, datetime, datetime]:
    """Which data of which copy; an incident gets worse when there are more of these."""
    return span.copy_id, span.start, span.end
