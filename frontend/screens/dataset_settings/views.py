"""The settings of a dataset: tier, SLAs, keys, grace, the feed; and letting it go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.dataset_settings import settings_form
from frontend.screens.dataset_settings.settings_form import SettingsForm
from frontend.ui.feed_fields.hidden_columns import hidden_column_facts
from frontend.ui.feed_fields.options import feed_option_facts
from frontend.ui.form_actions import actor_of, errors_as_messages, perform_action
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.runs.index_choice.states import copy_indexes
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can, require
from lakehub.catalog.datasets import changes, offboarding
from lakehub.catalog.datasets.feed_options import takes_feed_options
from lakehub.catalog.datasets.hidden_columns import HIDING_WORDS
from lakehub.catalog.models import Dataset, DatasetKind
from lakehub.catalog.ports import preview_change
from lakehub.kernel.errors import Conflict, Refused
from quality.domain.slas import TIERS


def dataset_settings(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)
    if request.method != "POST":
        return _settings_page(request, dataset, settings_form.form_of_dataset(dataset))
    actor = actor_of(request)
    require(actor, "onboard", dataset.team)
    form = settings_form.form_from_post(request.POST)
    # The form may be older than the dataset: the use case says so, and nothing is changed.
    dataset.metadata_version = parse_whole_number(form.values["version"]) or 0
    try:
        changed = settings_form.changed_settings(dataset, form)
        if not changed:
            messages.info(request, "Nothing differs; nothing was changed.")
            return redirect("dataset-settings", name)
        if "check" in request.POST:
            return _preview(request, dataset, form, changed)
        with errors_as_messages(request, refusals=False):
            changes.update_dataset(dataset, changed, actor=actor.get_username(), now=wiring.clock.now())
            messages.info(
                request,
                f"Saved: {', '.join(dict.fromkeys(map(_setting_label, changed)))}. Its tests follow within seconds.",
            )
    except Refused as refused:
        return _settings_page(request, find_dataset(name), replace(form, errors=_errors_by_field(refused)))
    return redirect("dataset-settings", name)


def _preview(request: HttpRequest, dataset: Dataset, form: SettingsForm, changed: dict[str, Any]) -> HttpResponse:
    """The form as it was typed, with what saving it would do. Raises Refused."""
    actor, now = actor_of(request).get_username(), wiring.clock.now()
    changes.check_changes(dataset, changed)
    try:
        lines = preview_change(
            dataset.pk, lambda: changes.write_changes(dataset, changed, actor=actor, now=now), now=now
        )
    except Conflict as conflict:
        messages.warning(request, str(conflict))
        return redirect("dataset-settings", dataset.name)
    return _settings_page(request, find_dataset(dataset.name), form, [line.text for line in lines])


@require_POST
def offboard_dataset(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        offboarding.offboard_dataset(dataset, actor=actor.get_username(), now=wiring.clock.now())
        return f"{name} is off-boarded. Its history stays."

    return perform_action(request, "offboard", dataset, use_case, then=reverse("dataset", args=[name]))


@require_POST
def restore_dataset(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        offboarding.restore_dataset(dataset, actor=actor.get_username(), now=wiring.clock.now())
        return f"{name} is onboarded again."

    return perform_action(request, "onboard", dataset, use_case, then=reverse("dataset", args=[name]))


def _settings_page(
    request: HttpRequest, dataset: Dataset, form: SettingsForm, consequences: list[str] | None = None
) -> HttpResponse:
    user = actor_of(request)
    _, context = dataset_frame(request, dataset.name, "settings", wiring.clock.now())
    live = dataset.offboarded_at is None
    context |= {
        "form": form,
        "consequences": consequences,
        "tiers": list(TIERS),
        "kinds": DatasetKind.choices,
        "schema_policies": settings_form.SCHEMA_POLICY_LABELS.items(),
        "key_hint": settings_form.key_hint(dataset),
        "expected": settings_form.next_production_text(dataset, now=context["now"]),
        "takes_feed_options": takes_feed_options(dataset),
        "feed_facts": feed_option_facts(dataset),
        "indexes": copy_indexes(dataset),
        "takes_hidden_columns": settings_form.takes_hidden_columns(dataset),
        "hidden_facts": hidden_column_facts(dataset),
        "may_change": live and can(user, "onboard", dataset.team),
        "may_offboard": live and can(user, "offboard", dataset.team),
        "may_restore": not live and can(user, "onboard", dataset.team),
        "live_tests": dataset.tests.filter(retired_at=None).count(),
    }
    return render(request, "screens/dataset_settings/templates/page.html", context, status=422 if form.errors else 200)


def _errors_by_field(refused: Refused) -> dict[str, str]:
    """The use case's names of the fields are the form's, but for one SLA."""
    return {"sla-freshness" if name == "freshness_sla" else name: why for name, why in refused.fields.items()} or {
        "tier": str(refused)
    }


def _setting_label(name: str) -> str:
    return {
        "freshness_sla": "whole within",
        "overrides": "SLAs",
        "paused": "the feed",
        "every": "the feed",
        "feed_options": "the feed",
        **HIDING_WORDS,
    }.get(name, name.replace("_", " "))
