"""Onboarding in three steps: the source, the keys and the tier, the tests that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from frontend.components.dataset_frame import find_dataset
from frontend.components.datasets import live_runs
from frontend.results.backtest_panel import BacktestPanel, backtest_panels
from frontend.screens.onboarding import onboarding_form as form
from frontend.ui.form_actions import actor_of, errors_as_messages
from frontend.ui.live import render_live
from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can, can_in_some_team, is_operator, teams_where
from lakehub.catalog.metadata import SAMPLE_SHOWN, MetadataUnavailable, TableMetadata
from lakehub.catalog.models import Connection, DataCenter, Dataset, DatasetKind
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.request_permissions import require_onboarding
from lakehub.catalog.storages import Storage, empty_hint, table_hint, takes_patterns
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.partitions import Grain
from quality.domain.slas import TIERS

FRAGMENTS = {"made": "screens/onboarding/templates/created.html"}
MAX_TABLES = 500


def onboarding(request: HttpRequest) -> HttpResponse:
    teams = _teams_of(request)
    if request.method == "POST":
        return _onboard(request, teams)
    connection = Connection.objects.filter(name=request.GET.get("connection", ""), team__in=teams).first()
    if connection is None:
        return _source_step(request, teams)
    try:
        source = connection.storage
        if not request.GET.get("table"):
            return _source_step(request, teams, connection, source.tables(MAX_TABLES))
        table = source.describe(request.GET["table"])
    except MetadataUnavailable as problem:
        return _source_step(request, teams, connection, problem=str(problem))
    name = form.proposed_name(request.GET["table"])
    centers = tuple(DataCenter.objects.values_list("name", flat=True))
    team = teams[0].name if teams else ""
    blank = form.prefilled_form(table, name, team, centers, is_captured=source.is_captured)
    blank = replace(blank, values={**blank.values, "connection": connection.name, "table": request.GET["table"]})
    blank = _with_proposed_columns(_with_proposed_partition(blank, table, source), table, source)
    return _keys_step(request, teams, blank, table, source)


def onboarding_created(request: HttpRequest, name: str) -> HttpResponse:
    """What came of it: the tests, the types that were skipped and why, the bootstrap; `?backtest=` tries the tests on the past."""
    dataset, now = find_dataset(name), wiring.clock.now()
    tests = list(dataset.tests.filter(retired_at=None).select_related("version").order_by("category", "title"))
    may_try = can(actor_of(request), "rerun", dataset.team)
    tried: Mapping[str, BacktestPanel] = {}
    if may_try and "backtest" in request.GET:
        with errors_as_messages(request):
            person = actor_of(request).get_username()
            tried = backtest_panels(dataset, [test.key for test in tests], person=person, now=now)
    for test in tests:
        test.tried = tried.get(test.key)  # type: ignore[attr-defined]  # for the template
    context = {
        "now": now,
        "dataset": dataset,
        "tests": tests,
        "may_try": may_try and any(copy.monitored_from for copy in dataset.copies.all()),
        "tried": bool(tried),
        "paged": sum(len(panel.backtest.pages) for panel in tried.values() if panel.backtest),
        "skipped": list(dataset.skipped_checks.order_by("check_name")),
        "running": live_runs(dataset, now=now),
    }
    return render_live(request, "screens/onboarding/templates/created_page.html", context, FRAGMENTS)


def _onboard(request: HttpRequest, teams: list[Team]) -> HttpResponse:
    draft = form.form_from_post(request.POST)
    if not teams:
        raise PermissionDenied("To onboard a dataset you need to be owner or admin of a team.")
    named = (draft.values["connection"], *(copy.connection for copy in draft.copies))
    require_onboarding(request.user, team=draft.values["team"], connections=named)
    if "propose" in request.POST:
        return _propose_partition(request, teams, draft)
    try:
        done = onboard_dataset(form.application_of(draft), actor=request.user.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _keys_step_with_errors(request, teams, replace(draft, errors=refused.fields or {"name": str(refused)}))
    except ValidationError as invalid:
        return _keys_step_with_errors(
            request, teams, replace(draft, errors={f: " ".join(why) for f, why in invalid.message_dict.items()})
        )
    except Conflict as conflict:
        return _keys_step_with_errors(request, teams, replace(draft, errors={"name": str(conflict)}))
    if done.evidence is not None:
        messages.info(request, f"Primary key: {done.evidence.sentence}.")
    for proposed in done.proposals:
        messages.info(request, proposed.sentence)
    return redirect("onboarding-made", done.dataset.name)


def _propose_partition(request: HttpRequest, teams: list[Team], draft: form.OnboardingForm) -> HttpResponse:
    """The form with grain and form of the partition column as the data says them; nothing is onboarded."""
    table, source = _table_of(draft, teams)
    if table is not None and source is not None:
        draft = _with_proposed_partition(draft, table, source)
    return _keys_step(request, teams, draft, table, source)


def _with_proposed_partition(draft: form.OnboardingForm, table: TableMetadata, source: Storage) -> form.OnboardingForm:
    try:
        return form.with_proposed_partition(draft, table, source)
    except MetadataUnavailable:
        return draft  # checked again when it is onboarded, and the reason is told then


def _with_proposed_columns(draft: form.OnboardingForm, table: TableMetadata, source: Storage) -> form.OnboardingForm:
    try:
        return form.with_proposed_columns(draft, table, source)
    except MetadataUnavailable:
        return draft


def _keys_step_with_errors(request: HttpRequest, teams: list[Team], draft: form.OnboardingForm) -> HttpResponse:
    """The form as it was typed, with what is wrong by field. Status 422: nothing was written."""
    return _keys_step(request, teams, draft, *_table_of(draft, teams), status=422)


def _table_of(draft: form.OnboardingForm, teams: list[Team]) -> tuple[TableMetadata | None, Storage | None]:
    connection = Connection.objects.filter(name=draft.values["connection"], team__in=teams).first()
    if connection is None:
        return None, None
    try:
        source = connection.storage
        return source.describe(draft.values["table"]), source
    except MetadataUnavailable:
        return None, None  # the field `table` says it already


def _source_step(
    request: HttpRequest, teams: list[Team], connection: Connection | None = None, tables: Any = (), problem: str = ""
) -> HttpResponse:
    connections = Connection.objects.filter(team__in=teams).select_related("team")
    context = {
        "teams": teams,
        "connections": connections,
        "connection": connection,
        "tables": tables,
        "table_hint": table_hint(connection.plugin) if connection else "",
        "empty_hint": empty_hint(connection.plugin) if connection else "",
        "problem": problem,
        "takes_patterns": connection is not None and takes_patterns(connection.plugin),
        "may_operate": is_operator(request.user),
        "may_connect": can_in_some_team(request.user, "connect"),
        "any_data_center": DataCenter.objects.exists(),
    }
    return render(request, "screens/onboarding/templates/source.html", context)


def _keys_step(
    request: HttpRequest,
    teams: list[Team],
    draft: form.OnboardingForm,
    table: TableMetadata | None,
    source: Storage | None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": draft,
        "teams": teams,
        "table": table,
        "evidence": _key_evidence(source, draft, table),
        "partition_note": _partition_note(source, draft, table),
        "tiers": list(TIERS),
        "promises": list(TIERS.items()),
        "kinds": DatasetKind.choices,
        "grains": [grain.value for grain in Grain],
        "sample": _sample_rows(source, draft, table),
        "takes_order": form.names_an_order(draft) or source is None or not source.is_captured,
        "takes_hidden_columns": (source is not None and source.can_hide_columns) or draft.opens_hidden_columns,
        "copy_places": _copy_places(draft),
        "connections": Connection.objects.filter(team__in=teams),
        "datasets": Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True),
    }
    return render(request, "screens/onboarding/templates/keys.html", context, status=status)


def _copy_places(draft: form.OnboardingForm) -> list[dict[str, Any]]:
    """Each data center, with where its copy lies as far as the form says."""
    copies = {copy.data_center: copy for copy in draft.copies}
    return [{"data_center": center, "copy": copies.get(center.name)} for center in DataCenter.objects.all()]


def _key_evidence(source: Storage | None, draft: form.OnboardingForm, table: TableMetadata | None) -> str:
    """How well the key that is typed holds on the real rows."""
    key = form.split_names(draft.values["primary_key"])
    if source is None or table is None or not key or any(column not in table.names for column in key):
        return ""
    try:
        return source.key_evidence(draft.values["table"], key).sentence
    except MetadataUnavailable as problem:
        return str(problem)


def _sample_rows(source: Storage | None, draft: form.OnboardingForm, table: TableMetadata | None) -> Mapping[str, Any]:
    """With the reason where they cannot be read."""
    if source is None or table is None:
        return {}
    try:
        return {"rows": source.sample_rows(draft.values["table"], table, SAMPLE_SHOWN)}
    except MetadataUnavailable as problem:
        return {"problem": str(problem)}


def _partition_note(source: Storage | None, draft: form.OnboardingForm, table: TableMetadata | None) -> str:
    if source is None or table is None:
        return ""
    try:
        return form.partition_note(draft, table, source)
    except MetadataUnavailable as problem:
        return str(problem)


def _teams_of(request: HttpRequest) -> list[Team]:
    assert isinstance(request.user, User)
    return list(Team.objects.filter(teams_where(request.user, "onboard")).distinct())
