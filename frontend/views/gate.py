"""May I read this dataset over this time range now? The question as a form, the answer with its reasons."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.renderers import JSONRenderer

from frontend.queries import gate as query
from incidents.shapes.gate import answer_of
from lakehub import wiring
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval

FIELDS = ("dataset", "from", "to", "dc")


def gate(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    said = {name: request.GET.get(name, "").strip() for name in FIELDS}
    context: dict[str, Any] = {
        "now": now,
        "said": said,
        "errors": {},
        "datasets": Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True),
        "last": query.last_questions(),
        "policies": query.policies(),
    }
    if said["dataset"]:
        try:
            context |= _answered(request, said)
        except Refused as refused:
            context["errors"] = refused.fields
        except NotFound as missing:
            context["errors"] = {"dataset": str(missing)}
    return render(request, "frontend/gate/page.html", context, status=422 if context["errors"] else 200)


def _answered(request: HttpRequest, said: dict[str, str]) -> dict[str, Any]:
    now = wiring.clock.now()
    dataset = live_dataset(said["dataset"])
    wanted = query.parsed_range(said["from"], said["to"], dataset, now=now)
    centers = [copy.data_center.name for copy in dataset.copies.select_related("data_center")]
    chosen = [said["dc"]] if said["dc"] else centers
    shown = query.answers(dataset, wanted, chosen, request.user.get_username(), now=now)
    local = {**said, **_days(wanted, dataset)}
    return {
        "dataset": dataset,
        "centers": centers,
        "said": local,
        "shown": shown,
        "narrower": {
            one.data_center: _link(local, one.data_center, one.narrower, dataset) for one in shown if one.narrower
        },
        "calls": [(one.data_center, _call(wanted, one), _body(one)) for one in shown],
    }


def _days(wanted: Interval, dataset: Dataset) -> dict[str, str]:
    """As the form shows it: days where the range is made of whole ones."""
    edges = (wanted.start.astimezone(dataset.zone), wanted.end.astimezone(dataset.zone))
    whole = all((edge.hour, edge.minute) == (0, 0) for edge in edges)
    start, end = (f"{edge:%Y-%m-%d}" if whole else edge.isoformat(timespec="minutes") for edge in edges)
    return {"from": start, "to": end}


def _link(said: dict[str, str], data_center: str, narrower: Interval | None, dataset: Dataset) -> str:
    assert narrower is not None
    return f"{reverse('gate')}?{urlencode({**said, 'dc': data_center, **_days(narrower, dataset)})}"


def _call(wanted: Interval, shown: query.Shown) -> str:
    """The same over the API. The consumer is the token's."""
    asked = {
        "dataset": shown.reply.question.dataset,
        "from": wanted.start.isoformat(),
        "to": wanted.end.isoformat(),
        "dc": shown.data_center,
    }
    return f"GET /api/v1/gate?{urlencode(asked, safe=':')}"


def _body(shown: query.Shown) -> str:
    """The API's own answer; of the reasons those that are not pass."""
    data = json.loads(JSONRenderer().render(answer_of(shown.reply)))
    reasons = [one for one in data.pop("reasons") if one["verdict"] != "pass"]
    lines = [f'  "{name}": {json.dumps(value)}' for name, value in data.items()]
    if reasons:
        lines.append('  "reasons": [\n' + ",\n".join(f"    {json.dumps(one)}" for one in reasons) + "\n  ]")
    return "{\n" + ",\n".join(lines) + "\n}"
