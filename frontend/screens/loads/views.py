"""Where the raw chunks of a dataset's loads lie; loading its table again, or some of its rows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.loads.record_keys import parse_record_keys
from frontend.ui import words
from frontend.ui.form_actions import perform_action
from ingestion.models import JobKind, JobRun
from ingestion.runs import job_runs
from ingestion.runs.job_specs import is_landed_feed
from ingestion.runs.source_use.kept_loads import raw_chunk_places
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused


def loads(request: HttpRequest, name: str) -> HttpResponse:
    dataset, context = dataset_frame(request, name, "ingestion", wiring.clock.now())
    places = raw_chunk_places(dataset, ahead=wiring.clock.ahead())
    context |= {
        "places": places,
        "has_chunks": any(place.can_be_loaded for place in places),
        "is_landed": is_landed_feed(dataset.feed_or_none),
        "copies": [copy.data_center.name for copy in dataset.copies.select_related("data_center")],
        "key_columns": _key_columns(dataset),
        "may_load": context["may_rerun"] and dataset.is_loaded_from_connection and dataset.offboarded_at is None,
    }
    return render(request, "screens/loads/templates/page.html", context)


@require_POST
def load_again(request: HttpRequest, name: str) -> HttpResponse:
    """`origin`: `source`, or `chunks` for the raw chunks of the last load that was whole."""
    dataset, is_from_chunks = find_dataset(name), request.POST.get("origin") == "chunks"

    def use_case(actor: User) -> str:
        if is_from_chunks:
            _require_chunks(dataset, request.POST.get("data_center", ""))
        params = {"replace": True, "from_chunks": True} if is_from_chunks else {"replace": True}
        run = _request_run(request, dataset, JobKind.BOOTSTRAP, params, actor)
        origin = "its raw chunks" if is_from_chunks else "its source"
        return f"Run {run.pk} is queued: it loads {run.copy} again from {origin}. The rows that are there stay until it has ended."

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset-ingestion", args=[name]))


def _require_chunks(dataset: Dataset, data_center: str) -> None:
    places = raw_chunk_places(dataset, ahead=wiring.clock.ahead())
    if not any(place.can_be_loaded for place in places if place.data_center == data_center):
        raise Refused(
            f"No raw chunks of a whole load of {dataset.name} are kept in {data_center}. Load it from its source."
        )


@require_POST
def read_rows(request: HttpRequest, name: str) -> HttpResponse:
    """Single rows, by their record keys."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        keys = parse_record_keys(request.POST.get("keys", ""), _key_columns(dataset))
        run = _request_run(request, dataset, JobKind.BACKFILL, {"keys": keys}, actor)
        return f"Run {run.pk} is queued: it reads {words.count(len(keys), 'row')} of {run.copy} again."

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset-ingestion", args=[name]))


def _request_run(request: HttpRequest, dataset: Dataset, kind: JobKind, params: dict[str, Any], actor: User) -> JobRun:
    copy = job_runs.find_copy(dataset, request.POST.get("data_center", ""))
    return job_runs.request_run(copy, kind, params, asked_by=actor.get_username(), now=wiring.clock.now())


def _key_columns(dataset: Dataset) -> list[str]:
    return list(dataset.record_key or dataset.primary_key)
