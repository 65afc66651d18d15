"""What the failing runs of an incident saw, kept when it heals: results go after some weeks, an incident's evidence does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from incidents.models import Incident, Span, SpanEvidence
from lakehub.kernel.outcome import Outcome
from quality.execution.row_rights import RowRights
from quality.models import Result, Unit

MAX_SPANS = 500
"""Of one incident, those that began first: thousands that fail together have one cause."""
_BATCH = 200


@dataclass(frozen=True)
class Evidence:
    """The last failing run of a span: what it observed against what was needed, and the rest that it saw."""

    span: Span
    read_at: datetime
    observed: float | None
    threshold: str
    detail: dict[str, Any]

    @property
    def as_result(self) -> Result:
        """Not stored (any more): to be shown as results are."""
        return Result(
            unit=self.span.unit,
            outcome=Outcome.FAIL,
            read_at=self.read_at,
            observed=self.observed,
            threshold=self.threshold,
            detail=self.detail,
        )

    def seen_by(self, rights: RowRights) -> Evidence:
        """Without the records, where they are not the viewer's to see."""
        return replace(self, detail=rights.visible_detail(self.span.unit.test.dataset, self.detail))

    @property
    def missing(self) -> list[dict[str, Any]]:
        """The records that were named as missing."""
        named = self.detail.get("missing")
        return [record for record in named if isinstance(record, dict)] if isinstance(named, list) else []


def keep_evidence(spans: Sequence[Span]) -> int:
    """Stores what the last failing run of each of the first MAX_SPANS saw, in place of what was stored before. How many."""
    kept = 0
    for batch in _batches(sorted(spans, key=lambda span: (span.began_at, span.pk))[:MAX_SPANS]):
        rows = [
            SpanEvidence(
                span=span,
                read_at=result.read_at,
                observed=result.observed,
                threshold=result.threshold,
                detail=result.detail,
            )
            for span, result in _last_failures(batch)
        ]
        SpanEvidence.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["span"],
            update_fields=["read_at", "observed", "threshold", "detail"],
        )
        kept += len(rows)
    return kept


def keep_evidence_of_open_incidents() -> int:
    """Before results are let go: a table that cannot be read for weeks leaves its last failing run behind."""
    kept, last = 0, 0
    active = Span.objects.filter(ended_at=None).order_by("pk")
    while batch := list(active.filter(pk__gt=last)[:_BATCH]):
        kept, last = kept + keep_evidence(batch), batch[-1].pk
    return kept


def evidence_of(incident: Incident) -> list[Evidence]:
    """Of the first MAX_SPANS that have any, as they began: of those that fail the newest run, of others what was kept. Three queries a batch."""
    rows = Span.objects.filter(incident=incident).select_related(
        "evidence", "unit__test__dataset", "unit__copy__data_center", "copy__data_center"
    )
    spans = list(rows.order_by("began_at", "pk")[:MAX_SPANS])
    active = [span for span in spans if span.ended_at is None]
    seen: dict[int, Evidence] = {span.pk: _of_unit(span) for span in active if _fails_now(span.unit)}
    for batch in _batches([span for span in active if span.pk not in seen]):
        seen |= {span.pk: _evidence(span, result) for span, result in _last_failures(batch)}
    for span in spans:
        kept = getattr(span, "evidence", None)
        if span.pk not in seen and kept is not None:
            seen[span.pk] = _evidence(span, kept)
    return [seen[span.pk] for span in spans if span.pk in seen]


def _batches(spans: Sequence[Span]) -> Iterator[Sequence[Span]]:
    return (spans[at : at + _BATCH] for at in range(0, len(spans), _BATCH))


def _evidence(span: Span, seen: Result | SpanEvidence) -> Evidence:
    detail = seen.detail if isinstance(seen.detail, dict) else {}
    return Evidence(span, seen.read_at, seen.observed, seen.threshold, detail)


def _fails_now(unit: Unit) -> bool:
    """Its row has what the newest run saw, and that failed."""
    return unit.latest_outcome == Outcome.FAIL and unit.latest_at is not None


def _of_unit(span: Span) -> Evidence:
    unit = span.unit
    detail = unit.detail if isinstance(unit.detail, dict) else {}
    return Evidence(span, unit.latest_at or span.began_at, unit.observed, unit.threshold, detail)


def _last_failures(spans: Sequence[Span]) -> Iterator[tuple[Span, Result]]:
    """Two queries."""
    failures: QuerySet[Result] = Result.objects.filter(
        unit=OuterRef("unit"), outcome=Outcome.FAIL, read_at__gte=OuterRef("began_at")
    ).order_by("-read_at", "-pk")
    last = dict(
        Span.objects.filter(pk__in=[span.pk for span in spans])
        .annotate(last_failure=Subquery(failures.values("pk")[:1]))
        .values_list("pk", "last_failure")
    )
    results = Result.objects.in_bulk([number for number in last.values() if number is not None])
    for span in spans:
        number = last.get(span.pk)
        if number is not None:
            yield span, results[number]
