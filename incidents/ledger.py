"""The incidents of one dataset while a batch of flips is posted to them; written inside the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime

from incidents import moves, reports, wording, worsening
from incidents.domain import spans
from incidents.domain.lifecycle import Move, State
from incidents.domain.resolution import FalsePositive, Resolution, of_pass
from incidents.messages import outbox
from incidents.models import Incident, Span
from incidents.values import incident_value, joinable, spans_of
from incidents.worsening import place
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from quality.models import Category, Flip


@dataclass
class Changes:
    """What a batch did to one incident."""

    occasion: str = ""
    """opened or reopened"""
    began: list[Span] = field(default_factory=list)
    ended: list[Span] = field(default_factory=list)
    resolution: Resolution = Resolution.AUTO


class Ledger:
    """Post flips in the order in which they happened, then settle once."""

    def __init__(self, dataset: Dataset, *, now: datetime) -> None:
        self.dataset = dataset
        self.now = now
        rows = joinable(dataset.pk, now=now)
        held = spans_of(rows)
        self._rows = {row.pk: row for row in rows}
        self._values = {row.pk: incident_value(row, held[row.pk]) for row in rows}
        self._changes: defaultdict[int, Changes] = defaultdict(Changes)

    def post(self, flip: Flip) -> None:
        if flip.becomes == Verdict.FAIL:
            self._begin(flip)
        else:
            self._end(flip)

    def settle(self) -> None:
        """Resolves what is over, names what goes on, and writes events and messages."""
        for number, changes in self._changes.items():
            row = self._rows[number]
            told = outbox.spans_to_tell(row)
            self._note_spans(row, changes)
            if spans.is_over(self._values[number].spans):
                self._resolve(row, changes, told)
            else:
                self._rename(row, [span for span in told if span.ended_at is None])
                if changes.occasion:
                    outbox.enqueue(row, changes.occasion, told, now=self.now)
                elif more := _more(told, changes, self.dataset):
                    worsening.tell(row, why=f"more data fails: {more}", told=told, now=self.now)
            if changes.began:
                reports.match_waiting(row, now=self.now)

    # A unit begins to fail

    def _begin(self, flip: Flip) -> None:
        unit = flip.unit
        span = spans.Span(unit.pk, unit.copy_id, _affected(flip), flip.failing_since or flip.at)
        rivals = [value for value in self._values.values() if value.category == unit.test.category]
        where = spans.place(span, rivals, grain=self.dataset.partition_grain, zone=self.dataset.zone, now=self.now)
        match where:
            case spans.Known():
                return
            case spans.Join(number):
                pass
            case spans.Reopen(number):
                self._reopen(number)
            case spans.Open():
                number = self._open(unit.test.category)
        self._values[number] = replace(self._values[number], spans=(*self._values[number].spans, span))
        self._changes[number].began.append(
            Span.objects.create(
                incident=self._rows[number],
                unit=unit,
                copy_id=span.copy,
                start=span.data.start,
                end=span.data.end,
                began_at=span.began_at,
            )
        )

    def _open(self, category: str) -> int:
        row = Incident.objects.create(
            dataset=self.dataset,
            category=category,
            title=f"{self.dataset.name}: {Category(category).label}",
            opened_at=self.now,
        )
        moves.note(row, "opened", now=self.now, becomes=State.OPEN)
        self._rows[row.pk], self._values[row.pk] = row, incident_value(row, ())
        self._changes[row.pk].occasion = "opened"
        return row.pk

    def _reopen(self, number: int) -> None:
        row = self._rows[number]
        self._values[number] = replace(self._values[number], resolved_at=None)
        if row.state != State.RESOLVED:
            return  # it was over for a moment within this batch only
        moves.make(row, Move.REOPEN, {"resolved_at": None, "acknowledged_at": None, "resolution": ""}, now=self.now)
        self._changes[number].occasion = "reopened"

    # A unit fails no more

    def _end(self, flip: Flip) -> None:
        ended_at = flip.result.read_at if flip.result else flip.at
        for number, value in self._values.items():
            if not any(span.unit == flip.unit_id for span in value.active):
                continue
            left = spans.end(value.spans, unit=flip.unit_id, at=ended_at)
            resolved_at = flip.at if spans.is_over(left) else None
            self._values[number] = replace(value, spans=left, resolved_at=resolved_at)
            self._write_end(number, flip.unit_id)
            self._changes[number].resolution = _how(flip)

    def _write_end(self, number: int, unit: int) -> None:
        ended = next(span for span in reversed(self._values[number].spans) if span.unit == unit)
        active = Span.objects.filter(incident=number, unit=unit, ended_at=None)
        self._changes[number].ended.extend(active)
        active.update(ended_at=ended.ended_at)

    # At the end of the batch

    def _note_spans(self, row: Incident, changes: Changes) -> None:
        for kind, rows in (("span_opened", changes.began), ("span_closed", changes.ended)):
            if rows:
                moves.note(
                    row,
                    kind,
                    now=self.now,
                    text=wording.ranges(rows, self.dataset),
                    units=[span.unit_id for span in rows],
                )

    def _resolve(self, row: Incident, changes: Changes, told: list[Span]) -> None:
        if row.state == State.RESOLVED:
            return
        if changes.occasion:
            self._rename(row, told)
        how = changes.resolution
        text = _ENDINGS[how]
        fields = {"resolved_at": self.now, "resolution": how.value}
        if how is Resolution.FALSE_POSITIVE:
            fields["false_positive"] = FalsePositive.WRONG_TEST.value
        moves.make(row, Move.RESOLVE, fields, now=self.now, text=text)
        if not changes.occasion:  # else it came and went: nobody was told that it began
            outbox.enqueue(row, "resolved", told, now=self.now, text=text)
        reports.follow(row, now=self.now)

    def _rename(self, row: Incident, told: list[Span]) -> None:
        title = wording.title(self.dataset, told)
        if title != row.title:
            Incident.objects.filter(pk=row.pk).update(title=title)
            row.title = title


def _more(told: list[Span], changes: Changes, dataset: Dataset) -> str:
    """The data that fails besides, where more partitions or copies fail than did before the batch; else nothing."""
    began = {span.pk for span in changes.began}
    after = [span for span in told if span.ended_at is None]
    before = {place(span) for span in (*after, *changes.ended) if span.pk not in began}
    if len(set(map(place, after))) <= len(before):
        return ""
    return wording.ranges([span for span in after if place(span) not in before], dataset)


_ENDINGS = {
    Resolution.AUTO: "A rerun passed.",
    Resolution.MANUAL_RERUN: "A rerun by hand passed.",
    Resolution.FALSE_POSITIVE: "The test was retired.",
    Resolution.ACCEPTED: "What failed was accepted.",
}


def _how(flip: Flip) -> Resolution:
    """A run that passed; or, with no run behind it, a waiver: that of a test that was retired is a false positive."""
    if flip.result is not None:
        return of_pass(flip.result.trigger)
    waived = flip.unit.waiver
    return Resolution(waived) if waived else Resolution.AUTO


def _affected(flip: Flip) -> Interval:
    """The unit's range; for freshness everything from the boundary on up to which the data is complete."""
    unit = flip.unit
    boundary = flip.affected_from or unit.affected_from
    if unit.test.category == Category.FRESHNESS and boundary is not None:
        return spans.stale_from(boundary)
    return Interval(unit.start, unit.end)
