"""Merging and splitting incidents: spans move, nothing else; who heard of one hears where it goes on."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from incidents.domain.incident import spans
from incidents.domain.incident.resolution import Resolution
from incidents.domain.incident.state_machine import IncidentState, Transition
from incidents.lifecycle import escalate, user_reports
from incidents.models import Incident, Span, UserReport
from incidents.notifications import outbox, recipients
from incidents.record import texts, transitions
from lakehub.kernel.errors import Conflict


def merge_incidents(
    into: int, other: int, *, actor: str, now: datetime, expected_revision: int | None = None
) -> Incident:
    """Moves the spans of `other` to `into`; `other` ends as merged. Raises Refused, NotFound, Conflict."""
    with transaction.atomic():
        rows = {number: _locked_open_incident(number) for number in sorted({into, other})}  # in one order, whoever asks
        target, source = rows[into], rows[other]
        had, brought = texts.spans_with_details(target), texts.spans_with_details(source)
        spans.merge_incidents(target.as_value(had), source.as_value(brought))
        transitions.update_incident(
            target, {"opened_at": min(target.opened_at, source.opened_at)}, expected_revision=expected_revision
        )
        Span.objects.filter(incident=source).update(incident=target)
        UserReport.objects.filter(matched_incident=source).update(matched_incident=target)
        fields = {"resolved_at": now, "resolution": Resolution.MERGED.value, "merged_into": target}
        text = f"merged into #{target.pk}"
        transitions.apply_transition(source, Transition.RESOLVE, fields, now=now, actor=actor, text=text)
        transitions.add_event(
            target, "merged", now=now, actor=actor, text=f"#{source.pk} into this one", other=source.pk
        )
        _update_title(target)
        outbox.enqueue(source, "resolved", brought, now=now, actor=actor, text=text)
        _notify_merged(target, source, _additional_spans(brought, had), now=now)
    return target


def split_incident(
    number: int, units: Collection[int], *, actor: str, now: datetime, expected_revision: int | None = None
) -> Incident:
    """Moves the spans of `units` to a new incident, which is returned. Raises Refused, NotFound, Conflict."""
    with transaction.atomic():
        row = _locked_open_incident(number)
        stay, go = spans.split_incident(row.as_value(texts.spans_with_details(row)), units)
        if spans.is_over(go) or spans.is_over(stay):
            raise Conflict(f"A split of #{number} must leave a failing unit on both sides. Nothing was changed.")
        transitions.update_incident(row, {}, expected_revision=expected_revision)
        new_incident = Incident.objects.create(
            dataset=row.dataset,
            category=row.category,
            state=row.state,
            title=row.title,
            opened_at=row.opened_at,
            acknowledged_at=row.acknowledged_at,
            assignee=row.assignee,
            **{name: getattr(row, name) for name in transitions.NOT_SNOOZED},
        )
        Span.objects.filter(incident=row, unit__in=units).update(incident=new_incident)
        transitions.add_event(
            new_incident,
            "opened",
            now=now,
            actor=actor,
            text=f"split from #{row.pk}",
            becomes=IncidentState(row.state),
            other=row.pk,
        )
        transitions.add_event(
            row, "split", now=now, actor=actor, text=f"{len(go)} units to #{new_incident.pk}", other=new_incident.pk
        )
        _update_title(row)
        _update_title(new_incident)
        user_reports.rematch_after_split(row, now=now)
        _notify_split(new_incident, row, now=now, actor=actor)
    return new_incident


def _locked_open_incident(number: int) -> Incident:
    row = transitions.locked_incident(number)
    if row.resolved_at is not None or row.reported:
        raise Conflict(f"Only open incidents that tests found are merged or split, and #{number} is {row.state}.")
    return row


def _additional_spans(brought: list[Span], had: list[Span]) -> list[Span]:
    """What fails of these over data over which those did not."""
    places = {escalate.affected_partition(span) for span in had if span.ended_at is None}
    return [span for span in brought if span.ended_at is None and escalate.affected_partition(span) not in places]


def _notify_merged(target: Incident, source: Incident, more: list[Span], *, now: datetime) -> None:
    """To who heard of the target its data has become more; who heard of the other alone hears where it goes on."""
    if more:
        why = f"#{source.pk} was merged into it: {texts.ranges_text(more, target.dataset)}"
        escalate.escalate(target, why=why, now=now, besides=recipients.earlier_recipients(source))


def _notify_split(new_incident: Incident, row: Incident, *, now: datetime, actor: str) -> None:
    """Who heard of the one hears of the other, which has its own end; and that somebody has it, if so."""
    new_spans, text = texts.spans_with_details(new_incident), f"split from #{row.pk}"
    outbox.enqueue(
        new_incident, "opened", new_spans, now=now, actor=actor, text=text, besides=recipients.earlier_recipients(row)
    )
    if new_incident.state == IncidentState.ACKNOWLEDGED:
        outbox.enqueue(new_incident, "acknowledged", new_spans, now=now, actor=actor, text=text)


def _update_title(row: Incident) -> None:
    title = texts.describe_incident(row, texts.spans_with_details(row)).title
    Incident.objects.filter(pk=row.pk).update(title=title)
    row.title = title
