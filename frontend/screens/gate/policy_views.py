"""Policies of the gate on a page: what blocks a consumer's jobs, and setting it, as PUT and DELETE /gate/policies do."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend.screens.gate import policy_queries as query
from frontend.ui.form_actions import actor_of, errors_as_messages
from incidents.gate import policies as gate_policies
from incidents.models import GatePolicy
from lakehub import wiring
from lakehub.catalog.models import TIERS
from lakehub.kernel.errors import Refused


def policy_page(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _policy_page(request, query.form_from_query(request.GET))
    form, actor, now = query.form_from_post(request.POST), actor_of(request), wiring.clock.now()
    gate_policies.require_policy_right(actor, form.consumer, now=now)
    try:
        tier = query.parse_tier(form.tier)
        policy = gate_policies.set_policy(
            form.consumer, tier, preset=form.preset, blocks=form.words, shadow=form.shadow, actor=actor, now=now
        )
    except Refused as refused:
        return _policy_page(request, replace(form, errors=refused.fields))
    messages.info(request, f"{policy} has its policy. The next answer follows it.")
    return redirect("gate-policies")


@require_POST
def remove_policy(request: HttpRequest) -> HttpResponse:
    consumer, actor, now = request.POST.get("consumer", ""), actor_of(request), wiring.clock.now()
    gate_policies.require_policy_right(actor, consumer, now=now)
    with errors_as_messages(request):
        gate_policies.remove_policy(consumer, query.parse_tier(request.POST.get("tier", "")), actor=actor, now=now)
        messages.info(request, f"The policy of {consumer} is gone: the one for every tier holds, or the usual.")
    return redirect("gate-policies")


def _policy_page(request: HttpRequest, form: query.PolicyForm) -> HttpResponse:
    may = query.policy_rights(actor_of(request), now=wiring.clock.now())
    page = Paginator(GatePolicy.objects.order_by("consumer", "tier"), query.PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": query.policy_rows(list(page.object_list), may),
        "form": form,
        "names": may.names,
        "any_name": may.runs_the_instance,
        "presets": query.PRESETS,
        "tiers": TIERS,
    }
    return render(request, "screens/gate/templates/policies.html", context, status=422 if form.errors else 200)
