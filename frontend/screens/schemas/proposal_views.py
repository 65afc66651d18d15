"""A proposed schema is looked at first: what it changes, and whether the rule of the subject allows it. Then it is registered as it was looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend.screens.schemas.proposal_form import (
    EXAMPLE,
    SIZE_HINT,
    ProposalForm,
    looked_at,
    proposal_form_from,
    with_its_column,
)
from frontend.screens.schemas.queries import find_subject, pretty
from frontend.screens.schemas.rule_words import rule_name, rule_sentence
from frontend.ui.form_actions import actor_of
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.domain.column_types import SIMPLE_TYPES
from ingestion.models import SchemaSubject, SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.subjects import listing
from ingestion.schemas.subjects.proposals import Proposal
from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can, require, require_in_named_team, require_in_some_team, teams_where
from lakehub.kernel.errors import Conflict, Refused

TYPES = (*SIMPLE_TYPES, "decimal(10,2)", "array<string>", "map<string,string>", "struct<lat:double,lon:double>")
"""To choose from; any other may be written."""


def propose_version(request: HttpRequest, subject: str) -> HttpResponse:
    """Everybody may look at what a schema would change; owners register it."""
    of_subject = find_subject(subject)
    if request.method != "POST":
        newest = of_subject.versions.order_by("-version").first()
        text = EXAMPLE if newest is None else pretty(newest.text, registry.schema_of(newest))
        return _page(request, ProposalForm(subject, text), of_subject)
    return _looked_at_page(request, proposal_form_from(request.POST, subject=subject), of_subject)


@require_POST
def register_version(request: HttpRequest, subject: str) -> HttpResponse:
    of_subject, actor = find_subject(subject), actor_of(request)
    require(actor, "onboard", of_subject.team)
    form = proposal_form_from(request.POST, subject=subject)
    try:
        return _registered(request, form, of_subject.team, actor)
    except (Refused, Conflict) as problem:
        return _looked_at_page(request, form, of_subject, problem=str(problem))


def new_subject(request: HttpRequest) -> HttpResponse:
    require_in_some_team(request.user, "onboard")
    if request.method != "POST":
        return _page(request, ProposalForm("", EXAMPLE))
    return _looked_at_page(request, proposal_form_from(request.POST))


@require_POST
def register_subject(request: HttpRequest) -> HttpResponse:
    actor, form = actor_of(request), proposal_form_from(request.POST)
    team = Team.objects.filter(name=form.team).first()
    require_in_named_team(actor, "onboard", team)
    if team is None:
        return _page(request, replace(form, errors={"team": "Choose a team: its owners register the versions."}))
    try:
        return _registered(request, form, team, actor)
    except (Refused, Conflict) as problem:
        return _looked_at_page(request, form, problem=str(problem))


def _registered(request: HttpRequest, form: ProposalForm, team: Team, actor: User) -> HttpResponse:
    """Raises Refused, Conflict."""
    after = parse_whole_number(request.POST.get("after", ""))
    if after is None:
        raise Refused("Look at what the schema changes before you register it.")
    version = registry.register(
        form.subject, form.text, team=team, actor=actor.get_username(), now=wiring.clock.now(), after=after
    )
    messages.info(request, _outcome(version, after))
    return redirect("schemas-subject", form.subject)


def _outcome(version: SchemaVersion, after: int) -> str:
    if version.version <= after:
        return f"That schema is version {version.version} already. Nothing was registered."
    return f"Version {version.version} is registered; its id is {version.pk}."


def _looked_at_page(
    request: HttpRequest, form: ProposalForm, subject: SchemaSubject | None = None, *, problem: str = ""
) -> HttpResponse:
    form, proposal = looked_at(with_its_column(form) if request.POST.get("action") == "add" else form)
    if subject is None and proposal is not None and proposal.newest is not None:
        taken = f"There is a subject {form.subject} already: propose a version of it, or choose another name."
        form, proposal = replace(form, errors={"subject": taken}), None
    return _page(request, form, subject, proposal=proposal, problem=problem)


def _page(
    request: HttpRequest,
    form: ProposalForm,
    subject: SchemaSubject | None = None,
    *,
    proposal: Proposal | None = None,
    problem: str = "",
) -> HttpResponse:
    rule = registry.DEFAULT_RULE.value if subject is None else subject.compatibility
    teams = Team.objects.filter(teams_where(request.user, "onboard")).distinct().order_by("name")
    context: dict[str, Any] = {
        "now": wiring.clock.now(),
        "form": form,
        "subject": subject,
        "proposal": proposal,
        "problem": problem,
        "rule": rule_name(rule),
        "rule_sentence": rule_sentence(rule),
        "newest": subject and subject.versions.aggregate(number=Max("version"))["number"],
        "dataset": subject and listing.captured_datasets([subject.name]).get(subject.name),
        "teams": () if subject else teams,
        "types": TYPES,
        "size_hint": SIZE_HINT,
        "may_register": subject is None or can(actor_of(request), "onboard", subject.team),
    }
    is_refused = form.errors or problem or (proposal is not None and not proposal.may_be_registered)
    return render(request, "screens/schemas/templates/propose.html", context, status=422 if is_refused else 200)
