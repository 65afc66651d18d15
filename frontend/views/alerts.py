"""The alerts of a dataset: how loud each category is, who hears of it, and what holds its messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.acting import act
from frontend.views.dataset import find, frame
from incidents import alerting, alerts, snoozing, suppressions
from incidents.domain.alerting import Severity
from incidents.domain.precedence import DEFAULT
from incidents.messages.holding import pairs_of
from incidents.models import Incident, SuppressionRule
from incidents.upstream import open_upstream
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.models import Category


@dataclass(frozen=True)
class Line:
    """`by` holds the messages of `suppressed`, or would by default and does not here."""

    by: Category
    suppressed: Category
    counts: bool
    rule: SuppressionRule | None
    """Who changed the default."""


def page(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = frame(request, name, "alerts", now)
    context |= {
        "alerts": alerting.of_dataset(dataset),
        "severities": list(Severity),
        "categories": Category.choices,
        "lines": _lines(dataset),
        "is_default": pairs_of(dataset) == DEFAULT,
        "upstream": open_upstream(dataset),
        "snoozed": _snoozed(dataset, now),
    }
    return render(request, "frontend/dataset/alerts.html", context)


@require_POST
def override(request: HttpRequest, name: str, category: str) -> HttpResponse:
    """`as_made` lets the template count again."""
    dataset = find(name)

    def use_case(actor: User) -> str:
        said = request.POST
        severity = said.get("severity", "")
        wanted = {"severity": severity or None, "muted": "muted" in said, "why": said.get("why", "").strip()[:500]}
        wanted = {} if "as_made" in said else wanted
        made = alerts.override(_live(dataset), category, wanted, actor=actor.get_username(), now=wiring.clock.now())
        return f"{Category(made.category).label.capitalize()} is {made.tone.severity}{' and muted' if made.tone.muted else ''}."

    return act(request, "onboard", dataset, use_case, then=_page(dataset))


@require_POST
def suppress(request: HttpRequest, name: str) -> HttpResponse:
    """`counts` is 1 or 0."""
    dataset = find(name)

    def use_case(actor: User) -> str:
        by, suppressed, counts = (request.POST.get(field, "") for field in ("by", "suppresses", "counts"))
        who, now = actor.get_username(), wiring.clock.now()
        suppressions.put(_live(dataset), by, suppressed, counts=counts == "1", actor=who, now=now)
        return f"{by.capitalize()} holds messages of {suppressed}{'' if counts == '1' else ' no longer'}."

    return act(request, "onboard", dataset, use_case, then=f"{_page(dataset)}#suppression")


@require_POST
def reset(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        suppressions.reset(_live(dataset), actor=actor.get_username(), now=wiring.clock.now())
        return "Freshness holds all others, and nothing else does."

    return act(request, "onboard", dataset, use_case, then=f"{_page(dataset)}#suppression")


def _live(dataset: Dataset) -> Dataset:
    if dataset.offboarded_at is not None:
        raise Refused(f"{dataset.name} is off-boarded: nothing of it is told.")
    return dataset


def _page(dataset: Dataset) -> str:
    return reverse("dataset-alerts", args=[dataset.name])


def _lines(dataset: Dataset) -> list[Line]:
    """What counts first, then what was taken away from the default."""
    rules = {(rule.by_category, rule.suppresses): rule for rule in SuppressionRule.objects.filter(dataset=dataset)}
    pairs = DEFAULT | set(rules)
    lines = [Line(Category(by), Category(to), _counts(rules.get((by, to))), rules.get((by, to))) for by, to in pairs]
    order = list(Category)
    return sorted(lines, key=lambda line: (not line.counts, order.index(line.by), order.index(line.suppressed)))


def _counts(rule: SuppressionRule | None) -> bool:
    return rule is None or rule.enabled


def _snoozed(dataset: Dataset, now: datetime) -> list[tuple[Incident, str]]:
    """With what it waits for, in words."""
    rows = Incident.objects.filter(dataset=dataset, resolved_at=None, snoozed_until__gt=now).order_by("pk")
    return [(one, str(snoozing.of(one, now=now))) for one in rows]
