"""Who has an incident, what belongs to it, and the job that repairs it. Each form calls one use case of `incidents`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.screens.incident.views import find_incident
from frontend.ui.form_actions import perform_action, posted_revision
from frontend.ui.whole_numbers import parse_whole_number
from incidents.lifecycle import actions, backfills, merge_split
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.kernel.errors import Refused


@require_POST
def assign(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        name = request.POST.get("assignee", "").strip()
        actions.assign(pk, name, actor=actor, now=wiring.clock.now(), expected_revision=posted_revision(request))
        return f"#{pk} is with {name}." if name else f"#{pk} is with nobody."

    return perform_action(request, "acknowledge", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def release(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.release(pk, actor=actor, now=wiring.clock.now(), expected_revision=posted_revision(request))
        return f"Nobody has #{pk} any more."

    return perform_action(request, "acknowledge", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def merge(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        other = parse_whole_number(request.POST.get("other", ""))
        if other is None:
            raise Refused.for_fields({"other": "Choose the incident that comes here."})
        name, now = actor.get_username(), wiring.clock.now()
        merge_split.merge_incidents(pk, other, actor=name, now=now, expected_revision=posted_revision(request))
        return f"What fails of #{other} belongs to #{pk} now."

    return perform_action(request, "resolve", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def split(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        ticked = {number for text in request.POST.getlist("unit") if (number := parse_whole_number(text)) is not None}
        if not ticked:
            raise Refused.for_fields({"unit": "Choose what goes to an incident of its own."})
        name, now = actor.get_username(), wiring.clock.now()
        new_incident = merge_split.split_incident(
            pk, ticked, actor=name, now=now, expected_revision=posted_revision(request)
        )
        return f"#{new_incident.pk} has what was chosen."

    return perform_action(request, "resolve", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def backfill(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        where, name = request.POST.get("data_center", ""), actor.get_username()
        run = backfills.start_backfill(
            pk, data_center=where, actor=name, now=wiring.clock.now(), expected_revision=posted_revision(request)
        )
        return f"Run {run.pk} repairs it as soon as a worker is free."

    return perform_action(request, "rerun", find_incident(pk).dataset, use_case, then=_page_url(pk))


def _page_url(pk: int) -> str:
    return reverse("incident", args=[pk])
