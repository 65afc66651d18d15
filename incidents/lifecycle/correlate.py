"""The incidents of one dataset while a batch of flips is added to them; written inside the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Prefetch, Q

from incidents.domain.incident import spans
from incidents.domain.incident.placement import (
    REOPEN_WITHIN,
    AlreadyActive,
    JoinIncident,
    OpenIncident,
    Placements,
    ReopenIncident,
)
from incidents.domain.incident.resolution import FalsePositive, Resolution, resolution_of_pass
from incidents.domain.incident.state_machine import IncidentState, Transition
from incidents.lifecycle import escalate, user_reports
from incidents.models import Incident, Span
from incidents.notifications import outbox
from incidents.record import evidence, texts, transitions
from lakehub.catalog.models import Dataset
from lakehub.db.bulk_update import bulk_update
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from quality.domain.verdicts.unit_verdict import Waiver
from quality.models import Category, Flip

SPANS_A_STATEMENT = 1000


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

    def __init__(self, dataset: Dataset, units: Collection[int], *, now: datetime) -> None:
        """`units`: those of the flips."""
        self.dataset = dataset
        self.now = now
        recent = Q(resolved_at=None) | Q(resolved_at__gt=now - REOPEN_WITHIN)
        joinable = dataset.incidents.select_for_update().filter(recent, reported=False).order_by("pk")
        counting_spans = Span.objects.filter(Q(ended_at=None) | Q(unit__in=units)).select_related("copy__data_center")
        self._rows = {row.pk: row for row in joinable.prefetch_related(Prefetch("spans", counting_spans))}
        self._active_rows = {
            span.unit_id: span for row in self._rows.values() for span in row.spans.all() if span.ended_at is None
        }
        self._placements = {category: self._placements_of(category) for category in Category.values}
        self._new_spans: list[Span] = []
        self._changes: defaultdict[int, IncidentChanges] = defaultdict(IncidentChanges)

    def _placements_of(self, category: str) -> Placements:
        values = [row.as_value(row.spans.all()) for row in self._rows.values() if row.category == category]
        return Placements(values, grain=self.dataset.partition_grain, zone=self.dataset.zone, now=self.now)

    def add_flip(self, flip: Flip) -> None:
        if flip.becomes == Verdict.FAIL:
            self._start_span(flip)
        else:
            self._end_span(flip)

    # A unit begins to fail

    def _start_span(self, flip: Flip) -> None:
        unit, placements = flip.unit, self._placements[flip.unit.test.category]
        span = spans.Span(unit.pk, unit.copy_id, _affected_range(flip), flip.failing_since or flip.at)
        match placements.place(span):
            case AlreadyActive():
                return
            case JoinIncident(number):
                pass
            case ReopenIncident(number):
                self._reopen_incident(number)
            case OpenIncident():
                number = self._open_incident(unit.test.category)
        placements.begin(number, span)
        row = Span(
            incident=self._rows[number],
            unit=unit,
            copy=unit.copy,
            start=span.data.start,
            end=span.data.end,
            began_at=span.began_at,
        )
        self._active_rows[unit.pk] = row
        self._new_spans.append(row)
        self._changes[number].started_spans.append(row)

    def _open_incident(self, category: str) -> int:
        row = Incident.objects.create(
            dataset=self.dataset,
            category=category,
            title=f"{self.dataset.name}: {Category(category).label}",
            opened_at=self.now,
        )
        self._rows[row.pk] = row
        self._placements[category].add_incident(row.as_value(()))
        self._changes[row.pk].occasion = "opened"
        return row.pk

    def _reopen_incident(self, number: int) -> None:
        row = self._rows[number]
        if row.state != IncidentState.RESOLVED:
            return  # it was over for a moment within this batch only
        transitions.apply_transition(
            row, Transition.REOPEN, {"resolved_at": None, "acknowledged_at": None, "resolution": ""}, now=self.now
        )
        self._changes[number].occasion = "reopened"

    # A unit fails no more

    def _end_span(self, flip: Flip) -> None:
        ended = self._placements[flip.unit.test.category].end(flip.unit_id, at=flip.at)
        if ended is None:
            return
        number, span = ended
        row = self._active_rows.pop(flip.unit_id)
        row.ended_at = max(flip.result.read_at if flip.result else flip.at, span.began_at)
        self._changes[number].ended_spans.append(row)
        self._changes[number].resolution = _resolution_of(flip)

    # At the end of the batch

    def write_changes(self) -> None:
        """Names what goes on, resolves what is over, and writes events and messages."""
        self._write_spans()
        for number, changes in self._changes.items():
            self._write_incident(self._rows[number], changes)

    def _write_spans(self) -> None:
        """A unit that failed, passed and fails again has two; what ended is written before what is active."""
        ended_spans = [span for changes in self._changes.values() for span in changes.ended_spans]
        bulk_update([span for span in ended_spans if span.pk is not None], ["ended_at"])
        Span.objects.bulk_create(self._new_spans, batch_size=SPANS_A_STATEMENT)

    def _write_incident(self, row: Incident, changes: IncidentChanges) -> None:
        """First what it says, then its events, then who hears of it."""
        span_rows, is_over = texts.spans_with_details(row), self._placements[row.category].is_over(row.pk)
        title = texts.describe_incident(row, span_rows).title
        if title != row.title and (changes.occasion or not is_over):
            Incident.objects.filter(pk=row.pk).update(title=title)
            row.title = title
        if changes.occasion == "opened":
            transitions.add_event(row, "opened", now=self.now, becomes=IncidentState.OPEN)
        if changes.ended_spans:
            evidence.keep_evidence(changes.ended_spans)
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
    Resolution.FALSE_POSITIVE: "The test was retired, or the calendar expects no data there any more.",
    Resolution.ACCEPTED: "What failed was accepted.",
}


def _resolution_of(flip: Flip) -> Resolution:
    """A run that passed; or, with no run behind it, a waiver: that of a test that was retired is a false positive, and so is
    what failed for want of data that nobody produces."""
    if flip.result is not None:
        return resolution_of_pass(flip.result.trigger)
    waived = flip.unit.waiver
    if waived == Waiver.NOT_EXPECTED:
        return Resolution.FALSE_POSITIVE
    return Resolution(waived) if waived else Resolution.AUTO


def _affected_range(flip: Flip) -> Interval:
    """The unit's range; for freshness everything from the boundary on up to which the data is complete."""
    unit = flip.unit
    boundary = flip.affected_from or unit.affected_from
    if unit.test.category == Category.FRESHNESS and boundary is not None:
        return spans.stale_from(boundary)
    return Interval(unit.start, unit.end)
