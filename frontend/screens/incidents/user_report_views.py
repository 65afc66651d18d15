"""A reader says that data is wrong: what no test saw."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.timezone import make_aware

from frontend.components.data_range_field import parse_data_range
from frontend.ui.form_actions import actor_of, parse_local_time
from incidents.lifecycle.user_reports import file_report as take_in
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category

REPORT_FIELDS = ("dataset", "from", "to", "dc", "since", "category", "text")


def report_incident(request: HttpRequest) -> HttpResponse:
    """Everybody who is signed in may report; the owners of the dataset answer."""
    submitted = request.POST if request.method == "POST" else request.GET
    values = {name: submitted.get(name, "").strip() for name in REPORT_FIELDS}
    if request.method != "POST":
        return _form_page(request, values)
    try:
        now = wiring.clock.now()
        dataset = live_dataset(values["dataset"])
        wrong = parse_data_range(values["from"], values["to"], dataset, now=now)
        incident = take_in(
            dataset,
            values["category"],
            wrong,
            text=values["text"],
            reporter=actor_of(request),
            now=now,
            copy=_find_copy(dataset, values["dc"]),
            occurred_at=_parse_since(values["since"]),
        )
    except Refused as refused:
        return _form_page(request, values, refused.fields)
    except NotFound as missing:
        return _form_page(request, values, {"dataset": str(missing)})
    messages.info(request, "Your report waits for the owners. You find it, and their answer, under Reported by me.")
    return redirect("incident", incident.pk)


def _find_copy(dataset: Dataset, data_center: str) -> DatasetCopy | None:
    """None: in each. Raises Refused with the nearest name."""
    copies = {copy.data_center.name: copy for copy in dataset.copies.select_related("data_center")}
    if data_center and data_center not in copies:
        hint = did_you_mean(data_center, copies)
        raise Refused.for_fields({"dc": f"`{dataset.name}` has no copy in `{data_center}`.{hint}"})
    return copies.get(data_center)


def _parse_since(text: str) -> datetime | None:
    try:
        return parse_local_time(text, make_aware)
    except Refused as refused:
        raise Refused.for_fields({"occurred_at": str(refused)}) from None


def _form_page(request: HttpRequest, values: dict[str, str], errors: dict[str, str] | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "entered": values,
        "errors": errors or {},
        "categories": Category.choices,
        "data_centers": DataCenter.objects.values_list("name", flat=True),
        "datasets": Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True),
    }
    return render(request, "screens/incidents/templates/report.html", context, status=422 if errors else 200)
