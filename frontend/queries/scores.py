"""What was asked of the scores in an address: the window, what they are narrowed to, and by what they are grouped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from incidents.scores.overview import as_of
from incidents.scores.scope import ALL, DAYS, Scope, wanted_scope, wanted_window
from incidents.scores.scoring import GROUPINGS
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval

PAGE = 50
MOST_DAYS = 366
SPANS = ((7, "7 d"), (30, "30 d"), (90, "90 d"), (365, "1 y"))
BY = {"team": "Team", "tier": "Tier", "category": "Category", "dataset": "Dataset", "test": "Test"}


@dataclass(frozen=True)
class Asked:
    window: Interval
    scope: Scope
    by: str
    days: int | None
    """None: the window was given by its ends."""
    said: Mapping[str, str]
    problems: dict[str, str] = field(default_factory=dict)
    """What could not be understood, and is as it is where nobody says anything."""

    def address(self, **changes: Any) -> str:
        """This page with something else; an empty text leaves a parameter out."""
        kept = {**self.said, **{name: str(value) for name, value in changes.items()}}
        return f"?{urlencode({name: value for name, value in kept.items() if value})}"

    @property
    def spans(self) -> list[tuple[str, str, bool]]:
        found = []
        for days, name in SPANS:
            found.append((name, self.address(days=days, **{"from": "", "to": ""}), days == self.days))
        return found

    @property
    def groupings(self) -> list[tuple[str, str, bool]]:
        return [(name, self.address(by=by), by == self.by) for by, name in BY.items()]

    @property
    def narrowed(self) -> list[tuple[str, str, str]]:
        """(what, which, the address without it)"""
        return [(name, value, self.address(**{name: ""})) for name, value in self.scope.words.items()]

    @property
    def csv(self) -> str:
        return self.address(by=self.by)


def _bounded(window: Interval) -> Interval:
    if window.length > timedelta(days=MOST_DAYS):
        days = f"{window.length / timedelta(days=1):,.0f} days"
        raise Refused.because({"from": f"A window of {days} is longer than this page shows: {MOST_DAYS} days at most."})
    return window


def asked_of(said: Mapping[str, str], *, now: datetime) -> Asked:
    """What cannot be understood is told, and the page shows what it shows to everybody."""
    problems: dict[str, str] = {}
    lately = {"to": as_of(now).isoformat()}
    scope, window = ALL, wanted_window(lately, now=now)
    try:
        scope = wanted_scope(said)
    except Refused as error:
        problems |= error.fields
    try:
        window = _bounded(wanted_window(lately | {name: value for name, value in said.items() if value}, now=now))
    except Refused as error:
        problems |= error.fields
    by = said.get("by", "") if said.get("by") in GROUPINGS else "team"
    plain = not said.get("from") and not said.get("to") and not problems.keys() & {"from", "to", "days"}
    days = int(said.get("days") or DAYS) if plain else None
    known = ("days", "from", "to", "by", "dataset", "team", "tier", "category")
    kept = {name: said[name] for name in known if said.get(name) and name not in problems}
    return Asked(window, scope.narrowed(test=""), by, days, kept, problems)
