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

from frontend.acting import act, actor_of, instant
from frontend.queries import gate as query
from incidents.domain.sql_reads import DIALECTS
from incidents.gate import overrides
from incidents.gate.answers import find_copy
from incidents.gate.rate import TooOften
from incidents.shapes.gate import answer_of
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval

FIELDS = ("dataset", "from", "to", "dc")


def gate(request: HttpRequest) -> HttpResponse:
    said = {name: request.GET.get(name, "").strip() for name in FIELDS}
    context: dict[str, Any] = {
        **_beside(request),
        "said": said,
        "datasets": Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True),
    }
    if said["dataset"]:
        try:
            context |= _answered(request, said)
        except Refused as refused:
            context["errors"] = refused.fields
        except NotFound as missing:
            context["errors"] = {"dataset": str(missing)}
    return render(request, "frontend/gate/page.html", context, status=422 if context["errors"] else 200)


def ask_with_sql(request: HttpRequest) -> HttpResponse:
    """The same for all that a query reads."""
    said = {name: request.POST.get(name, "").strip() for name in ("sql", "dialect", "dc")}
    said["dialect"] = said["dialect"] or "ansi"
    context: dict[str, Any] = {**_beside(request), "said": said, "dialects": DIALECTS}
    wait_s = 0
    if request.method == "POST":
        try:
            answered = query.answers_to(said, actor_of(request), now=context["now"])
            allowed = all(one.reply.answer.allowed for one in answered)
            context |= {"answered": answered, "allowed": allowed, "call": json.dumps(said, indent=2)}
        except Refused as refused:
            context["errors"] = refused.fields
        except NotFound as missing:
            context["errors"] = {"sql": str(missing)}
        except TooOften as often:
            context["errors"], wait_s = {"sql": str(often)}, math.ceil(often.wait)
    status = 429 if wait_s else 422 if context["errors"] else 200
    answer = render(request, "frontend/gate/query.html", context, status=status)
    if wait_s:
        answer.headers["Retry-After"] = str(wait_s)
    return answer


def _beside(request: HttpRequest) -> dict[str, Any]:
    now = wiring.clock.now()
    return {
        "now": now,
        "errors": {},
        "last": query.last_questions(),
        "policies": query.policies(),
        "overrides": query.overrides_in_force(actor_of(request), now=now),
    }


@require_POST
def override(request: HttpRequest) -> HttpResponse:
    """A range may be read in spite of the verdict: why, and until when."""
    said, now = request.POST, wiring.clock.now()
    try:
        dataset = live_dataset(said.get("dataset", ""))
    except NotFound as missing:
        raise Http404(str(missing)) from missing

    def use_case(actor: User) -> str:
        wanted = query.parsed_range(said.get("from", ""), said.get("to", ""), dataset, now=now)
        until = instant(said.get("until", ""), make_aware)
        made = overrides.override(
            dataset,
            wanted,
            copy=find_copy(dataset.name, said.get("dc", "")) if said.get("dc") else None,
            consumer=said.get("consumer", "").strip(),
            reason=said.get("reason", "").strip(),
            expires_at=until or now,
            actor=actor,
            now=now,
        )
        return f"{made.consumer or 'Everybody'} may read it until then; every answer says why."

    return act(request, "override", dataset, use_case, then=reverse("gate"))


@require_POST
def end_override(request: HttpRequest, number: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        overrides.end(number, actor=actor, now=wiring.clock.now())
        return f"Override {number} has ended."

    try:
        dataset = overrides.find(number).dataset
    except NotFound as missing:
        raise Http404(str(missing)) from missing
    return act(request, "override", dataset, use_case, then=reverse("gate"))


def _answered(request: HttpRequest, said: dict[str, str]) -> dict[str, Any]:
    now = wiring.clock.now()
    dataset = live_dataset(said["dataset"])
    wanted = query.parsed_range(said["from"], said["to"], dataset, now=now)
    centers = [copy.data_center.name for copy in dataset.copies.select_related("data_center")]
    chosen = [said["dc"]] if said["dc"] else centers
    actor, local = actor_of(request), {**said, **_days(wanted, dataset)}
    shown = query.answers(dataset, wanted, chosen, actor.get_username(), now=now)
    if any(not one.reply.answer.would_allow for one in shown) and can(actor, "override", dataset.team):
        shown = [replace(one, may_override=not one.reply.answer.would_allow) for one in shown]
    shown = [
        replace(one, address=_link(local, one.data_center, one.narrower, dataset)) if one.narrower else one
        for one in shown
    ]
    return {
        "dataset": dataset,
        "centers": centers,
        "said": local,
        "shown": shown,
        "calls": [(one.data_center, _call(wanted, one), _body(one)) for one in shown],
    }


def _days(wanted: Interval, dataset: Dataset) -> dict[str, str]:
    """As the form shows it: days where the range is made of whole ones."""
    edges = (wanted.start.astimezone(dataset.zone), wanted.end.astimezone(dataset.zone))
    whole = all((edge.hour, edge.minute) == (0, 0) for edge in edges)
    start, end = (f"{edge:%Y-%m-%d}" if whole else edge.isoformat(timespec="minutes") for edge in edges)
    return {"from": start, "to": end}


def _link(said: dict[str, str], data_center: str, narrower: Interval, dataset: Dataset) -> str:
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
