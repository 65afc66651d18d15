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

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.components.quality_test_rows import rows_of_tests
from frontend.screens.rules import rule_form
from frontend.screens.rules.rule_form import RuleForm
from frontend.ui import words
from frontend.ui.form_actions import actor_of, perform_action
from incidents.domain.incident.health import worst_state
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from quality.domain.generation.rules import BadRule
from quality.generation import rules
from quality.generation.rule_suggestions import RuleSuggestionReport, suggest_rules
from quality.models import ColumnRule, QualityTest


@dataclass(frozen=True)
class RuleRow:
    """A rule, with the test that it makes and how that goes; `problem` says why it makes none any more."""

    rule: ColumnRule
    title: str
    expression: str
    problem: str
    test: QualityTest | None
    state: str


def dataset_rules(request: HttpRequest, name: str) -> HttpResponse:
    """`?kind=` opens the form of a kind; `?propose=1` looks at the newest complete data."""
    dataset = find_dataset(name)
    if request.method != "POST":
        return _rules_page(request, dataset, rule_form.rule_form_from(request.GET))
    actor = actor_of(request)
    require(actor, "onboard", dataset.team)
    draft = rule_form.rule_form_from(request.POST)
    if draft is None:
        return redirect("dataset-rules", name)
    try:
        arguments = rule_form.rule_arguments(draft, dataset)
        rules.set_rule(dataset, **arguments, actor=actor.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _rules_page(request, dataset, replace(draft, errors=refused.fields or {"kind": str(refused)}))
    messages.info(request, "The rule is set; its test runs over the data that is due.")
    return redirect("dataset-rules", name)


@require_POST
def accept_suggestions(request: HttpRequest, name: str) -> HttpResponse:
    """Sets the proposals that were chosen."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        chosen = rule_form.chosen_suggestions(request.POST.getlist("rule"))
        for suggestion in chosen:
            rules.set_rule(dataset, **suggestion, actor=actor.get_username(), now=wiring.clock.now())
        return (
            f"{words.count(len(chosen), 'rule')} {'is' if len(chosen) == 1 else 'are'} set."
            if chosen
            else "None was chosen."
        )

    return perform_action(request, "onboard", dataset, use_case, then=reverse("dataset-rules", args=[name]))


@require_POST
def remove_rule(request: HttpRequest, name: str, number: int) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        row = rules.rule_of(dataset, number)
        rules.remove_rule(row, actor=actor.get_username(), now=wiring.clock.now())
        return "The rule is taken back. The results of its test stay."

    return perform_action(request, "onboard", dataset, use_case, then=reverse("dataset-rules", args=[name]))


def _rules_page(request: HttpRequest, dataset: Dataset, draft: RuleForm | None) -> HttpResponse:
    now = wiring.clock.now()
    _, context = dataset_frame(request, dataset.name, "rules", now)
    proposed, problem = _suggestions(request, dataset) if context["may_write"] else (None, "")
    context |= {
        "rows": _rule_rows(dataset, context),
        "kinds": rule_form.RULE_KIND_LABELS.items(),
        "draft": draft if context["may_write"] else None,
        "proposed": proposed,
        "proposals": [
            (suggestion, json.dumps(_suggestion_payload(suggestion.rule))) for suggestion in proposed.suggestions
        ]
        if proposed
        else [],
        "problem": problem,
    }
    return render(request, "screens/rules/templates/page.html", context, status=422 if draft and draft.errors else 200)


def _suggestions(request: HttpRequest, dataset: Dataset) -> tuple[RuleSuggestionReport | None, str]:
    """Asked for only: it reads the data."""
    if "propose" not in request.GET:
        return None, ""
    try:
        return suggest_rules(dataset, now=wiring.clock.now()), ""
    except (Refused, NotFound, Conflict) as problem:
        return None, str(problem)


def _suggestion_payload(rule: Any) -> dict[str, Any]:
    return {"kind": rule.kind, "column": rule.column, "parameters": dict(rule.parameters)}


def _rule_rows(dataset: Dataset, context: dict[str, Any]) -> list[RuleRow]:
    """Six queries, however many rules."""
    tests = {
        test.key: test
        for test in dataset.tests.filter(retired_at=None, key__startswith="rule:").select_related("version")
    }
    states: dict[int, list[str]] = {}
    for row in rows_of_tests(dataset, list(tests.values()), context["health"], now=context["now"]):
        states.setdefault(row.test.pk, []).append(row.state)
    return [_rule_row(rule, tests, states) for rule in dataset.column_rules.order_by("column", "kind", "by")]


def _rule_row(rule: ColumnRule, tests: dict[str, QualityTest], states: dict[int, list[str]]) -> RuleRow:
    test = tests.get(rule.rule.key)
    state = worst_state(states.get(test.pk, [])) if test else "none"
    try:
        return RuleRow(rule, rule.rule.title, rule.rule.expression, "", test, state)
    except BadRule as problem:
        return RuleRow(rule, str(rule), "", str(problem), test, state)
