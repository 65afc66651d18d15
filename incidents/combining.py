"""Merging and splitting incidents: spans move, nothing else."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from incidents import moves, reports, wording
from incidents.domain import spans
from incidents.domain.lifecycle import Move, State
from incidents.domain.resolution import Resolution
from incidents.models import Incident, Span, UserReport
from incidents.outbox import spans_to_tell
from incidents.values import incident_value, spans_of
from lakehub.kernel.errors import Conflict


def merge(into: int, other: int, *, actor: str, now: datetime, seen: int | None = None) -> Incident:
    """Moves the spans of `other` to `into`; `other` ends as merged. Raises Refused, NotFound, Conflict."""
    with transaction.atomic():
        rows = {number: _locked(number) for number in sorted({into, other})}  # in one order, whoever asks
        target, source = rows[into], rows[other]
        held = spans_of([target, source])
        spans.merge(*(incident_value(row, held[row.pk]) for row in (target, source)))
        moves.update(target, {"opened_at": min(target.opened_at, source.opened_at)}, seen=seen)
        Span.objects.filter(incident=source).update(incident=target)
        UserReport.objects.filter(matched=source).update(matched=target)
        fields = {"resolved_at": now, "resolution": Resolution.MERGED.value, "merged_into": target}
        moves.make(source, Move.RESOLVE, fields, now=now, actor=actor, text=f"merged into #{target.pk}")
        moves.note(target, "merged", now=now, actor=actor, text=f"#{source.pk} into this one", other=source.pk)
        _rename(target)
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
        )
        Span.objects.filter(incident=row, unit__in=units).update(incident=made)
        moves.note(
            made, "opened", now=now, actor=actor, text=f"split from #{row.pk}", becomes=State(row.state), other=row.pk
        )
        moves.note(row, "split", now=now, actor=actor, text=f"{len(go)} units to #{made.pk}", other=made.pk)
        _rename(row)
        _rename(made)
        reports.follow_split(row, now=now)
    return made


def _locked(number: int) -> Incident:
    moves.find(number)
    row = Incident.objects.select_for_update(of=("self",)).select_related("dataset__team").get(pk=number)
    if row.resolved_at is not None or row.reported:
        raise Conflict(f"Only open incidents that tests found are merged or split, and #{number} is {row.state}.")
    return row


def _rename(row: Incident) -> None:
    title = wording.title(row.dataset, [span for span in spans_to_tell(row) if span.ended_at is None])
    Incident.objects.filter(pk=row.pk).update(title=title)
    row.title = title
