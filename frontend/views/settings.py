"""The settings of a dataset: tier, SLAs, keys, grace, the feed; and letting it go."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend import adjusting
from frontend.acting import act, actor_of, explained
from frontend.adjusting import Form
from frontend.numbers import whole
from frontend.views.dataset import find, frame
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can, require
from lakehub.catalog import changes
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.domain.tiers import TIERS


def settings(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find(name)
    if request.method != "POST":
        return _page(request, dataset, adjusting.of_dataset(dataset))
    actor = actor_of(request)
    require(actor, "onboard", dataset.team)
    said = adjusting.typed(request.POST)
    # The form may be older than the dataset: the use case says so, and nothing is changed.
    dataset.metadata_version = whole(said.values["version"]) or 0
    try:
        wanted = adjusting.changes(dataset, said)
        if not wanted:
            messages.info(request, "Nothing differs; nothing was changed.")
            return redirect("dataset-settings", name)
        with explained(request, refusals=False):
            changes.change(dataset, wanted, actor=actor.get_username(), now=wiring.clock.now())
            messages.info(
                request, f"Saved: {', '.join(dict.fromkeys(map(_words, wanted)))}. Its tests follow within seconds."
            )
    except Refused as refused:
        return _page(request, find(name), replace(said, errors=_by_field(refused)))
    return redirect("dataset-settings", name)


@require_POST
def offboard(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        changes.offboard(dataset, actor=actor.get_username(), now=wiring.clock.now())
        return f"{name} is off-boarded. Its history stays."

    return act(request, "offboard", dataset, use_case, then=reverse("dataset", args=[name]))


@require_POST
def restore(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        changes.restore(dataset, actor=actor.get_username(), now=wiring.clock.now())
        return f"{name} is onboarded again."

    return act(request, "onboard", dataset, use_case, then=reverse("dataset", args=[name]))


def _page(request: HttpRequest, dataset: Dataset, form: Form) -> HttpResponse:
    user = actor_of(request)
    _, context = frame(request, dataset.name, "settings", wiring.clock.now())
    live = dataset.offboarded_at is None
    context |= {
        "form": form,
        "tiers": list(TIERS),
        "expected": adjusting.expected(dataset, now=context["now"]),
        "may_change": live and can(user, "onboard", dataset.team),
        "may_offboard": live and can(user, "offboard", dataset.team),
        "may_restore": not live and can(user, "onboard", dataset.team),
        "live_tests": dataset.tests.filter(retired_at=None).count(),
    }
    return render(request, "frontend/dataset/settings.html", context, status=422 if form.errors else 200)


def _by_field(refused: Refused) -> dict[str, str]:
    """The use case's names of the fields are the form's, but for one SLA."""
    return {"sla-freshness" if name == "freshness_sla" else name: why for name, why in refused.fields.items()} or {
        "tier": str(refused)
    }


def _words(name: str) -> str:
    return {"freshness_sla": "whole within", "overrides": "SLAs", "paused": "the feed", "every": "the feed"}.get(
        name, name.replace("_", " ")
    )
