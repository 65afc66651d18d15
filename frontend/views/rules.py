"""The rules of a dataset's columns: those that are set, what its data proposes, and setting one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend import declaring, words
from frontend.acting import act, actor_of
from frontend.declaring import RuleDraft
from frontend.queries.tests import test_rows
from frontend.views.dataset import find, frame
from incidents.domain.rollup import heaviest
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from quality import rules
from quality.domain.rules import BadRule
from quality.models import ColumnRule, Test
from quality.proposals import Proposed, propose


@dataclass(frozen=True)
class Row:
    """A rule, with the test that it makes and how that goes; `problem` says why it makes none any more."""

    rule: ColumnRule
    title: str
    expression: str
    problem: str
    test: Test | None
    state: str


def page(request: HttpRequest, name: str) -> HttpResponse:
    """`?kind=` opens the form of a kind; `?propose=1` looks at the newest complete data."""
    dataset = find(name)
    if request.method != "POST":
        return _page(request, dataset, declaring.rule_typed(request.GET))
    actor = actor_of(request)
    require(actor, "onboard", dataset.team)
    draft = declaring.rule_typed(request.POST)
    if draft is None:
        return redirect("dataset-rules", name)
    try:
        asked = declaring.rule_asked(draft, dataset)
        rules.put(dataset, **asked, actor=actor.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _page(request, dataset, replace(draft, errors=refused.fields or {"kind": str(refused)}))
    messages.info(request, "The rule is set; its test runs over the data that is due.")
    return redirect("dataset-rules", name)


@require_POST
def take(request: HttpRequest, name: str) -> HttpResponse:
    """Sets the proposals that were chosen."""
    dataset = find(name)

    def use_case(actor: User) -> str:
        chosen = declaring.proposed(request.POST.getlist("rule"))
        for one in chosen:
            rules.put(dataset, **one, actor=actor.get_username(), now=wiring.clock.now())
        return (
            f"{words.count(len(chosen), 'rule')} {'is' if len(chosen) == 1 else 'are'} set."
            if chosen
            else "None was chosen."
        )

    return act(request, "onboard", dataset, use_case, then=reverse("dataset-rules", args=[name]))


@require_POST
def remove(request: HttpRequest, name: str, number: int) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        row = rules.rule_of(dataset, number)
        rules.remove(row, actor=actor.get_username(), now=wiring.clock.now())
        return "The rule is taken back. The results of its test stay."

    return act(request, "onboard", dataset, use_case, then=reverse("dataset-rules", args=[name]))


def _page(request: HttpRequest, dataset: Dataset, draft: RuleDraft | None) -> HttpResponse:
    now = wiring.clock.now()
    _, context = frame(request, dataset.name, "rules", now)
    found, problem = _proposed(request, dataset) if context["may_write"] else (None, "")
    context |= {
        "rows": _rows(dataset, context),
        "kinds": declaring.KIND_WORDS.items(),
        "draft": draft if context["may_write"] else None,
        "proposed": found,
        "proposals": [(one, json.dumps(_carried(one.rule))) for one in found.proposals] if found else [],
        "problem": problem,
    }
    return render(request, "frontend/dataset/rules.html", context, status=422 if draft and draft.errors else 200)


def _proposed(request: HttpRequest, dataset: Dataset) -> tuple[Proposed | None, str]:
    """Asked for only: it reads the data."""
    if "propose" not in request.GET:
        return None, ""
    try:
        return propose(dataset, now=wiring.clock.now()), ""
    except (Refused, NotFound, Conflict) as problem:
        return None, str(problem)


def _carried(rule: Any) -> dict[str, Any]:
    return {"kind": rule.kind, "column": rule.column, "parameters": dict(rule.parameters)}


def _rows(dataset: Dataset, context: dict[str, Any]) -> list[Row]:
    """Six queries, however many rules."""
    tests = {
        test.key: test
        for test in dataset.tests.filter(retired_at=None, key__startswith="rule:").select_related("version")
    }
    states: dict[int, list[str]] = {}
    for row in test_rows(dataset, list(tests.values()), context["health"], now=context["now"]):
        states.setdefault(row.test.pk, []).append(row.state)
    return [_row(rule, tests, states) for rule in dataset.column_rules.order_by("column", "kind", "by")]


def _row(rule: ColumnRule, tests: dict[str, Test], states: dict[int, list[str]]) -> Row:
    test = tests.get(rule.rule.key)
    state = heaviest(states.get(test.pk, [])) if test else "none"
    try:
        return Row(rule, rule.rule.title, rule.rule.expression, "", test, state)
    except BadRule as problem:
        return Row(rule, str(rule), "", str(problem), test, state)
