"""Who is told about an incident, over which channel, and why they and nobody else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from incidents.domain.alerting import Severity


@dataclass(frozen=True)
class Recipient:
    """One address on one channel. `why`: what made it one, such as `route of team flight-ops` or `subscribed: ana`."""

    channel: str
    address: str
    why: str
    route: int | None = None
    """The route that decides when: it may have quiet hours or gather messages in a digest."""
    waits: bool = False
    """It may: an address that is told at once anyway is not told again later."""


@dataclass(frozen=True)
class Matter:
    """What a route decides by."""

    tier: int
    category: str
    severity: Severity

    def __str__(self) -> str:
        return f"tier {self.tier}, {self.category}, {self.severity}"


@dataclass(frozen=True)
class Filter:
    """What a route lets through. Empty tiers or categories: all of them."""

    tiers: frozenset[int] = frozenset()
    categories: frozenset[str] = frozenset()
    least: Severity = Severity.LOW

    def takes(self, matter: Matter) -> bool:
        return (
            (not self.tiers or matter.tier in self.tiers)
            and (not self.categories or matter.category in self.categories)
            and matter.severity.at_least(self.least)
        )


def once_each(recipients: Iterable[Recipient]) -> list[Recipient]:
    """One for each address on a channel: the first that does not wait, else the first."""
    chosen: dict[tuple[str, str], Recipient] = {}
    for one in recipients:
        known = chosen.get((one.channel, one.address))
        if known is None or (known.waits and not one.waits):
            chosen[one.channel, one.address] = one
    return list(chosen.values())
