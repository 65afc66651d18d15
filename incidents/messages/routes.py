"""The routes of a team: set, changed, taken away. What cannot work is refused by field, before anything is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction

from incidents.channels import CHANNELS, channel
from incidents.domain.alerting import Severity
from incidents.domain.quiet import WEEK, Digest, QuietHours
from incidents.models import Route
from lakehub.accounts import audit
from lakehub.accounts.models import Team
from lakehub.catalog.models import TIERS
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category

FIELDS = (
    *("channel", "address", "enabled", "tiers", "categories", "least"),
    *("zone", "quiet_from", "quiet_to", "quiet_days", "digest", "digest_at"),
)
NO_DIGESTS = ("pagerduty",)
"""Channels on which a message opens or closes something: a list of several would do neither."""
MOST = 50
"""Of one team."""


def put(team: Team, said: Mapping[str, Any], *, actor: str, now: datetime, number: int | None = None) -> Route:
    """A new route, or the changes of one. Raises Refused with what is wrong, by field, and NotFound."""
    if unknown := [name for name in said if name not in FIELDS]:
        raise Refused.because({name: f"A route has no `{name}`.{did_you_mean(name, FIELDS)}" for name in unknown})
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",)).get(pk=team.pk)
        route = route_of(team, number) if number is not None else Route(team=team)
        if said.get("channel", route.channel) != route.channel and "address" not in said:
            raise Refused.because({"address": "Another channel has other addresses: say where to."})
        for name, value in said.items():
            setattr(route, name, value)
        if problems := _problems(route):
            raise Refused.because(problems)
        _check_room(team, route)
        route.save()
        words = {"number": route.pk, "channel": route.channel, "address": route.shown_address}
        audit.record(actor, "set route", f"team:{team.name}", now=now, **words, enabled=route.enabled)
    return route


def remove(team: Team, number: int, *, actor: str, now: datetime) -> None:
    """What it collected for a digest goes out at once; what it held too. Raises NotFound."""
    with transaction.atomic():
        route = route_of(team, number)
        words = {"number": number, "channel": route.channel, "address": route.shown_address}
        route.delete()
        audit.record(actor, "remove route", f"team:{team.name}", now=now, **words)


def route_of(team: Team, number: int) -> Route:
    """Raises NotFound."""
    found = Route.objects.select_related("team").filter(team=team, pk=number).first()
    if found is None:
        raise NotFound(f"Team {team.name} has no route {number}: see the list of its routes.")
    return found


def team_named(name: str) -> Team:
    """Raises NotFound with the nearest name."""
    found = Team.objects.filter(name=name).first()
    if found is None:
        known = Team.objects.values_list("name", flat=True)
        raise NotFound(f"There is no team `{name}`.{did_you_mean(name, known)}")
    return found


def _check_room(team: Team, route: Route) -> None:
    others = Route.objects.filter(team=team).exclude(pk=route.pk)
    if others.count() >= MOST:
        raise Refused.because({"address": f"Team {team.name} has {MOST} routes: change or remove one of them."})


def _problems(route: Route) -> dict[str, str]:
    words = {
        "channel": _wrong_word(route.channel, list(CHANNELS), "channel"),
        "least": _wrong_word(route.least, list(Severity), "severity"),
        "digest": _wrong_word(route.digest, list(Digest), "digest"),
        "tiers": _wrong_list(route.tiers, list(TIERS), "tier"),
        "categories": _wrong_list(route.categories, Category.values, "category"),
        "quiet_days": _wrong_list(route.quiet_days, sorted(WEEK), "day; Monday is 0, and no"),
        "zone": "" if route.zone in available_timezones() else _no_zone(route.zone),
    }
    found = {name: wrong for name, wrong in words.items() if wrong}
    return found or _problems_of_address(route) | _problems_of_time(route)


def _problems_of_address(route: Route) -> dict[str, str]:
    if not route.address.strip():
        return {"address": "Say where to: an address of the channel."}
    try:
        channel(route.channel).check(route.address)
    except Refused as refused:
        return {"address": str(refused)}
    if route.digest != Digest.NONE and route.channel in NO_DIGESTS:
        return {"digest": f"{route.channel} takes incidents one by one: a digest would open none."}
    return {}


def _problems_of_time(route: Route) -> dict[str, str]:
    if (route.quiet_from is None) != (route.quiet_to is None):
        name = "quiet_to" if route.quiet_to is None else "quiet_from"
        return {name: "Quiet hours have a beginning and an end: give both, or neither."}
    if route.quiet_from is None or route.quiet_to is None:
        return {}
    days = frozenset(route.quiet_days) or WEEK
    if QuietHours(route.quiet_from, route.quiet_to, ZoneInfo(route.zone), days).is_always:
        return {"quiet_to": "These quiet hours never end: turn the route off, or give another end."}
    return {}


def _wrong_word(word: str, known: list[str], what: str) -> str:
    return "" if word in known else f"There is no {what} `{word}`.{did_you_mean(str(word), known)}"


def _wrong_list(values: object, known: list[Any], what: str) -> str:
    if not isinstance(values, list):
        return f"`{values}` is no list."
    for value in values:
        if value not in known or isinstance(value, bool):
            return f"There is no {what} `{value}`.{did_you_mean(str(value), map(str, known))}"
    return ""


def _no_zone(zone: str) -> str:
    return f"There is no time zone `{zone}`.{did_you_mean(zone, available_timezones())}"
