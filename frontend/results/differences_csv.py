"""Records in which copies differ as CSV that is safe to open in a spreadsheet: a line for each column that differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import StreamingHttpResponse

from frontend.results.reasons import partition_label_of
from frontend.results.result_details import RecordDifference
from lakehub.kernel.output.spreadsheet_csv import csv_lines, escape_formula
from quality.models import Unit

_COLUMNS = ("data_range", "data_center", "test", "read_at", "difference", "rows", "column", "here", "there")


@dataclass(frozen=True)
class UnitDifferences:
    """What one run of a unit named."""

    unit: Unit
    read_at: datetime | None
    records: tuple[RecordDifference, ...]


def differences_csv(runs: Iterable[UnitDifferences], name: str) -> StreamingHttpResponse:
    """Times are UTC; a record that is only on one side has no columns that differ."""
    return StreamingHttpResponse(
        csv_lines(_rows(list(runs))),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


def _rows(runs: list[UnitDifferences]) -> Iterator[tuple[str, ...]]:
    """Tests may name records by different columns: all of them, in the order in which they come."""
    keys = list(dict.fromkeys(column for run in runs for record in run.records for column, _ in record.key))
    yield (*_COLUMNS, *map(escape_formula, keys))
    for run in runs:
        about = (
            partition_label_of(run.unit),
            run.unit.copy.data_center.name,
            escape_formula(run.unit.test.title),
            run.read_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if run.read_at else "",
        )
        for record in run.records:
            key = dict(record.key)
            for column, here, there in record.columns or [("", "", "")]:
                values = (column, here, there, *(key.get(name, "") for name in keys))
                yield (*about, record.kind, str(record.count), *map(escape_formula, values))
