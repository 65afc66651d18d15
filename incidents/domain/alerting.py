"""How loud an alert is: a template by urgency and category, and what a person set in its place.

`urgency` is what a tier promises (page, message, mail; quality.domain.tiers), which a dataset may override.
"""

from __future__ import annotations

from collections.abc import Mapping
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


TEMPLATES = {"page": Severity.HIGH, "message": Severity.MEDIUM, "mail": Severity.LOW}
HIGHEST_TIER = 0
"""Where it pages, it is critical."""
QUIETER = ("ingestion", "others")
"""One step quieter than the tier asks: what they break, the other categories see."""

OVERRIDABLE = ("severity", "muted", "why")


@dataclass(frozen=True)
class Template:
    severity: Severity
    because: str


def template(tier: int, urgency: str, category: str) -> Template:
    """What is made for a category of a dataset of this tier."""
    severity = Severity.CRITICAL if urgency == "page" and tier == HIGHEST_TIER else TEMPLATES[urgency]
    because = f"tier {tier}, urgency {urgency}"
    if category not in QUIETER:
        return Template(severity, because)
    return Template(severity.quieter, f"{because}; {category} is one step quieter")


@dataclass(frozen=True)
class Tone:
    """What counts: the template, or what a person set in its place."""

    severity: Severity
    muted: bool = False
    why: str = ""


def tone(made: Severity, override: Mapping[str, Any]) -> Tone:
    """`override` is one that `problems` finds nothing wrong with."""
    return Tone(
        Severity(override.get("severity") or made), bool(override.get("muted", False)), str(override.get("why", ""))
    )


def problems(override: Mapping[str, Any]) -> dict[str, str]:
    """By field, why an override cannot be used."""
    found = {
        name: f"An alert has no `{name}` to override.{did_you_mean(name, OVERRIDABLE)}"
        for name in override
        if name not in OVERRIDABLE
    }
    severity = override.get("severity")
    if severity is not None and severity not in list(Severity):
        found["severity"] = f"There is no severity `{severity}`.{did_you_mean(str(severity), Severity)}"
    muted = override.get("muted", False)
    if not isinstance(muted, bool):
        found["muted"] = f"`{muted}` is neither true nor false."
    why = override.get("why", "")
    if not isinstance(why, str):
        found["why"] = f"`{why}` is no text."
    elif muted is True and not why.strip():
        found["why"] = "Say why nobody is to be told: whoever misses a message will ask."
    return found
