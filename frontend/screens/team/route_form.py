"""A route of a team as a form: what was typed, as the use case takes it, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from typing import Any

from django.http import QueryDict

from frontend.ui.whole_numbers import parse_whole_number
from incidents.models import Route
from lakehub.kernel.errors import Refused

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
TEXT_FIELDS = ("channel", "address", "least", "zone", "quiet_from", "quiet_to", "digest", "digest_at")
LIST_FIELDS = ("tiers", "categories", "quiet_days")


@dataclass(frozen=True)
class RouteForm:
    texts: Mapping[str, str]
    chosen: Mapping[str, Sequence[str]]
    enabled: bool = True
    number: int | None = None
    """None: a new one."""
    errors: Mapping[str, str] = field(default_factory=dict)


def empty_form(zone: str) -> RouteForm:
    texts = {"channel": "email", "least": "low", "zone": zone, "digest": "none", "digest_at": "08:00"}
    return RouteForm({name: texts.get(name, "") for name in TEXT_FIELDS}, dict.fromkeys(LIST_FIELDS, ()))


def form_of_route(route: Route) -> RouteForm:
    """A secret is not shown again: left empty, it stays."""
    texts = {name: _field_text(getattr(route, name)) for name in TEXT_FIELDS}
    if route.shown_address != route.address:
        texts["address"] = ""
    chosen = {name: [str(value) for value in getattr(route, name)] for name in LIST_FIELDS}
    return RouteForm(texts, chosen, route.enabled, route.pk)


def form_from_post(posted: QueryDict, number: int | None) -> RouteForm:
    texts = {name: posted.get(name, "").strip() for name in TEXT_FIELDS}
    return RouteForm(texts, {name: posted.getlist(name) for name in LIST_FIELDS}, "enabled" in posted, number)


def route_arguments(form: RouteForm) -> dict[str, Any]:
    """What the use case is given. Raises Refused with every field that cannot be read."""
    problems: dict[str, str] = {}
    arguments: dict[str, Any] = {name: form.texts[name] for name in ("channel", "address", "least", "zone", "digest")}
    if form.number is not None and not form.texts["address"]:
        del arguments["address"]
    arguments["enabled"] = form.enabled
    arguments["categories"] = list(form.chosen["categories"])
    for name in ("tiers", "quiet_days"):
        arguments[name] = [_number_or_text(text) for text in form.chosen[name]]
    for name, reading in (
        ("quiet_from", _parse_time),
        ("quiet_to", _parse_time),
        ("digest_at", _parse_time_or_default),
    ):
        _parse_field(problems, arguments, name, reading, form.texts[name])
    if problems:
        raise Refused.for_fields(problems)
    return arguments


def _parse_field(
    problems: dict[str, str], arguments: dict[str, Any], name: str, reading: Callable[[str], time | None], text: str
) -> None:
    try:
        arguments[name] = reading(text)
    except ValueError:
        problems[name] = f"`{text}` is no time of day: write 22:00."


def _parse_time(text: str) -> time | None:
    return time.fromisoformat(text) if text else None


def _parse_time_or_default(text: str) -> time:
    return _parse_time(text) or time(8)


def _number_or_text(text: str) -> int | str:
    """What is no number stays as it is, for the use case to name."""
    number = parse_whole_number(text)
    return text if number is None else number


def _field_text(value: object) -> str:
    if isinstance(value, time):
        return f"{value:%H:%M}"
    return "" if value is None else str(value)
