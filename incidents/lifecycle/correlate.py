"""The incidents of one dataset while a batch of flips is added to them; written inside the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db.models import Prefetch, Q

from incidents.domain.incident import spans
from incidents.domain.incident.resolution import FalsePositive, Resolution, resolution_of_pass
from incidents.domain.incident.state_machine import IncidentState, Transition
from incidents.lifecycle import escalate, user_reports
from incidents.models import Incident, Span
from incidents.notifications import outbox
from incidents.record import texts, transitions
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from quality.models import Category, Flip


@dataclass
class IncidentChanges:
    """What a batch did to one incident."""

    occasion: str = ""
    """opened or reopened"""
    started_spans: list[Span] = field(default_factory=list)
    ended_spans: list[Span] = field(default_factory=list)
    resolution: Resolution = Resolution.AUTO


class Correlator:
    """Add flips in the order in which they happened, then write once."""

    def __init__(self, dataset: Dataset, *, now: datetime) -> None:
        self.dataset = dataset
        self.now = now
        recent = Q(resolved_at=None) | Q(resolved_at__gt=now - spans.REOPEN_WITHIN)
        joinable = dataset.incidents.select_for_update().filter(recent, reported=False).order_by("pk")
        by_age = Prefetch("spans", Span.objects.order_by("began_at", "pk"))
        self._rows = {row.pk: row for row in joinable.prefetch_related(by_age)}
        self._values = {row.pk: row.as_value(row.spans.all()) for row in self._rows.values()}
        self._changes: defaultdict[int, IncidentChanges] = defaultdict(IncidentChanges)

    def add_flip(self, flip: Flip) -> None:
        if flip.becomes == Verdict.FAIL:
            self._start_span(flip)
        else:
            self._end_span(flip)

    # A unit begins to fail

    def _start_span(self, flip: Flip) -> None:
        unit = flip.unit
        span = spans.Span(unit.pk, unit.copy_id, _affected_range(flip), flip.failing_since or flip.at)
        rivals = [value for value in self._values.values() if value.category == unit.test.category]
        where = spans.place_span(span, rivals, grain=self.dataset.partition_grain, zone=self.dataset.zone, now=self.now)
        match where:
            case spans.AlreadyActive():
                return
            case spans.JoinIncident(number):
                pass
            case spans.ReopenIncident(number):
                self._reopen_incident(number)
            case spans.OpenIncident():
                number = self._open_incident(unit.test.category)
        self._values[number] = replace(self._values[number], spans=(*self._values[number].spans, span))
        self._changes[number].started_spans.append(
            Span.objects.create(
                incident=self._rows[number],
                unit=unit,
                copy_id=span.copy,
                start=span.data.start,
                end=span.data.end,
                began_at=span.began_at,
            )
        )

    def _open_incident(self, category: str) -> int:
        row = Incident.objects.create(
            dataset=self.dataset,
            category=category,
            title=f"{self.dataset.name}: {Category(category).label}",
            opened_at=self.now,
        )
        self._rows[row.pk], self._values[row.pk] = row, row.as_value(())
        self._changes[row.pk].occasion = "opened"
        return row.pk

    def _reopen_incident(self, number: int) -> None:
        row = self._rows[number]
        self._values[number] = replace(self._values[number], resolved_at=None)
        if row.state != IncidentState.RESOLVED:
            return  # it was over for a moment within this batch only
        transitions.apply_transition(
            row, Transition.REOPEN, {"resolved_at": None, "acknowledged_at": None, "resolution": ""}, now=self.now
        )
        self._changes[number].occasion = "reopened"

    # A unit fails no more

    def _end_span(self, flip: Flip) -> None:
        ended_at = flip.result.read_at if flip.result else flip.at
        for number, value in self._values.items():
            if not any(span.unit == flip.unit_id for span in value.active):
                continue
            left = spans.end_span(value.spans, unit=flip.unit_id, at=ended_at)
            resolved_at = flip.at if spans.is_over(left) else None
            self._values[number] = replace(value, spans=left, resolved_at=resolved_at)
            self._write_span_end(number, flip.unit_id)
            self._changes[number].resolution = _resolution_of(flip)

    def _write_span_end(self, number: int, unit: int) -> None:
        ended = next(span for span in reversed(self._values[number].spans) if span.unit == unit)
        active = Span.objects.filter(incident=number, unit=unit, ended_at=None)
        self._changes[number].ended_spans.extend(active)
        active.update(ended_at=ended.ended_at)

    # At the end of the batch

    def write_changes(self) -> None:
        """Names what goes on, resolves what is over, and writes events and messages."""
        for number, changes in self._changes.items():
            self._write_incident(self._rows[number], self._values[number], changes)

    def _write_incident(self, row: Incident, value: spans.Incident, changes: IncidentChanges) -> None:
        """First what it says, then its events, then who hears of it."""
        span_rows, is_over = texts.spans_with_details(row), spans.is_over(value.spans)
        title = texts.describe_incident(row, span_rows).title
        if title != row.title and (changes.occasion or not is_over):
            Incident.objects.filter(pk=row.pk).update(title=title)
            row.title = title
        if changes.occasion == "opened":
            transitions.add_event(row, "opened", now=self.now, becomes=IncidentState.OPEN)
        for kind, rows in (("span_opened", changes.started_spans), ("span_closed", changes.ended_spans)):
            if rows:
                text, units = texts.ranges_text(rows, self.dataset), [span.unit_id for span in rows]
                transitions.add_event(row, kind, now=self.now, text=text, units=units)
        if is_over:
            self._resolve_incident(row, changes, span_rows)
        elif changes.occasion:
            outbox.enqueue(row, changes.occasion, span_rows, now=self.now)
        elif more := escalate.newly_affected(span_rows, changes.started_spans, changes.ended_spans):
            text = texts.ranges_text(more, self.dataset)
            escalate.escalate(row, why=f"more data fails: {text}", loaded_spans=span_rows, now=self.now)
        if changes.started_spans:
            user_reports.match_waiting_reports(row, now=self.now)

    def _resolve_incident(self, row: Incident, changes: IncidentChanges, span_rows: list[Span]) -> None:
        if row.state == IncidentState.RESOLVED:
            return
        how = changes.resolution
        text = _RESOLUTION_TEXTS[how]
        fields = {"resolved_at": self.now, "resolution": how.value}
        if how is Resolution.FALSE_POSITIVE:
            fields["false_positive"] = FalsePositive.WRONG_TEST.value
        transitions.apply_transition(row, Transition.RESOLVE, fields, now=self.now, text=text)
        if not changes.occasion:  # else it came and went: nobody was told that it began
            outbox.enqueue(row, "resolved", span_rows, now=self.now, text=text)
        user_reports.resolve_matched_reports(row, now=self.now)


_RESOLUTION_TEXTS = {
    Resolution.AUTO: "A rerun passed.",
    Resolution.MANUAL_RERUN: "A rerun by hand passed.",
    Resolution.FALSE_POSITIVE: "The test was retired.",
    Resolution.ACCEPTED: "What failed was accepted.",
}


def _resolution_of(flip: Flip) -> Resolution:
    """A run that passed; or, with no run behind it, a waiver: that of a test that was retired is a false positive."""
    if flip.result is not None:
        return resolution_of_pass(flip.result.trigger)
    waived = flip.unit.waiver
    return Resolution(waived) if waived else Resolution.AUTO


def _affected_range(flip: Flip) -> Interval:
    """The unit's range; for freshness everything from the boundary on up to which the data is complete."""
    unit = flip.unit
    boundary = flip.affected_from or unit.affected_from
    if unit.test.category == Category.FRESHNESS and boundary is not None:
        return spans.stale_from(boundary)
    return Interval(unit.start, unit.end)
