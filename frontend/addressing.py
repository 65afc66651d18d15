"""A route of a team as a form: what was typed, as the use case takes it, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from typing import Any

from django.http import QueryDict

from frontend.numbers import whole
from incidents.models import Route
from lakehub.kernel.errors import Refused

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
TEXTS = ("channel", "address", "least", "zone", "quiet_from", "quiet_to", "digest", "digest_at")
LISTS = ("tiers", "categories", "quiet_days")


@dataclass(frozen=True)
class RouteForm:
    texts: Mapping[str, str]
    chosen: Mapping[str, Sequence[str]]
    enabled: bool = True
    number: int | None = None
    """None: a new one."""
    errors: Mapping[str, str] = field(default_factory=dict)


def empty(zone: str) -> RouteForm:
    texts = {"channel": "email", "least": "low", "zone": zone, "digest": "none", "digest_at": "08:00"}
    return RouteForm({name: texts.get(name, "") for name in TEXTS}, dict.fromkeys(LISTS, ()))


def of_route(route: Route) -> RouteForm:
    """A secret is not shown again: left empty, it stays."""
    texts = {name: _shown(getattr(route, name)) for name in TEXTS}
    if route.shown_address != route.address:
        texts["address"] = ""
    chosen = {name: [str(value) for value in getattr(route, name)] for name in LISTS}
    return RouteForm(texts, chosen, route.enabled, route.pk)


def typed(said: QueryDict, number: int | None) -> RouteForm:
    texts = {name: said.get(name, "").strip() for name in TEXTS}
    return RouteForm(texts, {name: said.getlist(name) for name in LISTS}, "enabled" in said, number)


def asked(form: RouteForm) -> dict[str, Any]:
    """What the use case is given. Raises Refused with every field that cannot be read."""
    problems: dict[str, str] = {}
    wanted: dict[str, Any] = {name: form.texts[name] for name in ("channel", "address", "least", "zone", "digest")}
    if form.number is not None and not form.texts["address"]:
        del wanted["address"]
    wanted["enabled"] = form.enabled
    wanted["categories"] = list(form.chosen["categories"])
    for name in ("tiers", "quiet_days"):
        wanted[name] = [_number(text) for text in form.chosen[name]]
    for name, reading in (("quiet_from", _time), ("quiet_to", _time), ("digest_at", _time_or_morning)):
        _read(problems, wanted, name, reading, form.texts[name])
    if problems:
        raise Refused.because(problems)
    return wanted


def _read(
    problems: dict[str, str], wanted: dict[str, Any], name: str, reading: Callable[[str], time | None], text: str
) -> None:
    try:
        wanted[name] = reading(text)
    except ValueError:
        problems[name] = f"`{text}` is no time of day: write 22:00."


def _time(text: str) -> time | None:
    return time.fromisoformat(text) if text else None


def _time_or_morning(text: str) -> time:
    return _time(text) or time(8)


def _number(text: str) -> int | str:
    """What is no number stays as it is, for the use case to name."""
    number = whole(text)
    return text if number is None else number


def _shown(value: object) -> str:
    if isinstance(value, time):
        return f"{value:%H:%M}"
    return "" if value is None else str(value)
