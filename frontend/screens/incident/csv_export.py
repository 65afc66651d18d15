"""The missing records of an incident, and those that differ, as CSV that is safe to open in a spreadsheet; also after it healed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from frontend.results.differences_csv import UnitDifferences, differences_csv
from frontend.results.reasons import partition_label_of
from frontend.results.result_details import result_details
from frontend.screens.incident.views import find_incident
from frontend.ui.form_actions import actor_of
from incidents.record.evidence import Evidence, evidence_of
from lakehub.accounts.permissions import require
from lakehub.kernel.output.spreadsheet_csv import csv_lines, escape_formula
from quality.execution.row_rights import RowRights

_COLUMNS = ("data_range", "data_center", "test", "read_at")


@require_safe
def missing_records_csv(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """For who may see rows of the dataset, as on the page. Times are UTC; no value is an empty field."""
    return StreamingHttpResponse(
        csv_lines(_rows(_visible_evidence(request, pk))),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="incident-{pk}-missing.csv"'},
    )


@require_safe
def differing_records_csv(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """For who may see rows of the dataset, as on the page."""
    runs = (
        UnitDifferences(row.span.unit, row.read_at, result_details(row.as_result).records.differences)
        for row in _visible_evidence(request, pk)
    )
    return differences_csv(runs, f"incident-{pk}-differences")


def _visible_evidence(request: HttpRequest, pk: int) -> list[Evidence]:
    incident, viewer = find_incident(pk), actor_of(request)
    require(viewer, "see rows", incident.dataset.team)
    rights = RowRights(viewer)
    return [row.seen_by(rights) for row in evidence_of(incident)]


def _rows(evidence: Sequence[Evidence]) -> Iterator[tuple[str, ...]]:
    """Tests may name records by different columns: all of them, in the order in which they come."""
    keys = list(dict.fromkeys(str(name) for row in evidence for record in row.missing for name in record))
    yield (*_COLUMNS, *(escape_formula(name) for name in keys))
    for row in evidence:
        about = (
            partition_label_of(row.span.unit),
            row.span.copy.data_center.name,
            escape_formula(row.span.unit.test.title),
            row.read_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )
        for record in row.missing:
            yield (*about, *(_field(record.get(name)) for name in keys))


def _field(value: Any) -> str:
    return "" if value is None else escape_formula(str(value))
