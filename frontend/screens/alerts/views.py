"""The alerts of a dataset: how loud each category is, who hears of it, and what holds its messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.ui.form_actions import perform_action
from incidents.alerts import generate, overview, suppression_rules
from incidents.domain.alerting.routing import Severity
from incidents.domain.alerting.suppression import DEFAULT_PAIRS
from incidents.models import Incident, SuppressionRule
from incidents.notifications.send_conditions import suppression_pairs
from incidents.record import snooze
from incidents.record.upstream import open_upstream_incidents
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.models import Category


@dataclass(frozen=True)
class SuppressionLine:
    """`by` holds the messages of `suppressed`, or would by default and does not here."""

    by: Category
    suppressed: Category
    counts: bool
    rule: SuppressionRule | None
    """Who changed the default."""


def dataset_alerts(request: HttpRequest, name: str) -> HttpResponse:
    now = wiring.clock.now()
    dataset, context = dataset_frame(request, name, "alerts", now)
    context |= {
        "alerts": overview.alert_overviews_of(dataset),
        "severities": list(Severity),
        "categories": Category.choices,
        "lines": _suppression_lines(dataset),
        "is_default": suppression_pairs(dataset) == DEFAULT_PAIRS,
        "upstream": open_upstream_incidents(dataset),
        "snoozed": _snoozed_incidents(dataset, now),
    }
    return render(request, "screens/alerts/templates/page.html", context)


@require_POST
def override_alert(request: HttpRequest, name: str, category: str) -> HttpResponse:
    """`as_made` lets the template count again."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        posted = request.POST
        severity = posted.get("severity", "")
        override = {
            "severity": severity or None,
            "muted": "muted" in posted,
            "why": posted.get("why", "").strip()[:500],
        }
        override = {} if "as_made" in posted else override
        alert = generate.override_alert(
            _require_live(dataset), category, override, actor=actor.get_username(), now=wiring.clock.now()
        )
        return f"{Category(alert.category).label.capitalize()} is {alert.setting.severity}{' and muted' if alert.setting.muted else ''}."

    return perform_action(request, "onboard", dataset, use_case, then=_page_url(dataset))


@require_POST
def set_suppression(request: HttpRequest, name: str) -> HttpResponse:
    """`counts` is 1 or 0."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        by, suppressed, counts = (request.POST.get(field, "") for field in ("by", "suppresses", "counts"))
        who, now = actor.get_username(), wiring.clock.now()
        suppression_rules.set_suppression(
            _require_live(dataset), by, suppressed, counts=counts == "1", actor=who, now=now
        )
        return f"{by.capitalize()} holds messages of {suppressed}{'' if counts == '1' else ' no longer'}."

    return perform_action(request, "onboard", dataset, use_case, then=f"{_page_url(dataset)}#suppression")


@require_POST
def reset_suppressions(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        suppression_rules.reset_suppression(_require_live(dataset), actor=actor.get_username(), now=wiring.clock.now())
        return "Freshness holds all others, and nothing else does."

    return perform_action(request, "onboard", dataset, use_case, then=f"{_page_url(dataset)}#suppression")


def _require_live(dataset: Dataset) -> Dataset:
    if dataset.offboarded_at is not None:
        raise Refused(f"{dataset.name} is off-boarded: nothing of it is told.")
    return dataset


def _page_url(dataset: Dataset) -> str:
    return reverse("dataset-alerts", args=[dataset.name])


def _suppression_lines(dataset: Dataset) -> list[SuppressionLine]:
    """What counts first, then what was taken away from the default."""
    rules = {(rule.by_category, rule.suppresses): rule for rule in SuppressionRule.objects.filter(dataset=dataset)}
    pairs = DEFAULT_PAIRS | set(rules)
    lines = [
        SuppressionLine(Category(by), Category(to), _is_enabled(rules.get((by, to))), rules.get((by, to)))
        for by, to in pairs
    ]
    order = list(Category)
    return sorted(lines, key=lambda line: (not line.counts, order.index(line.by), order.index(line.suppressed)))


def _is_enabled(rule: SuppressionRule | None) -> bool:
    return rule is None or rule.enabled


def _snoozed_incidents(dataset: Dataset, now: datetime) -> list[tuple[Incident, str]]:
    """With what it waits for, in words."""
    rows = Incident.objects.filter(dataset=dataset, resolved_at=None, snoozed_until__gt=now).order_by("pk")
    return [(incident, str(snooze.snooze_of(incident, now=now))) for incident in rows]
