"""Schemas: the list of subjects, one with its versions and columns, and what differs between two versions."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from frontend.screens.schemas.queries import find_subject, find_version, shown_version, version_page
from frontend.screens.schemas.rule_words import RULES, rule_name, rule_sentence
from frontend.ui.form_actions import actor_of
from frontend.ui.live import render_live
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.domain.avro.compatibility import Compatibility
from ingestion.models import SchemaSubject, SchemaVersion
from ingestion.schemas.subjects import listing
from ingestion.schemas.subjects.lake_tables import lake_tables
from ingestion.schemas.subjects.listing import SubjectFilters
from ingestion.schemas.subjects.proposals import diff_of_versions
from lakehub import wiring
from lakehub.accounts.models import Membership
from lakehub.accounts.permissions import can, can_in_some_team

PAGE_SIZE = 50
FRAGMENTS = {"list": "screens/schemas/templates/list.html"}


def schema_list(request: HttpRequest) -> HttpResponse:
    asked = _filters(request.GET)
    mine = Membership.objects.filter(user=actor_of(request)).values_list("team_id", flat=True)
    filters = asked if "mine" not in request.GET else _of_teams(asked, frozenset(mine))
    page = Paginator(listing.subjects_matching(filters), PAGE_SIZE).get_page(request.GET.get("page"))
    teams, rules = listing.count_by_team(), listing.count_by_rule()
    context = {
        "now": wiring.clock.now(),
        "filters": filters,
        "mine": "mine" in request.GET,
        "page": page,
        "rows": [(row, rule_name(row.subject.compatibility)) for row in listing.subject_rows(list(page.object_list))],
        "total": sum(teams.values()),
        "teams": [(name, count, name in filters.teams) for name, count in teams.items()],
        "rules": [
            (rule.value, word, rules[rule.value], rule.value in filters.rules)
            for rule, (word, _) in RULES.items()
            if rule.value in rules
        ],
        "may_write": can_in_some_team(request.user, "onboard"),
    }
    return render_live(request, "screens/schemas/templates/page.html", context, FRAGMENTS)


def subject_page(request: HttpRequest, subject: str) -> HttpResponse:
    """`?version=` is the one whose columns are shown; the newest, where none is named."""
    return render_subject(request, find_subject(subject), _number_in(request.GET, "version"))


def render_subject(
    request: HttpRequest, subject: SchemaSubject, number: int | None, *, why: str = "", error: str = ""
) -> HttpResponse:
    """`why`, `error`: a reason that was typed and refused."""
    actor = actor_of(request)
    versions = version_page(subject, request.GET.get("page"))
    newest = versions.paginator.count and _newest_number(subject)
    dataset = listing.captured_datasets([subject.name]).get(subject.name)
    context: dict[str, Any] = {
        "now": wiring.clock.now(),
        "subject": subject,
        "rule": rule_name(subject.compatibility),
        "rule_sentence": rule_sentence(subject.compatibility),
        "rules": [(rule.value, word, sentence) for rule, (word, sentence) in RULES.items()],
        "page": versions,
        "newest": newest,
        "shown": shown_version(find_version(subject, number)) if newest else None,
        "dataset": dataset,
        "tables": [] if dataset is None else lake_tables(dataset),
        "may_write": can(actor, "onboard", subject.team),
        "may_audit": can(actor, "audit", subject.team),
        "why": why,
        "error": error,
    }
    return render(request, "screens/schemas/templates/subject.html", context, status=422 if error else 200)


def version_diff(request: HttpRequest, subject: str) -> HttpResponse:
    """`?from=` and `?to=`; left out: the newest version, and the one before."""
    of_subject = find_subject(subject)
    newer = find_version(of_subject, _number_in(request.GET, "to"))
    older = find_version(of_subject, _number_in(request.GET, "from") or max(newer.version - 1, 1))
    context = {
        "now": wiring.clock.now(),
        "subject": of_subject,
        "older": older,
        "newer": newer,
        "newest": _newest_number(of_subject),
        "diff": diff_of_versions(older, newer),
    }
    return render(request, "screens/schemas/templates/diff.html", context)


def _newest_number(subject: SchemaSubject) -> int:
    return SchemaVersion.objects.filter(subject=subject).order_by("-version").values_list("version", flat=True)[0]


def _number_in(query: QueryDict, name: str) -> int | None:
    """None: nothing is named. Raises Http404 for what is no number."""
    text = query.get(name, "").strip()
    number = parse_whole_number(text)
    if text and not number:
        raise Http404(f"`{text[:40]}` is not a version: write a number from 1 on.")
    return number


def _filters(query: QueryDict) -> SubjectFilters:
    """Unknown rules are dropped: an old link must not show an error, only more than it used to."""
    rules = {rule.value for rule in Compatibility}
    return SubjectFilters(
        query.get("name", "").strip()[:200],
        frozenset(query.getlist("team")),
        frozenset(rule for rule in query.getlist("rule") if rule in rules),
    )


def _of_teams(filters: SubjectFilters, keys: frozenset[int]) -> SubjectFilters:
    return SubjectFilters(filters.q, filters.teams, filters.rules, keys)
