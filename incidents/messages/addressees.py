"""Where a team hears of a matter: its routes, or its own e-mail address and webhook where it has none."""

from __future__ import annotations

from collections.abc import Sequence

from incidents.domain.routing import Matter, Recipient
from incidents.models import Route
from lakehub.accounts.models import Team

LOG = "log"
"""Where messages of teams go that named no address: it reaches nobody."""


def of_team(team: Team, matter: Matter, *, why: str = "", routes: Sequence[Route] | None = None) -> list[Recipient]:
    """Who in the team is told; nobody where its routes don't take it. `why` goes before what made them recipients.

    `routes` are all of the team's, where the caller has read them.
    """
    known = list(Route.objects.filter(team=team)) if routes is None else routes
    before = f"{why}: " if why else ""
    if not known:
        return _of_address(team, before)
    return [
        Recipient(route.channel, route.address, f"{before}route of team {team.name}", route.pk, route.waits)
        for route in known
        if route.enabled and route.filter.takes(matter)
    ]


def _of_address(team: Team, before: str) -> list[Recipient]:
    addresses = [("email", team.email), ("webhook", team.webhook_url)]
    why = f"{before}team {team.name}"
    known = [Recipient(channel, address, why) for channel, address in addresses if address]
    return known or [Recipient(LOG, team.name, f"{why}, which named no address")]
