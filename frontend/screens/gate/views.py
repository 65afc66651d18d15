"""May I read this dataset over this time range now? The question as a form, the answer with its reasons."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.timezone import make_aware
from django.views.decorators.http import require_POST
from rest_framework.renderers import JSONRenderer

from frontend.components import data_range_field
from frontend.screens.gate import queries
from frontend.ui.form_actions import actor_of, parse_local_time, perform_action
from incidents.api.serializers.gate import answer_to_json
from incidents.domain.gate.sql_reads import DIALECTS
from incidents.gate import overrides
from incidents.gate.copies import find_copy
from incidents.gate.rate_limit import RateLimitExceeded
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval

QUERY_FIELDS = ("dataset", "from", "to", "dc")


def gate(request: HttpRequest) -> HttpResponse:
    values = {name: request.GET.get(name, "").strip() for name in QUERY_FIELDS}
    context: dict[str, Any] = {
        **_sidebar_context(request),
        "entered": values,
        "datasets": Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True),
    }
    if values["dataset"]:
        try:
            context |= _answer_context(request, values)
        except Refused as refused:
            context["errors"] = refused.fields
        except NotFound as missing:
            context["errors"] = {"dataset": str(missing)}
    return render(request, "screens/gate/templates/page.html", context, status=422 if context["errors"] else 200)


def ask_with_sql(request: HttpRequest) -> HttpResponse:
    """The same for all that a query reads."""
    values = {name: request.POST.get(name, "").strip() for name in ("sql", "dialect", "dc")}
    values["dialect"] = values["dialect"] or "ansi"
    context: dict[str, Any] = {**_sidebar_context(request), "entered": values, "dialects": DIALECTS}
    wait_s = 0
    if request.method == "POST":
        try:
            answered = queries.answers_to_sql(values, actor_of(request), now=context["now"])
            allowed = all(shown.reply.answer.allowed for shown in answered)
            context |= {"answered": answered, "allowed": allowed, "call": json.dumps(values, indent=2)}
        except Refused as refused:
            context["errors"] = refused.fields
        except NotFound as missing:
            context["errors"] = {"sql": str(missing)}
        except RateLimitExceeded as often:
            context["errors"], wait_s = {"sql": str(often)}, math.ceil(often.wait)
    status = 429 if wait_s else 422 if context["errors"] else 200
    answer = render(request, "screens/gate/templates/query.html", context, status=status)
    if wait_s:
        answer.headers["Retry-After"] = str(wait_s)
    return answer


def _sidebar_context(request: HttpRequest) -> dict[str, Any]:
    now = wiring.clock.now()
    return {
        "now": now,
        "errors": {},
        "last": queries.recent_questions(),
        "policies": queries.listed_policies(),
        "overrides": queries.overrides_in_force(actor_of(request), now=now),
    }


@require_POST
def override(request: HttpRequest) -> HttpResponse:
    """A range may be read in spite of the verdict: why, and until when."""
    posted, now = request.POST, wiring.clock.now()
    try:
        dataset = live_dataset(posted.get("dataset", ""))
    except NotFound as missing:
        raise Http404(str(missing)) from missing

    def use_case(actor: User) -> str:
        data_range = data_range_field.parse_data_range(posted.get("from", ""), posted.get("to", ""), dataset, now=now)
        until = parse_local_time(posted.get("until", ""), make_aware)
        gate_override = overrides.create_override(
            dataset,
            data_range,
            copy=find_copy(dataset.name, posted.get("dc", "")) if posted.get("dc") else None,
            consumer=posted.get("consumer", "").strip(),
            reason=posted.get("reason", "").strip(),
            expires_at=until or now,
            actor=actor,
            now=now,
        )
        return f"{gate_override.consumer or 'Everybody'} may read it until then; every answer says why."

    return perform_action(request, "override", dataset, use_case, then=reverse("gate"))


@require_POST
def end_override(request: HttpRequest, number: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        overrides.end_override(number, actor=actor, now=wiring.clock.now())
        return f"Override {number} has ended."

    try:
        dataset = overrides.override_by_number(number).dataset
    except NotFound as missing:
        raise Http404(str(missing)) from missing
    return perform_action(request, "override", dataset, use_case, then=reverse("gate"))


def _answer_context(request: HttpRequest, values: dict[str, str]) -> dict[str, Any]:
    now = wiring.clock.now()
    dataset = live_dataset(values["dataset"])
    data_range = data_range_field.parse_data_range(values["from"], values["to"], dataset, now=now)
    centers = [copy.data_center.name for copy in dataset.copies.select_related("data_center")]
    chosen = [values["dc"]] if values["dc"] else centers
    actor, local = actor_of(request), {**values, **_range_fields(data_range, dataset)}
    shown = queries.answers_by_data_center(dataset, data_range, chosen, actor.get_username(), now=now)
    if any(not answer.reply.answer.would_allow for answer in shown) and can(actor, "override", dataset.team):
        shown = [replace(answer, may_override=not answer.reply.answer.would_allow) for answer in shown]
    shown = [
        replace(answer, address=_narrower_url(local, answer.data_center, answer.allowed_range, dataset))
        if answer.allowed_range
        else answer
        for answer in shown
    ]
    return {
        "dataset": dataset,
        "centers": centers,
        "entered": local,
        "shown": shown,
        "calls": [(answer.data_center, _api_call(data_range, answer), _api_body(answer)) for answer in shown],
    }


def _range_fields(data_range: Interval, dataset: Dataset) -> dict[str, str]:
    """As the form shows it: days where the range is made of whole ones."""
    edges = (data_range.start.astimezone(dataset.zone), data_range.end.astimezone(dataset.zone))
    whole = all((edge.hour, edge.minute) == (0, 0) for edge in edges)
    start, end = (f"{edge:%Y-%m-%d}" if whole else edge.isoformat(timespec="minutes") for edge in edges)
    return {"from": start, "to": end}


def _narrower_url(values: dict[str, str], data_center: str, narrower: Interval, dataset: Dataset) -> str:
    return f"{reverse('gate')}?{urlencode({**values, 'dc': data_center, **_range_fields(narrower, dataset)})}"


def _api_call(data_range: Interval, shown: queries.ShownAnswer) -> str:
    """The same over the API. The consumer is the token's."""
    parameters = {
        "dataset": shown.reply.question.dataset,
        "from": data_range.start.isoformat(),
        "to": data_range.end.isoformat(),
        "dc": shown.data_center,
    }
    return f"GET /api/v1/gate?{urlencode(parameters, safe=':')}"


def _api_body(shown: queries.ShownAnswer) -> str:
    """The API's own answer; of the reasons those that are not pass."""
    data = json.loads(JSONRenderer().render(answer_to_json(shown.reply)))
    reasons = [reason for reason in data.pop("reasons") if reason["verdict"] != "pass"]
    lines = [f'  "{name}": {json.dumps(value)}' for name, value in data.items()]
    if reasons:
        lines.append('  "reasons": [\n' + ",\n".join(f"    {json.dumps(reason)}" for reason in reasons) + "\n  ]")
    return "{\n" + ",\n".join(lines) + "\n}"
