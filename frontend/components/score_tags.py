"""Tags of the scores: shares, changes in points, and the list of incidents behind a number."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template.context import Context
from django.urls import reverse

from frontend.ui import words
from incidents.models import FalsePositive
from incidents.scores.scoring import Score
from incidents.scores.trend import Trend
from lakehub.kernel.interval import Interval
from quality.models import Category

register = template.Library()


@register.filter
def percent_to(share: float | None, decimals: int) -> str:
    """`94.6%`; a dash where there is nothing to share."""
    return "–" if share is None else words.percent(share, decimals)


@register.filter
def change_of(trend: Trend, reading: str) -> str:
    """`+1.2 points`; nothing where one of the two windows has nothing to share."""
    change = trend.change(reading)
    if change is None:
        return ""
    points = f"{change * 100:+.2f}".replace("-", "−")
    return f"{points.removesuffix('0').removesuffix('.0')} points" if change else "unchanged"


@register.filter
def line_of(trend: Trend, reading: str) -> tuple[float, ...]:
    return trend.line(reading)


@register.simple_tag(takes_context=True)
def drilldown_link(context: Context, number: str, score: Score | None = None, kind: str = "") -> str:
    """The address of the incidents behind `number` of a group, in the window and scope of the page."""
    within = dict(context["scope"].query_params)
    if score is not None:
        within |= narrowed_scope(score, context.get("by") or "")
    return drilldown_address(number, context["window"], {**within, **({"kind": kind} if kind else {})})


def narrowed_scope(score: Score, by: str) -> dict[str, str]:
    if score.test:
        return {"dataset": score.dataset, "test": score.test}
    return {by: score.name} if by and score.name else {}


def drilldown_address(number: str, window: Interval, within: dict[str, Any]) -> str:
    ends = {"from": _utc_text(window.start), "to": _utc_text(window.end)}
    return f"{reverse('incidents')}?{urlencode({'behind': number, **ends, **within})}"


def _utc_text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


@register.simple_tag
def category_word(value: str) -> str:
    """`Cross-dc consistency`."""
    return str(Category(value).label).capitalize()


@register.simple_tag
def kind_word(kind: str) -> str:
    """`wrong SLA`."""
    return str(FalsePositive(kind).label)
