"""The rows of a dataset that did not fit, for members of the team that owns it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.dataset.rejected_queries import rejected_rows_of
from frontend.ui.form_actions import actor_of, perform_action
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.lake.error_rows import ErrorCursor, ErrorFilters, ErrorState, read_error_row
from ingestion.runs.job_runs import find_copy, find_run
from ingestion.runs.job_specs import error_table_uri
from ingestion.runs.replays.row_choice import RowChoice, request_replay
from ingestion.runs.replays.values import parse_values
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can, require
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
        "resolved": filters.state == ErrorState.RESOLVED,
        "may_replay": copy is not None
        and dataset.offboarded_at is None
        and can(actor_of(request), "onboard", dataset.team),
        "narrowed": bool(filters.column or filters.reason or filters.run),
        "kept": _kept_query(copy, filters, run),
        "rejected": rejected_rows_of(copy, filters, after) if copy else None,
    }
    return render(request, "screens/dataset/templates/rejected.html", context)


@require_POST
def replay_rows(request: HttpRequest, name: str) -> HttpResponse:
    """The rows that are marked, or all open rows of one column and kind of reason, with the values that the form has."""
    dataset, posted = find_dataset(name), request.POST

    def use_case(actor: User) -> str:
        values = parse_values(posted.get("values", ""))
        rows = [{"error_key": key, "values": {}} for key in dict.fromkeys(posted.getlist("row"))]
        choice = RowChoice.of(rows, posted.get("column", ""), posted.get("kind", ""), values)
        copy = find_copy(dataset, posted.get("dc", ""))
        run = request_replay(copy, choice, asked_by=actor.get_username(), now=wiring.clock.now())
        return f"Run {run.pk} tries {run.params['rows']} rejected rows again as soon as a worker is free."

    return perform_action(request, "onboard", dataset, use_case, then=reverse("dataset-rejected", args=[name]))


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
    state = ErrorState.RESOLVED if query.get("state") == ErrorState.RESOLVED else ErrorState.OPEN
    return ErrorFilters(column, reason, run, state), number


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
        "state": "" if filters.state == ErrorState.OPEN else filters.state,
    }
    query = QueryDict(mutable=True)
    query.update({name: str(value) for name, value in values.items() if value})
    return query.urlencode()
