"""Tags and filters of the pages: states, icons, times, numbers, sparks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from fractions import Fraction
from typing import Any

from django import template
from django.template.context import Context
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from frontend.ui import svg, words
from frontend.ui.states import STATES
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval

register = template.Library()


@register.simple_tag
def icon(name: str, small: bool = False) -> SafeString:
    return format_html(
        '<svg class="icon{}" aria-hidden="true"><use href="#i-{}"/></svg>',
        mark_safe(" icon--sm") if small else "",
        name,
    )


@register.simple_tag
def status(name: str, word: str = "", chip: bool = False, large: bool = False) -> SafeString:
    """A state by shape, word and colour. `word` says more than the state's own ("Fail, acknowledged")."""
    state = STATES[name]
    extra = (" status--chip" if chip or large else "") + (" status--lg" if large else "")
    return format_html(
        '<span class="status{}" data-state="{}">{}{}</span>', extra, state.name, icon(state.icon), word or state.word
    )


@register.simple_tag(takes_context=True)
def when(context: Context, instant: datetime | None, ago: bool = False, missing: str = "–") -> SafeString | str:
    """`<time>` in the viewer's zone, UTC on hover; `ago` adds how long that is from now."""
    if instant is None:
        return missing
    now: datetime = context["now"]
    shown = words.clock(instant, zone=timezone.get_current_timezone(), now=now)
    tag = format_html('<time datetime="{}" title="{}">{}</time>', instant.isoformat(), words.utc(instant), shown)
    if not ago:
        return tag
    return format_html('{} <span class="meta nowrap">{}</span>', tag, words.relative(instant, now=now))


@register.simple_tag(takes_context=True)
def ago(context: Context, instant: datetime | None) -> str:
    """`1 h 52 min`: how long since, or until. Only beside the absolute time."""
    return "" if instant is None else words.duration(context["now"] - instant)


@register.filter
def ticks(text: str) -> SafeString:
    """A message with names in `ticks`, those as code."""
    pieces = str(text).split("`")
    coded = (
        (format_html("<code>{}</code>", piece) if at % 2 else format_html("{}", piece))
        for at, piece in enumerate(pieces)
    )
    return mark_safe("".join(coded))  # noqa: S308  each piece is escaped above


@register.simple_tag
def local_day(instant: datetime, zone: tzinfo) -> str:
    """`2026-11-16`, the day of a data range in the dataset's zone, for addresses."""
    return f"{instant.astimezone(zone):%Y-%m-%d}"


@register.simple_tag
def took(start: datetime, end: datetime) -> str:
    return words.duration(end - start)


@register.filter
def duration(span: timedelta | None) -> str:
    return "–" if span is None else words.duration(span)


@register.filter
def share(part: Fraction) -> str:
    """`99.9%`, with as many digits as it has."""
    return f"{float(part * 100):g}%"


@register.filter
def percent(part: float) -> str:
    """`98.9%`; what is not whole never reads as 100%."""
    return words.percent(part, 0)


@register.filter
def number(value: float | None) -> str:
    return "–" if value is None else words.number(value)


@register.filter
def size(amount: float) -> str:
    """`1.2 MB`"""
    return words.size(amount)


@register.filter
def audit_value(value: object) -> str:
    return words.audit_value(value)


@register.filter
def counted(value: int, noun: str) -> str:
    """`{{ 2|counted:"incident" }}` -> 2 incidents; irregular as "copy,copies"."""
    singular, _, plural = noun.partition(",")
    return words.count(value, singular, plural)


@register.simple_tag
def data_range(start: datetime, end: datetime, dataset: Dataset) -> str:
    """`[16 Nov, 17 Nov)`, in the dataset's own days."""
    return words.data_range(Interval(start, end), dataset.partition_grain, dataset.zone)


@register.filter
def add_px(value: float, more: int) -> float:
    return round(value + more, 1)


@register.filter
def counted_state(value: int, state: str) -> str:
    """`2 unknown`."""
    return f"{value:,} {STATES[state].word.lower()}"


@register.inclusion_tag("ui/templates/spark.html")
def spark(values: Sequence[float], state: str = "pass", width: int = 72) -> dict[str, Any]:
    return {"spark": svg.spark(values, width), "state": state, "bad": state in ("fail", "warn", "unknown")}


@register.inclusion_tag("ui/templates/bar.html")
def bar(share: float, state: str = "") -> dict[str, Any]:
    """`share` of 1, drawn full where it is more."""
    return {"width": f"{max(0.0, min(1.0, share)) * 100:.1f}", "state": state}


@register.inclusion_tag("ui/templates/segments.html")
def segments(states: Sequence[str]) -> dict[str, Any]:
    return {"segments": svg.segments(states)}


@register.filter
def title_of_check(name: str) -> str:
    """`Row count cross dc` for row_count_cross_dc."""
    return name.replace("_", " ").capitalize()


@register.simple_tag
def initials(name: str) -> str:
    parts = [part for part in name.replace(".", " ").replace("-", " ").replace("_", " ").split() if part]
    return "".join(part[0] for part in parts[:2]).upper() or "?"


@register.simple_tag(takes_context=True)
def page_link(context: Context, number: int) -> str:
    """This list's address with its filters, at another page."""
    params = context["request"].GET.copy()
    params["page"] = str(number)
    return f"?{params.urlencode()}"
