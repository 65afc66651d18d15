"""Who has an incident, what belongs to it, and the job that repairs it. Each form calls one use case of `incidents`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.acting import act, seen_revision
from frontend.numbers import whole
from frontend.views.incident import find
from incidents import actions, backfilling, combining
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.kernel.errors import Refused


@require_POST
def assign(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        name = request.POST.get("assignee", "").strip()
        actions.assign(pk, name, actor=actor, now=wiring.clock.now(), seen=seen_revision(request))
        return f"#{pk} is with {name}." if name else f"#{pk} is with nobody."

    return act(request, "acknowledge", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def release(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.release(pk, actor=actor, now=wiring.clock.now(), seen=seen_revision(request))
        return f"Nobody has #{pk} any more."

    return act(request, "acknowledge", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def merge(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        other = whole(request.POST.get("other", ""))
        if other is None:
            raise Refused.because({"other": "Choose the incident that comes here."})
        name, now = actor.get_username(), wiring.clock.now()
        combining.merge(pk, other, actor=name, now=now, seen=seen_revision(request))
        return f"What fails of #{other} belongs to #{pk} now."

    return act(request, "resolve", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def split(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        ticked = {number for text in request.POST.getlist("unit") if (number := whole(text)) is not None}
        if not ticked:
            raise Refused.because({"unit": "Choose what goes to an incident of its own."})
        name, now = actor.get_username(), wiring.clock.now()
        made = combining.split(pk, ticked, actor=name, now=now, seen=seen_revision(request))
        return f"#{made.pk} has what was chosen."

    return act(request, "resolve", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def backfill(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        where, name = request.POST.get("data_center", ""), actor.get_username()
        run = backfilling.start(pk, data_center=where, actor=name, now=wiring.clock.now(), seen=seen_revision(request))
        return f"Run {run.pk} repairs it as soon as a worker is free."

    return act(request, "rerun", find(pk).dataset, use_case, then=_page(pk))


def _page(pk: int) -> str:
    return reverse("incident", args=[pk])
