"""Where the raw chunks of a dataset's loads lie; loading its table again, or some of its rows."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.loads.record_keys import parse_record_keys
from frontend.ui import words
from frontend.ui.form_actions import perform_action
from ingestion.models import JobKind, JobRun
from ingestion.runs import job_runs
from ingestion.runs.requests.source_checks import is_landed_feed
from ingestion.runs.source_use.kept_loads import raw_chunk_place
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import NotFound, Refused


def loads(request: HttpRequest, name: str) -> HttpResponse:
    """Of one copy at a time, `?copy=dc1`: the first where none is named."""
    dataset, context = dataset_frame(request, name, "ingestion", wiring.clock.now())
    names = list(dataset.copies.order_by("data_center__name").values_list("data_center__name", flat=True))
    copy = _chosen_copy(dataset, request.GET.get("copy", "") or next(iter(names), ""))
    context |= {
        "copies": names,
        "copy": copy,
        "place": copy and raw_chunk_place(copy, ahead=wiring.clock.ahead()),
        "is_landed": is_landed_feed(dataset.feed_or_none),
        "key_columns": _key_columns(dataset),
        "may_load": context["may_rerun"] and dataset.is_loaded_from_connection and dataset.offboarded_at is None,
    }
    return render(request, "screens/loads/templates/page.html", context)


def _chosen_copy(dataset: Dataset, data_center: str) -> DatasetCopy | None:
    """None: the dataset has none. Raises Http404 for one that it does not have."""
    try:
        return job_runs.find_copy(dataset, data_center) if data_center else None
    except NotFound as problem:
        raise Http404(str(problem)) from problem


@require_POST
def load_again(request: HttpRequest, name: str) -> HttpResponse:
    """`origin`: `source`, or `chunks` for the raw chunks of the last load that was whole."""
    dataset, is_from_chunks = find_dataset(name), request.POST.get("origin") == "chunks"

    def use_case(actor: User) -> str:
        copy = job_runs.find_copy(dataset, request.POST.get("data_center", ""))
        if is_from_chunks:
            _require_chunks(copy)
        params = {"replace": True, "from_chunks": True} if is_from_chunks else {"replace": True}
        run = _request_run(copy, JobKind.BOOTSTRAP, params, actor)
        origin = "its raw chunks" if is_from_chunks else "its source"
        return f"Run {run.pk} is queued: it loads {run.copy} again from {origin}. The rows that are there stay until it has ended."

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset-ingestion", args=[name]))


def _require_chunks(copy: DatasetCopy) -> None:
    place = raw_chunk_place(copy, ahead=wiring.clock.ahead())
    if place is None or not place.can_be_loaded:
        raise Refused(
            f"No raw chunks of a whole load of {copy.dataset.name} are kept in {copy.data_center.name}. Load it from its source."
        )


@require_POST
def read_rows(request: HttpRequest, name: str) -> HttpResponse:
    """Single rows, by their record keys."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        keys = parse_record_keys(request.POST.get("keys", ""), _key_columns(dataset))
        copy = job_runs.find_copy(dataset, request.POST.get("data_center", ""))
        run = _request_run(copy, JobKind.BACKFILL, {"keys": keys}, actor)
        return f"Run {run.pk} is queued: it reads {words.count(len(keys), 'row')} of {run.copy} again."

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset-ingestion", args=[name]))


def _request_run(copy: DatasetCopy, kind: JobKind, params: dict[str, Any], actor: User) -> JobRun:
    return job_runs.request_run(copy, kind, params, asked_by=actor.get_username(), now=wiring.clock.now())


def _key_columns(dataset: Dataset) -> list[str]:
    return list(dataset.record_key or dataset.primary_key)
