"""When a message that may go out does: now, after the quiet hours of its route, or with the route's digest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from incidents.domain.quiet import Digest, digest_after
from incidents.models import Route


@dataclass(frozen=True)
class Now:
    pass


@dataclass(frozen=True)
class Quiet:
    """Keep it until `until`, and decide anew."""

    until: datetime
    why: str


@dataclass(frozen=True)
class Collect:
    """It goes with the digest of `at`."""

    at: datetime
    why: str


Timing = Now | Quiet | Collect


def timing_of(route: Route | None, *, now: datetime) -> Timing:
    if route is None:
        return Now()
    zone = ZoneInfo(route.zone)
    if route.digest != Digest.NONE:
        at = digest_after(now, Digest(route.digest), at=route.digest_at, zone=zone)
        return Collect(
            at, f"collected for the {route.digest} digest of {at.astimezone(zone):%Y-%m-%d %H:%M} {route.zone}"
        )
    over = route.quiet.over_at(now) if route.quiet else None
    if over is None:
        return Now()
    return Quiet(
        over, f"quiet hours of team {route.team.name} until {over.astimezone(zone):%Y-%m-%d %H:%M} {route.zone}"
    )
