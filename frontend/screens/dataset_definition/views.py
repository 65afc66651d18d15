"""What was said of a dataset at onboarding: owner, source, copies, upstream, partition. What a change does is shown before it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.dataset_definition import definition_form
from frontend.screens.dataset_definition.definition_form import DefinitionForm
from frontend.screens.dataset_definition.rebuild_views import rebuild_panel
from frontend.ui.form_actions import actor_of
from frontend.ui.live import render_live
from frontend.ui.whole_numbers import parse_whole_number
from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can, require, teams_where
from lakehub.catalog.models import PARTITION_FIELDS, Connection, DataCenter, Dataset
from lakehub.catalog.onboarding.redefine import change_dataset, prepare_change
from lakehub.catalog.ports import Consequence, preview_change
from lakehub.catalog.request_permissions import require_named_in_change
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.partitions import Grain

PAGE = "screens/dataset_definition/templates/page.html"
FRAGMENTS = {"rebuild": "screens/dataset_definition/templates/rebuild.html"}
KINDS = {"tests": "Tests", "reads": "What is read", "incidents": "Incidents", "gate": "The gate"}


def dataset_definition(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)
    if dataset.offboarded_at is not None:
        raise PermissionDenied(f"{name} is off-boarded: restore it first.")
    actor = actor_of(request)
    require(actor, "onboard", dataset.team)
    if request.method != "POST":
        return _page(request, dataset, definition_form.form_of_dataset(dataset))
    form = definition_form.form_from_post(request.POST)
    # The form may be older than the dataset: the use case says so, and nothing is changed.
    dataset.metadata_version = parse_whole_number(form.values["version"]) or 0
    try:
        return _preview_or_change(request, dataset, form)
    except Refused as refused:
        errors = refused.fields or {"team": str(refused)}
        return _page(request, find_dataset(name), replace(form, errors=errors))
    except Conflict as conflict:
        messages.warning(request, str(conflict))
        return redirect("dataset-definition", name)


def _preview_or_change(request: HttpRequest, dataset: Dataset, form: DefinitionForm) -> HttpResponse:
    changes = definition_form.changed_fields(dataset, form)
    _require_rights(actor_of(request), dataset, changes)
    actor, now = actor_of(request).get_username(), wiring.clock.now()
    if not changes:
        messages.info(request, "Nothing differs; nothing was changed.")
        return redirect("dataset-definition", dataset.name)
    if "confirmed" in request.POST:
        change_dataset(dataset, changes, actor=actor, now=now)
        if dataset.ingested and set(changes) & set(PARTITION_FIELDS):
            messages.info(request, "The new tables are being built. The present ones stay until those are whole.")
            return redirect("dataset-definition", dataset.name)
        messages.info(request, f"Changed: {', '.join(map(_label, changes))}. Its tests follow within seconds.")
        return redirect("dataset-settings", dataset.name)
    prepared = prepare_change(dataset, changes)
    lines = preview_change(dataset.pk, lambda: prepared.write(actor=actor, now=now), now=now)
    return _page(request, find_dataset(dataset.name), form, lines, list(map(_label, changes)))


def _require_rights(actor: User, dataset: Dataset, changes: Mapping[str, Any]) -> None:
    """Of the team and the connections that differ: a form names what stays too. What is not there the use case names."""
    require_named_in_change(
        actor,
        dataset,
        team=changes.get("team", ""),
        connections=definition_form.changed_connections(dataset, changes),
        names_table="table" in changes,
    )


def _page(
    request: HttpRequest,
    dataset: Dataset,
    form: DefinitionForm,
    lines: Sequence[Consequence] | None = None,
    changed: Sequence[str] = (),
) -> HttpResponse:
    now = wiring.clock.now()
    _, context = dataset_frame(request, dataset.name, "settings", now)
    teams = Team.objects.filter(teams_where(actor_of(request), "onboard")).distinct()
    copies = {copy.data_center: copy for copy in form.copies}
    context |= {
        "now": now,
        "form": form,
        "rebuild": rebuild_panel(dataset, now=now),
        "may_drop": can(actor_of(request), "offboard", dataset.team),
        "teams": _with_present([team.name for team in teams], dataset.team.name),
        "connections": _with_present(
            list(Connection.objects.filter(team__in=teams).values_list("name", flat=True)),
            form.values["connection"],
            *(copy.connection for copy in form.copies),
        ),
        "places": [{"name": center.name, "copy": copies.get(center.name)} for center in DataCenter.objects.all()],
        "grains": [grain.value for grain in Grain],
        "datasets": Dataset.objects.filter(offboarded_at=None).exclude(pk=dataset.pk).values_list("name", flat=True)[:1000],
        "groups": _grouped(lines) if lines is not None else None,
        "changed": changed,
    }  # fmt: skip
    if form.errors:
        return render(request, PAGE, context, status=422)
    return render_live(request, PAGE, context, FRAGMENTS)


def _with_present(names: list[str], *present: str) -> list[str]:
    """What is chosen stays to choose, also where it is another team's: else a browser sends something else in its place."""
    return [*(name for name in dict.fromkeys(present) if name not in names), *names]


def _grouped(lines: Sequence[Consequence]) -> list[dict[str, Any]]:
    """Under a heading each; of what nothing comes, that is said."""
    return [
        {"title": title, "lines": [line.text for line in lines if line.about == about]}
        for about, title in KINDS.items()
    ]


def _label(name: str) -> str:
    return name.replace("_", " ")
