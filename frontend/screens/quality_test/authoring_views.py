"""Writing a test: its expression is checked while it is typed, and tried on the past before it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import find_dataset
from frontend.results.backtest_panel import BacktestPanel, backtest_panel
from frontend.screens.quality_test import authoring_form
from frontend.screens.quality_test.authoring_form import QualityTestForm
from frontend.screens.quality_test.expression_check import check_expression
from frontend.screens.quality_test.views import find_test
from frontend.ui.form_actions import actor_of
from lakehub import wiring
from lakehub.accounts.audit import audit_log
from lakehub.accounts.permissions import require
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions.form import split_columns
from quality.generation.custom_tests import write_custom_test
from quality.models import QualityTest

EXPRESSION_EXAMPLES = (
    ("nulls(this.{column}) / rows(this) < 5%", "few nulls in a column"),
    ("rows(this) > 0", "there is data at all"),
    ("distinct(this, {key}) == rows(this)", "these columns name its rows"),
    ("abs(rows(this) - rows(this[-7d])) / rows(this[-7d]) < 20%", "about as many rows as a week before"),
    (
        "sum(this.{number}) / sum(this[-7d].{number}) > 0.8 with sustain=2h",
        "no sudden fall; a warning at first, a failure after 2 h",
    ),
)
NUMERIC_TYPES = ("integer", "float", "decimal")


def new_test(request: HttpRequest, name: str) -> HttpResponse:
    """An address may bring a draft, such as one that was proposed."""
    dataset = _writable_dataset(request, name)
    if request.method != "POST":
        brought = authoring_form.form_from(request.GET)
        return _form_page(request, dataset, replace(brought, gating=request.GET.get("gating") != "0"))
    return _submit(request, dataset, authoring_form.form_from(request.POST))


def edit_test(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset = _writable_dataset(request, name)
    _, test = find_test(name, key)
    if test.generated or test.retired_at:
        raise Http404(f"`{key}` is {'generated' if test.generated else 'retired'}: it cannot be edited.")
    if request.method != "POST":
        return _form_page(request, dataset, authoring_form.form_of_test(test), test)
    return _submit(request, dataset, authoring_form.form_from(request.POST, key=key), test)


@require_POST
def expression_fragment(request: HttpRequest, name: str) -> HttpResponse:
    """The part of the form that says how the expression is understood; asked for while it is typed."""
    text = request.POST.get("expression", "").strip()
    return render(
        request,
        "screens/quality_test/templates/expression_check.html",
        {"checked": check_expression(find_dataset(name), text) if text else None},
    )


def _writable_dataset(request: HttpRequest, name: str) -> Dataset:
    dataset = find_dataset(name)
    require(actor_of(request), "onboard", dataset.team)
    if dataset.offboarded_at is not None:
        raise Http404(f"{name} is off-boarded: restore it to write tests for it.")
    return dataset


def _submit(
    request: HttpRequest, dataset: Dataset, draft: QualityTestForm, test: QualityTest | None = None
) -> HttpResponse:
    if request.POST.get("act") in ("check", "backtest"):
        return _form_page(request, dataset, draft, test)
    try:
        arguments = authoring_form.validated_arguments(draft)
        if test is None:
            authoring_form.require_free_key(dataset, draft.key)
        author, now = actor_of(request), wiring.clock.now()
        actor = author.get_username()
        saved_test = write_custom_test(dataset, **arguments, actor=actor, author=author, now=now)  # type: ignore[arg-type]  # the serializer checked them
    except Refused as refused:
        return _form_page(request, dataset, replace(draft, errors=refused.fields or {"title": str(refused)}), test)
    audit_log.record(actor, "write test", f"dataset:{dataset.name}", now=now, key=saved_test.key)
    messages.info(request, f"{saved_test.title} is saved; it runs over the data that is due.")
    return redirect("dataset-test", dataset.name, saved_test.key)


def _form_page(
    request: HttpRequest, dataset: Dataset, draft: QualityTestForm, test: QualityTest | None = None
) -> HttpResponse:
    context: dict[str, Any] = {
        "now": wiring.clock.now(),
        "dataset": dataset,
        "test": test,
        "draft": draft,
        "checked": check_expression(dataset, draft.expression) if draft.expression else None,
        "examples": _examples_for(dataset),
        "tried": _backtest(request, dataset, draft),
    }
    return render(
        request, "screens/quality_test/templates/authoring.html", context, status=422 if draft.errors else 200
    )


def _backtest(request: HttpRequest, dataset: Dataset, draft: QualityTestForm) -> BacktestPanel | None:
    """Where it was asked for."""
    if request.POST.get("act") != "backtest" or not draft.expression:
        return None
    return backtest_panel(dataset, expression=draft.expression, person=actor_of(request), now=wiring.clock.now())


def _examples_for(dataset: Dataset) -> list[tuple[str, str]]:
    """In the columns of the dataset: one that may be empty, one with numbers, its key."""
    others = [
        column
        for column in dataset.columns
        if column["name"] not in (*dataset.primary_key, *split_columns(dataset.partition_column))
    ]
    others = sorted(others, key=lambda column: not column.get("nullable", True)) or [
        {"name": "column", "type": "integer"}
    ]
    number = next((column["name"] for column in others if column["type"] in NUMERIC_TYPES), others[0]["name"])
    key = ", ".join(dataset.primary_key) or others[0]["name"]
    return [
        (text.format(column=others[0]["name"], number=number, key=key), explanation)
        for text, explanation in EXPRESSION_EXAMPLES
    ]
