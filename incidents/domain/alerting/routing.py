"""How loud an alert is, and which addresses of a team take it: a template by urgency and category, and what a person set instead.

`urgency` is what a tier promises (page, message, mail; quality.domain.slas), which a dataset may override.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lakehub.kernel.suggest import did_you_mean


class Severity(StrEnum):
    """Loudest first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """Grows with how loud it is."""
        return len(Severity) - list(Severity).index(self)

    def at_least(self, other: Severity) -> bool:
        return self.rank >= other.rank

    @property
    def quieter(self) -> Severity:
        return {Severity.CRITICAL: Severity.HIGH, Severity.HIGH: Severity.MEDIUM}.get(self, Severity.LOW)


SEVERITY_BY_URGENCY = {"page": Severity.HIGH, "message": Severity.MEDIUM, "mail": Severity.LOW}
HIGHEST_TIER = 0
"""Where it pages, it is critical."""
QUIETER_CATEGORIES = ("ingestion", "others")
"""One step quieter than the tier asks: what they break, the other categories see."""

OVERRIDABLE_FIELDS = ("severity", "muted", "why")


@dataclass(frozen=True)
class AlertTemplate:
    severity: Severity
    because: str


def alert_template(tier: int, urgency: str, category: str) -> AlertTemplate:
    """What is made for a category of a dataset of this tier."""
    severity = Severity.CRITICAL if urgency == "page" and tier == HIGHEST_TIER else SEVERITY_BY_URGENCY[urgency]
    because = f"tier {tier}, urgency {urgency}"
    if category not in QUIETER_CATEGORIES:
        return AlertTemplate(severity, because)
    return AlertTemplate(severity.quieter, f"{because}; {category} is one step quieter")


@dataclass(frozen=True)
class AlertSetting:
    """What counts: the template, or what a person set in its place."""

    severity: Severity
    muted: bool = False
    why: str = ""


def effective_setting(template_severity: Severity, override: Mapping[str, Any]) -> AlertSetting:
    """`override` is one that `override_problems` finds nothing wrong with."""
    return AlertSetting(
        Severity(override.get("severity") or template_severity),
        bool(override.get("muted", False)),
        str(override.get("why", "")),
    )


def override_problems(override: Mapping[str, Any]) -> dict[str, str]:
    """By field, why an override cannot be used."""
    problems = {
        name: f"An alert has no `{name}` to override.{did_you_mean(name, OVERRIDABLE_FIELDS)}"
        for name in override
        if name not in OVERRIDABLE_FIELDS
    }
    severity = override.get("severity")
    if severity is not None and severity not in list(Severity):
        problems["severity"] = f"There is no severity `{severity}`.{did_you_mean(str(severity), Severity)}"
    muted = override.get("muted", False)
    if not isinstance(muted, bool):
        problems["muted"] = f"`{muted}` is neither true nor false."
    why = override.get("why", "")
    if not isinstance(why, str):
        problems["why"] = f"`{why}` is no text."
    elif muted is True and not why.strip():
        problems["why"] = "Say why nobody is to be told: whoever misses a message will ask."
    return problems


@dataclass(frozen=True)
class Recipient:
    """One address on one channel. `reason`: what made it one, such as `route of team flight-ops` or `subscribed: ana`."""

    channel: str
    address: str
    reason: str
    route: int | None = None
    """The route that decides when: it may have quiet hours or gather messages in a digest."""
    may_delay: bool = False
    """It may: an address that is told at once anyway is not told again later."""


@dataclass(frozen=True)
class AlertLabels:
    """What a route decides by."""

    tier: int
    category: str
    severity: Severity

    def __str__(self) -> str:
        return f"tier {self.tier}, {self.category}, {self.severity}"


@dataclass(frozen=True)
class RouteMatcher:
    """What a route lets through. Empty tiers or categories: all of them."""

    tiers: frozenset[int] = frozenset()
    categories: frozenset[str] = frozenset()
    min_severity: Severity = Severity.LOW

    def matches(self, matter: AlertLabels) -> bool:
        return (
            (not self.tiers or matter.tier in self.tiers)
            and (not self.categories or matter.category in self.categories)
            and matter.severity.at_least(self.min_severity)
        )


def unique_recipients(recipients: Iterable[Recipient]) -> list[Recipient]:
    """One for each address on a channel: the first that does not wait, else the first."""
    chosen: dict[tuple[str, str], Recipient] = {}
    for recipient in recipients:
        previous = chosen.get((recipient.channel, recipient.address))
        if previous is None or (previous.may_delay and not recipient.may_delay):
            chosen[recipient.channel, recipient.address] = recipient
    return list(chosen.values())
