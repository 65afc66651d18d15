"""The routes of a team: set, changed, taken away. What cannot work is refused by field, before anything is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction

from incidents.channels import CHANNELS
from incidents.domain.alerting.quiet_hours import ALL_DAYS, DigestInterval, QuietHours
from incidents.domain.alerting.routing import Severity
from incidents.models import Route
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.models import TIERS
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category

ROUTE_FIELDS = (
    *("channel", "address", "enabled", "tiers", "categories", "least"),
    *("zone", "quiet_from", "quiet_to", "quiet_days", "digest", "digest_at"),
)
MAX_ROUTES = 50
"""Of one team."""


def set_route(team: Team, changes: Mapping[str, Any], *, actor: str, now: datetime, number: int | None = None) -> Route:
    """A new route, or the changes of one. Raises Refused with what is wrong, by field, and NotFound."""
    if unknown := [name for name in changes if name not in ROUTE_FIELDS]:
        raise Refused.for_fields(
            {name: f"A route has no `{name}`.{did_you_mean(name, ROUTE_FIELDS)}" for name in unknown}
        )
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",)).get(pk=team.pk)
        route = route_of(team, number) if number is not None else Route(team=team)
        if changes.get("channel", route.channel) != route.channel and "address" not in changes:
            raise Refused.for_fields({"address": "Another channel has other addresses: say where to."})
        for name, value in changes.items():
            setattr(route, name, value)
        if problems := _route_problems(route):
            raise Refused.for_fields(problems)
        _check_limit(team, route)
        route.save()
        words = {"number": route.pk, "channel": route.channel, "address": route.shown_address}
        audit_log.record(actor, "set route", f"team:{team.name}", now=now, **words, enabled=route.enabled)
    return route


def remove_route(team: Team, number: int, *, actor: str, now: datetime) -> None:
    """What it collected for a digest goes out at once; what it held too. Raises NotFound."""
    with transaction.atomic():
        route = route_of(team, number)
        words = {"number": number, "channel": route.channel, "address": route.shown_address}
        route.delete()
        audit_log.record(actor, "remove route", f"team:{team.name}", now=now, **words)


def route_of(team: Team, number: int) -> Route:
    """Raises NotFound."""
    route = Route.objects.select_related("team").filter(team=team, pk=number).first()
    if route is None:
        raise NotFound(f"Team {team.name} has no route {number}: see the list of its routes.")
    return route


def team_named(name: str) -> Team:
    """Raises NotFound with the nearest name."""
    team = Team.objects.filter(name=name).first()
    if team is None:
        team_names = Team.objects.values_list("name", flat=True)
        raise NotFound(f"There is no team `{name}`.{did_you_mean(name, team_names)}")
    return team


def _check_limit(team: Team, route: Route) -> None:
    others = Route.objects.filter(team=team).exclude(pk=route.pk)
    if others.count() >= MAX_ROUTES:
        raise Refused.for_fields(
            {"address": f"Team {team.name} has {MAX_ROUTES} routes: change or remove one of them."}
        )


def _route_problems(route: Route) -> dict[str, str]:
    words = {
        "channel": _unknown_choice(route.channel, list(CHANNELS), "channel"),
        "least": _unknown_choice(route.least, list(Severity), "severity"),
        "digest": _unknown_choice(route.digest, list(DigestInterval), "digest"),
        "tiers": _unknown_choices(route.tiers, list(TIERS), "tier"),
        "categories": _unknown_choices(route.categories, Category.values, "category"),
        "quiet_days": _unknown_choices(route.quiet_days, sorted(ALL_DAYS), "day; Monday is 0, and no"),
        "zone": "" if route.zone in available_timezones() else _unknown_zone(route.zone),
    }
    problems = {name: wrong for name, wrong in words.items() if wrong}
    return problems or _address_problems(route) | _quiet_hours_problems(route)


def _address_problems(route: Route) -> dict[str, str]:
    if not route.address.strip():
        return {"address": "Say where to: an address of the channel."}
    try:
        CHANNELS.get(route.channel)().check(route.address)
    except Refused as refused:
        return {"address": str(refused)}
    if route.digest != DigestInterval.NONE and not CHANNELS.get(route.channel).takes_digests:
        return {"digest": f"{route.channel} takes incidents one by one: a digest would open none."}
    return {}


def _quiet_hours_problems(route: Route) -> dict[str, str]:
    if (route.quiet_from is None) != (route.quiet_to is None):
        name = "quiet_to" if route.quiet_to is None else "quiet_from"
        return {name: "Quiet hours have a beginning and an end: give both, or neither."}
    if route.quiet_from is None or route.quiet_to is None:
        return {}
    days = frozenset(route.quiet_days) or ALL_DAYS
    if QuietHours(route.quiet_from, route.quiet_to, ZoneInfo(route.zone), days).is_always:
        return {"quiet_to": "These quiet hours never end: turn the route off, or give another end."}
    return {}


def _unknown_choice(word: str, choices: list[str], label: str) -> str:
    return "" if word in choices else f"There is no {label} `{word}`.{did_you_mean(str(word), choices)}"


def _unknown_choices(values: object, choices: list[Any], label: str) -> str:
    if not isinstance(values, list):
        return f"`{values}` is no list."
    for value in values:
        if value not in choices or isinstance(value, bool):
            return f"There is no {label} `{value}`.{did_you_mean(str(value), map(str, choices))}"
    return ""


def _unknown_zone(zone: str) -> str:
    return f"There is no time zone `{zone}`.{did_you_mean(zone, available_timezones())}"
