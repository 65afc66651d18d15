"""Results as CSV: streamed in pieces, bounded, and safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from frontend.results.measurements import cause_text
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.output.spreadsheet_csv import csv_lines, escape_formula
from quality.models import Result

MAX_ROWS = 100_000
_CHUNK = 2_000
COLUMNS = (
    "read_at", "data_range", "data_center", "outcome", "observed", "threshold", "trigger", "commit", "test_version",
    "seconds", "why",
)  # fmt: skip


def results_as_csv(results: QuerySet[Result], dataset: Dataset, name: str) -> StreamingHttpResponse:
    """The newest `MAX_ROWS`; the header `X-Most-Rows` says so. Times are UTC."""
    return StreamingHttpResponse(
        csv_lines(_rows(results, dataset)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"', "X-Most-Rows": str(MAX_ROWS)},
    )


def _rows(results: QuerySet[Result], dataset: Dataset) -> Iterator[tuple[Any, ...]]:
    yield COLUMNS
    for result in results[:MAX_ROWS].iterator(chunk_size=_CHUNK):
        data = Interval(result.unit.start, result.unit.end)
        yield (
            _utc(result.read_at),
            "all" if data.is_everything else dataset.partition_label(data),
            result.unit.copy.data_center.name,
            result.outcome,
            "" if result.observed is None else repr(result.observed),
            escape_formula(result.threshold),
            result.trigger,
            result.instant,
            result.version.number,
            f"{(result.ended_at - result.started_at).total_seconds():.3f}",
            escape_formula(cause_text(result)),
        )


def _utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
