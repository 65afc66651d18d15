"""The rows of an error table as the page shows them: one copy, one page, each row beside the run that read it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from frontend.screens.dataset.ingestion_queries import MAX_RUNS
from ingestion.lake.error_rows import (
    ErrorCounts,
    ErrorCursor,
    ErrorFilters,
    ErrorGroup,
    ErrorPage,
    ErrorRow,
    count_errors,
    read_error_page,
)
from ingestion.models import JobRun
from ingestion.runs.job_specs import error_table_uri
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Busy, Refused

PAGE_SIZE = 50
_LARGEST = 10
"""Groups that stand above the rows; the others open below them."""
_PICTURES = 0x2400
_CONTROLS = {
    **{code: _PICTURES + code for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
"""What no page shows, such as NUL, or what turns the text around it: a picture of it, or a mark."""


@dataclass(frozen=True)
class RejectedRow:
    """`run` is None where the run is not known; `run_is_listed`: the ingestion page shows it."""

    row: ErrorRow
    raw: str
    reason: str
    column: str
    source: str
    fixed: str
    resolved_by: str
    run: int | None
    run_is_listed: bool


@dataclass(frozen=True)
class RejectedGroup:
    """`group.column` is what the address filters by; `column` and `kind` are what the page shows."""

    group: ErrorGroup
    column: str
    kind: str

    @property
    def can_be_named(self) -> bool:
        """A form can say which group it is: all of its text is shown as it is."""
        return bool(self.kind) and (self.column, self.kind) == (self.group.column, self.group.kind)


@dataclass(frozen=True)
class RejectedRows:
    """`problem`: why the table could not be read; empty where it could."""

    counts: ErrorCounts
    rows: tuple[RejectedRow, ...] = ()
    next_cursor: str = ""
    problem: str = ""

    @property
    def largest_groups(self) -> list[RejectedGroup]:
        return list(map(_rejected_group, self.counts.groups[:_LARGEST]))

    @property
    def smaller_groups(self) -> list[RejectedGroup]:
        return list(map(_rejected_group, self.counts.groups[_LARGEST:]))

    @property
    def hidden_groups(self) -> int:
        return self.counts.group_count - len(self.counts.groups)


def rejected_rows_of(copy: DatasetCopy, filters: ErrorFilters, after: ErrorCursor | None) -> RejectedRows:
    """The counts are of all rows of that state. Two queries."""
    uri = error_table_uri(copy)
    try:
        counts = count_errors(uri, ErrorFilters(state=filters.state))
        page = read_error_page(uri, filters, after=after, limit=PAGE_SIZE) if counts.rows else ErrorPage()
    except (Refused, Busy) as problem:
        return RejectedRows(ErrorCounts(), problem=str(problem))
    runs = _run_numbers(copy.dataset, {row.run for row in page.rows})
    listed = set(_newest_runs(copy.dataset)) if runs else set()
    rows = (_rejected_row(row, runs.get(row.run), listed) for row in page.rows)
    return RejectedRows(counts, tuple(rows), page.next_cursor)


def visible_text(text: str) -> str:
    return text.translate(_CONTROLS)


def _rejected_group(group: ErrorGroup) -> RejectedGroup:
    return RejectedGroup(group, visible_text(group.column), visible_text(group.kind))


def _rejected_row(row: ErrorRow, run: int | None, listed: Collection[int]) -> RejectedRow:
    raw, reason, column, source = map(visible_text, (row.raw, row.reason, row.column, row.source))
    fixed, resolved_by = map(visible_text, (row.fixed, row.resolved_by))
    return RejectedRow(row, raw, reason, column, source, fixed, resolved_by, run, run in listed)


def _run_numbers(dataset: Dataset, keys: Collection[str]) -> dict[str, int]:
    runs = JobRun.objects.filter(copy__dataset=dataset, key__in=[key for key in keys if _is_uuid(key)])
    return {str(key): number for key, number in runs.values_list("key", "pk")}


def _newest_runs(dataset: Dataset) -> QuerySet[JobRun, int]:
    return JobRun.objects.filter(copy__dataset=dataset).order_by("-id").values_list("pk", flat=True)[:MAX_RUNS]


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
