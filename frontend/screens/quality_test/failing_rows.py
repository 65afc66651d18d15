"""Rows that fail a test, as tables and as CSV, for members of the team that owns them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, StreamingHttpResponse

from frontend.results.reasons import partition_label_of
from frontend.ui.form_actions import actor_of
from lakehub.accounts.permissions import can, require
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.output.spreadsheet_csv import csv_lines, escape_formula
from quality.models import FailingRows, QualityTest

MAX_RANGES = 3
"""Data ranges whose rows stand on the page."""


@dataclass(frozen=True)
class ShownSample:
    measure: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    why: str


@dataclass(frozen=True)
class ShownRows:
    """Of one unit. `fails`: it still does."""

    unit: int
    data: str
    read_at: datetime
    fails: bool
    samples: tuple[ShownSample, ...]


def failing_rows_of_test(
    request: HttpRequest, dataset: Dataset, test: QualityTest, copy: DatasetCopy | None
) -> list[ShownRows]:
    """The newest ranges of the copy; nothing for who may not see rows of the dataset."""
    if copy is None or not can(actor_of(request), "see rows", dataset.team):
        return []
    kept = FailingRows.objects.filter(unit__test=test, unit__copy=copy)
    newest = kept.select_related("unit__copy__dataset", "unit__test__dataset").order_by("-unit__start")[:MAX_RANGES]
    return [_shown(row) for row in newest]


def failing_rows_csv(request: HttpRequest, dataset: Dataset, test: QualityTest, unit: int) -> StreamingHttpResponse:
    """Raises PermissionDenied, and Http404 where the unit has none."""
    require(actor_of(request), "see rows", dataset.team)
    kept = FailingRows.objects.filter(unit=unit, unit__test=test).first()
    if kept is None:
        raise Http404(f"{dataset.name} keeps no rows that fail `{test.key}` there.")
    return StreamingHttpResponse(
        csv_lines(_csv_rows(kept)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{dataset.name}.{test.key.replace(":", "-")}.rows.csv"'},
    )


def _csv_rows(kept: FailingRows) -> Iterator[list[str]]:
    """One table a measure, with its own header."""
    for sample in map(_sample, kept.samples):
        yield ["measure", *map(escape_formula, sample.columns)]
        for row in sample.rows:
            yield [escape_formula(sample.measure), *(escape_formula(value or "") for value in row)]


def _shown(row: FailingRows) -> ShownRows:
    samples = tuple(map(_sample, row.samples))
    return ShownRows(
        row.unit_id, partition_label_of(row.unit), row.read_at, row.unit.first_fail_at is not None, samples
    )


def _sample(stored: dict[str, Any]) -> ShownSample:
    return ShownSample(stored["measure"], stored["columns"], stored["rows"], stored["why"])
