"""Merging and splitting incidents: spans move, nothing else; who heard of one hears where it goes on."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from incidents import moves, reports, wording, worsening
from incidents.domain import spans
from incidents.domain.lifecycle import Move, State
from incidents.domain.resolution import Resolution
from incidents.messages import outbox
from incidents.messages.outbox import spans_to_tell
from incidents.models import Incident, Span, UserReport
from incidents.values import incident_value, spans_of
from lakehub.kernel.errors import Conflict


def merge(into: int, other: int, *, actor: str, now: datetime, seen: int | None = None) -> Incident:
    """Moves the spans of `other` to `into`; `other` ends as merged. Raises Refused, NotFound, Conflict."""
    with transaction.atomic():
        rows = {number: _locked(number) for number in sorted({into, other})}  # in one order, whoever asks
        target, source = rows[into], rows[other]
        held, had, brought = spans_of([target, source]), spans_to_tell(target), spans_to_tell(source)
        spans.merge(*(incident_value(row, held[row.pk]) for row in (target, source)))
        moves.update(target, {"opened_at": min(target.opened_at, source.opened_at)}, seen=seen)
        Span.objects.filter(incident=source).update(incident=target)
        UserReport.objects.filter(matched=source).update(matched=target)
        fields = {"resolved_at": now, "resolution": Resolution.MERGED.value, "merged_into": target}
        text = f"merged into #{target.pk}"
        moves.make(source, Move.RESOLVE, fields, now=now, actor=actor, text=text)
        moves.note(target, "merged", now=now, actor=actor, text=f"#{source.pk} into this one", other=source.pk)
        _rename(target)
        outbox.enqueue(source, "resolved", brought, now=now, actor=actor, text=text)
        _tell_merged(target, source, _besides(brought, had), now=now)
    return target


def split(number: int, units: Collection[int], *, actor: str, now: datetime, seen: int | None = None) -> Incident:
    """Moves the spans of `units` to a new incident, which is returned. Raises Refused, NotFound, Conflict."""
    with transaction.atomic():
        row = _locked(number)
        stay, go = spans.split(incident_value(row, spans_of([row])[row.pk]), units)
        if spans.is_over(go) or spans.is_over(stay):
            raise Conflict(f"A split of #{number} must leave a failing unit on both sides. Nothing was changed.")
        moves.update(row, {}, seen=seen)
        made = Incident.objects.create(
            dataset=row.dataset,
            category=row.category,
            state=row.state,
            title=row.title,
            opened_at=row.opened_at,
            acknowledged_at=row.acknowledged_at,
            assignee=row.assignee,
            **{name: getattr(row, name) for name in moves.AWAKE},
        )
        Span.objects.filter(incident=row, unit__in=units).update(incident=made)
        moves.note(
            made, "opened", now=now, actor=actor, text=f"split from #{row.pk}", becomes=State(row.state), other=row.pk
        )
        moves.note(row, "split", now=now, actor=actor, text=f"{len(go)} units to #{made.pk}", other=made.pk)
        _rename(row)
        _rename(made)
        reports.follow_split(row, now=now)
        _tell_split(made, row, now=now, actor=actor)
    return made


def _locked(number: int) -> Incident:
    row = moves.locked(number)
    if row.resolved_at is not None or row.reported:
        raise Conflict(f"Only open incidents that tests found are merged or split, and #{number} is {row.state}.")
    return row


def _besides(brought: list[Span], had: list[Span]) -> list[Span]:
    """What fails of these over data over which those did not."""
    places = {worsening.place(span) for span in had if span.ended_at is None}
    return [span for span in brought if span.ended_at is None and worsening.place(span) not in places]


def _tell_merged(target: Incident, source: Incident, more: list[Span], *, now: datetime) -> None:
    """To who heard of the target its data has become more; who heard of the other alone hears where it goes on."""
    if more:
        why = f"#{source.pk} was merged into it: {wording.ranges(more, target.dataset)}"
        worsening.tell(target, why=why, now=now, besides=outbox.heard(source))


def _tell_split(made: Incident, row: Incident, *, now: datetime, actor: str) -> None:
    """Who heard of the one hears of the other, which has its own end; and that somebody has it, if so."""
    told, text = spans_to_tell(made), f"split from #{row.pk}"
    outbox.enqueue(made, "opened", told, now=now, actor=actor, text=text, besides=outbox.heard(row))
    if made.state == State.ACKNOWLEDGED:
        outbox.enqueue(made, "acknowledged", told, now=now, actor=actor, text=text)


def _rename(row: Incident) -> None:
    title = wording.title(row.dataset, [span for span in spans_to_tell(row) if span.ended_at is None])
    Incident.objects.filter(pk=row.pk).update(title=title)
    row.title = title
