"""Onboarding in three steps: the source, the keys and the tier, the tests that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from frontend import onboarding as form
from frontend.acting import actor_of, explained
from frontend.backtesting import Tried, all_tried
from frontend.live import render_live
from frontend.queries.dataset import running
from frontend.views.dataset import find
from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can, teams_where
from lakehub.catalog.access import require_onboarding
from lakehub.catalog.checking import reader
from lakehub.catalog.metadata import MetadataReader, MetadataUnavailable, TableMetadata
from lakehub.catalog.models import Connection, DataCenter, Dataset, DatasetKind
from lakehub.catalog.onboarding import onboard
from lakehub.kernel.calendar import Grain
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.registry import UnknownPlugin
from quality.domain.tiers import TIERS

FRAGMENTS = {"made": "frontend/onboarding/made.html"}
TABLES = 500


def onboarding(request: HttpRequest) -> HttpResponse:
    teams = _teams(request)
    if request.method == "POST":
        return _onboard(request, teams)
    connection = Connection.objects.filter(name=request.GET.get("connection", ""), team__in=teams).first()
    if connection is None:
        return _choose(request, teams)
    try:
        source = reader(connection)
        if not request.GET.get("table"):
            return _choose(request, teams, connection, source.tables(TABLES))
        table = source.describe(request.GET["table"])
    except (MetadataUnavailable, UnknownPlugin) as problem:
        return _choose(request, teams, connection, problem=str(problem))
    name = request.GET["table"].rsplit(".", 1)[-1].lower()
    centers = tuple(DataCenter.objects.values_list("name", flat=True))
    blank = form.blank(table, name, teams[0].name if teams else "", centers)
    blank = replace(blank, values={**blank.values, "connection": connection.name, "table": request.GET["table"]})
    return _keys(request, teams, blank, table, source)


def made(request: HttpRequest, name: str) -> HttpResponse:
    """What came of it: the tests, the types that were skipped and why, the bootstrap; `?backtest=` tries the tests on the past."""
    dataset, now = find(name), wiring.clock.now()
    tests = list(dataset.tests.filter(retired_at=None).select_related("version").order_by("category", "title"))
    may_try = can(actor_of(request), "rerun", dataset.team)
    tried: Mapping[str, Tried] = {}
    if may_try and "backtest" in request.GET:
        with explained(request):
            person = actor_of(request).get_username()
            tried = all_tried(dataset, [test.key for test in tests], person=person, now=now)
    for test in tests:
        test.tried = tried.get(test.key)  # type: ignore[attr-defined]  # for the template
    context = {
        "now": now,
        "dataset": dataset,
        "tests": tests,
        "may_try": may_try and any(copy.monitored_from for copy in dataset.copies.all()),
        "tried": bool(tried),
        "paged": sum(len(one.backtest.pages) for one in tried.values() if one.backtest),
        "skipped": list(dataset.skipped_checks.order_by("check_name")),
        "running": list(running(dataset)),
    }
    return render_live(request, "frontend/onboarding/made_page.html", context, FRAGMENTS)


def _onboard(request: HttpRequest, teams: list[Team]) -> HttpResponse:
    said = form.typed(request.POST)
    if not teams:
        raise PermissionDenied("To onboard a dataset you need to be owner or admin of a team.")
    require_onboarding(request.user, team=said.values["team"], connection=said.values["connection"])
    try:
        done = onboard(form.application(said), actor=request.user.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _again(request, teams, replace(said, errors=refused.fields or {"name": str(refused)}))
    except ValidationError as invalid:
        return _again(
            request, teams, replace(said, errors={f: " ".join(why) for f, why in invalid.message_dict.items()})
        )
    except Conflict as conflict:
        return _again(request, teams, replace(said, errors={"name": str(conflict)}))
    if done.evidence is not None:
        messages.info(request, f"Primary key: {form.evidence_line(done.evidence)}.")
    return redirect("onboarding-made", done.dataset.name)


def _again(request: HttpRequest, teams: list[Team], said: form.Form) -> HttpResponse:
    """The form as it was typed, with what is wrong by field. Status 422: nothing was written."""
    connection = Connection.objects.filter(name=said.values["connection"], team__in=teams).first()
    table, source = None, None
    if connection is not None:
        try:
            source = reader(connection)
            table = source.describe(said.values["table"])
        except (MetadataUnavailable, UnknownPlugin):
            table = None  # the field `table` says it already
    return _keys(request, teams, said, table, source, status=422)


def _choose(
    request: HttpRequest, teams: list[Team], connection: Connection | None = None, tables: Any = (), problem: str = ""
) -> HttpResponse:
    connections = Connection.objects.filter(team__in=teams).select_related("team")
    context = {
        "teams": teams,
        "connections": connections,
        "connection": connection,
        "tables": tables,
        "problem": problem,
    }
    return render(request, "frontend/onboarding/source.html", context)


def _keys(
    request: HttpRequest,
    teams: list[Team],
    said: form.Form,
    table: TableMetadata | None,
    source: MetadataReader | None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": said,
        "teams": teams,
        "table": table,
        "evidence": _evidence(source, said, table),
        "tiers": list(TIERS),
        "promises": list(TIERS.items()),
        "kinds": DatasetKind.choices,
        "grains": [grain.value for grain in Grain],
        "data_centers": DataCenter.objects.all(),
        "datasets": Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True),
    }
    return render(request, "frontend/onboarding/keys.html", context, status=status)


def _evidence(source: MetadataReader | None, said: form.Form, table: TableMetadata | None) -> str:
    """How well the key that is typed holds on the real rows."""
    key = form.words(said.values["primary_key"])
    if source is None or table is None or not key or any(column not in table.names for column in key):
        return ""
    try:
        return form.evidence_line(source.key_evidence(said.values["table"], key))
    except MetadataUnavailable as problem:
        return str(problem)


def _teams(request: HttpRequest) -> list[Team]:
    assert isinstance(request.user, User)
    return list(Team.objects.filter(teams_where(request.user, "onboard")).distinct())
