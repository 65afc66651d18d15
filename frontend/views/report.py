"""A reader says that data is wrong: what no test saw."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.timezone import make_aware

from frontend.acting import actor_of, instant
from frontend.queries.gate import parsed_range
from incidents.reports import report as take_in
from lakehub import wiring
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category

FIELDS = ("dataset", "from", "to", "dc", "since", "category", "text")


def report(request: HttpRequest) -> HttpResponse:
    """Everybody who is signed in may report; the owners of the dataset answer."""
    asked = request.POST if request.method == "POST" else request.GET
    said = {name: asked.get(name, "").strip() for name in FIELDS}
    if request.method != "POST":
        return _form(request, said)
    try:
        now = wiring.clock.now()
        dataset = live_dataset(said["dataset"])
        wrong = parsed_range(said["from"], said["to"], dataset, now=now)
        made = take_in(
            dataset,
            said["category"],
            wrong,
            text=said["text"],
            reporter=actor_of(request),
            now=now,
            copy=_copy(dataset, said["dc"]),
            occurred_at=_since(said["since"]),
        )
    except Refused as refused:
        return _form(request, said, refused.fields)
    except NotFound as missing:
        return _form(request, said, {"dataset": str(missing)})
    return redirect("incident", made.pk)


def _copy(dataset: Dataset, data_center: str) -> DatasetCopy | None:
    """None: in each. Raises Refused with the nearest name."""
    copies = {copy.data_center.name: copy for copy in dataset.copies.select_related("data_center")}
    if data_center and data_center not in copies:
        known = did_you_mean(data_center, copies)
        raise Refused.because({"dc": f"`{dataset.name}` has no copy in `{data_center}`.{known}"})
    return copies.get(data_center)


def _since(text: str) -> datetime | None:
    try:
        return instant(text, make_aware)
    except Refused as refused:
        raise Refused.because({"occurred_at": str(refused)}) from None


def _form(request: HttpRequest, said: dict[str, str], errors: dict[str, str] | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "said": said,
        "errors": errors or {},
        "categories": Category.choices,
        "data_centers": DataCenter.objects.values_list("name", flat=True),
        "datasets": Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True),
    }
    return render(request, "frontend/incidents/report.html", context, status=422 if errors else 200)
