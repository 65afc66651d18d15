"""Results as CSV: streamed in pieces, bounded, and safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from frontend.observed import cause
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.sheets import lines, safe
from quality.models import Result

MOST_ROWS = 100_000
_PIECE = 2_000
COLUMNS = (
    "read_at", "data_range", "data_center", "outcome", "observed", "threshold", "trigger", "commit", "test_version",
    "seconds", "why",
)  # fmt: skip


def as_csv(results: QuerySet[Result], dataset: Dataset, name: str) -> StreamingHttpResponse:
    """The newest `MOST_ROWS`; the header `X-Most-Rows` says so. Times are UTC."""
    return StreamingHttpResponse(
        lines(_rows(results, dataset)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"', "X-Most-Rows": str(MOST_ROWS)},
    )


def _rows(results: QuerySet[Result], dataset: Dataset) -> Iterator[tuple[Any, ...]]:
    yield COLUMNS
    for one in results[:MOST_ROWS].iterator(chunk_size=_PIECE):
        data = Interval(one.unit.start, one.unit.end)
        yield (
            _utc(one.read_at),
            "all" if data.is_everything else dataset.partition_label(data),
            one.unit.copy.data_center.name,
            one.outcome,
            "" if one.observed is None else repr(one.observed),
            safe(one.threshold),
            one.trigger,
            one.instant,
            one.version.number,
            f"{(one.ended_at - one.started_at).total_seconds():.3f}",
            safe(cause(one)),
        )


def _utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
