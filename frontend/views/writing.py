"""Writing a test: its expression is checked while it is typed, and tried on the past before it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend import drafts
from frontend.acting import actor_of
from frontend.backtesting import Tried, tried
from frontend.drafts import Draft
from frontend.expressions import checked
from frontend.views.dataset import find
from frontend.views.one_test import find_test
from lakehub import wiring
from lakehub.accounts import audit
from lakehub.accounts.permissions import require
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.generator import write_test
from quality.models import Test

EXAMPLES = (
    ("nulls(this.{column}) / rows(this) < 5%", "few nulls in a column"),
    ("rows(this) > 0", "there is data at all"),
    ("distinct(this, {key}) == rows(this)", "these columns name its rows"),
    ("abs(rows(this) - rows(this[-7d])) / rows(this[-7d]) < 20%", "about as many rows as a week before"),
    (
        "sum(this.{number}) / sum(this[-7d].{number}) > 0.8 with sustain=2h",
        "no sudden fall; a warning at first, a failure after 2 h",
    ),
)
NUMBERS = ("integer", "float", "decimal")


def new(request: HttpRequest, name: str) -> HttpResponse:
    """An address may bring a draft, such as one that was proposed."""
    dataset = _writable(request, name)
    if request.method != "POST":
        brought = drafts.typed(request.GET)
        return _form(request, dataset, replace(brought, gating=request.GET.get("gating") != "0"))
    return _said(request, dataset, drafts.typed(request.POST))


def edit(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset = _writable(request, name)
    _, test = find_test(name, key)
    if test.generated or test.retired_at:
        raise Http404(f"`{key}` is {'generated' if test.generated else 'retired'}: it cannot be edited.")
    if request.method != "POST":
        return _form(request, dataset, drafts.of_test(test), test)
    return _said(request, dataset, drafts.typed(request.POST, key=key), test)


@require_POST
def check(request: HttpRequest, name: str) -> HttpResponse:
    """The part of the form that says how the expression is understood; asked for while it is typed."""
    text = request.POST.get("expression", "").strip()
    return render(request, "frontend/test/checked.html", {"checked": checked(find(name), text) if text else None})


def _writable(request: HttpRequest, name: str) -> Dataset:
    dataset = find(name)
    require(actor_of(request), "onboard", dataset.team)
    if dataset.offboarded_at is not None:
        raise Http404(f"{name} is off-boarded: restore it to write tests for it.")
    return dataset


def _said(request: HttpRequest, dataset: Dataset, draft: Draft, test: Test | None = None) -> HttpResponse:
    if request.POST.get("act") in ("check", "backtest"):
        return _form(request, dataset, draft, test)
    try:
        asked = drafts.valid(draft)
        if test is None:
            drafts.refuse_taken(dataset, draft.key)
        actor, now = actor_of(request).get_username(), wiring.clock.now()
        made = write_test(dataset, **asked, actor=actor, now=now)  # type: ignore[arg-type]  # the serializer checked them
    except Refused as refused:
        return _form(request, dataset, replace(draft, errors=refused.fields or {"title": str(refused)}), test)
    audit.record(actor, "write test", f"dataset:{dataset.name}", now=now, key=made.key)
    messages.info(request, f"{made.title} is saved; it runs over the data that is due.")
    return redirect("dataset-test", dataset.name, made.key)


def _form(request: HttpRequest, dataset: Dataset, draft: Draft, test: Test | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "now": wiring.clock.now(),
        "dataset": dataset,
        "test": test,
        "draft": draft,
        "checked": checked(dataset, draft.expression) if draft.expression else None,
        "examples": _examples(dataset),
        "tried": _tried(request, dataset, draft),
    }
    return render(request, "frontend/test/write.html", context, status=422 if draft.errors else 200)


def _tried(request: HttpRequest, dataset: Dataset, draft: Draft) -> Tried | None:
    """Where it was asked for."""
    if request.POST.get("act") != "backtest" or not draft.expression:
        return None
    person = actor_of(request).get_username()
    return tried(dataset, expression=draft.expression, person=person, now=wiring.clock.now())


def _examples(dataset: Dataset) -> list[tuple[str, str]]:
    """In the columns of the dataset: one that may be empty, one with numbers, its key."""
    others = [one for one in dataset.columns if one["name"] not in (*dataset.primary_key, dataset.partition_column)]
    others = sorted(others, key=lambda one: not one.get("nullable", True)) or [{"name": "column", "type": "integer"}]
    number = next((one["name"] for one in others if one["type"] in NUMBERS), others[0]["name"])
    key = ", ".join(dataset.primary_key) or others[0]["name"]
    return [(text.format(column=others[0]["name"], number=number, key=key), said) for text, said in EXAMPLES]
