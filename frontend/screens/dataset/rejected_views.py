"""The rows of a dataset that did not fit, for members of the team that owns it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.dataset.rejected_queries import rejected_rows_of
from frontend.ui.form_actions import actor_of
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.lake.error_rows import ErrorCursor, ErrorFilters, read_error_row
from ingestion.runs.job_runs import find_copy, find_run
from ingestion.runs.job_specs import error_table_uri
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Busy, NotFound, Refused

_MAX_FILTER = 1000


def rejected_rows(request: HttpRequest, name: str) -> HttpResponse:
    """What the address says and nobody knows is dropped, as on every list."""
    dataset, context = dataset_frame(request, name, "ingestion", wiring.clock.now())
    require(actor_of(request), "see rows", dataset.team)
    copies = sorted(dataset.copies.all(), key=lambda copy: copy.data_center.name)
    copy = _chosen_copy(copies, request.GET.get("dc", ""))
    filters, run = _filters(request.GET, dataset)
    after = _cursor(request.GET.get("cursor", ""))
    context |= {
        "copies": copies,
        "copy": copy,
        "asked": filters,
        "run": run,
        "after": after,
        "narrowed": bool(filters.column or filters.reason or filters.run),
        "kept": _kept_query(copy, filters, run),
        "rejected": rejected_rows_of(copy, filters, after) if copy else None,
    }
    return render(request, "screens/dataset/templates/rejected.html", context)


def raw_row(request: HttpRequest, name: str, key: str) -> HttpResponse:
    """All of one raw row, as a text file: a browser shows none of it."""
    dataset = find_dataset(name)
    require(actor_of(request), "see rows", dataset.team)
    try:
        row = read_error_row(error_table_uri(find_copy(dataset, request.GET.get("dc", ""))), key)
    except NotFound as missing:
        raise Http404(str(missing)) from None
    except (Refused, Busy) as problem:
        return HttpResponse(str(problem), status=503, content_type="text/plain; charset=utf-8")
    headers = {"Content-Disposition": f'attachment; filename="{dataset.name}.rejected.txt"'}
    return HttpResponse(row.raw, content_type="text/plain; charset=utf-8", headers=headers)


def _chosen_copy(copies: list[DatasetCopy], data_center: str) -> DatasetCopy | None:
    named = (copy for copy in copies if copy.data_center.name == data_center)
    return next(named, copies[0] if copies else None)


def _filters(query: QueryDict, dataset: Dataset) -> tuple[ErrorFilters, int | None]:
    number = parse_whole_number(query.get("run", ""))
    try:
        run = str(find_run(dataset, number).key) if number is not None else ""
    except NotFound:
        number, run = None, ""
    column, reason = (query.get(name, "").strip()[:_MAX_FILTER] for name in ("column", "reason"))
    return ErrorFilters(column, reason, run), number


def _cursor(text: str) -> ErrorCursor | None:
    try:
        return ErrorCursor.parse(text) if text else None
    except Refused:
        return None


def _kept_query(copy: DatasetCopy | None, filters: ErrorFilters, run: int | None) -> str:
    """The filters as they stand, for the address of the next page."""
    values: dict[str, Any] = {
        "dc": copy.data_center.name if copy else "",
        "column": filters.column,
        "reason": filters.reason,
        "run": run,
    }
    query = QueryDict(mutable=True)
    query.update({name: str(value) for name, value in values.items() if value})
    return query.urlencode()
