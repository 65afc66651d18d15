"""What was asked of the scores in an address: the window, what they are narrowed to, and by what they are grouped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from frontend.components.score_windows import WINDOW_CHOICES
from incidents.scores.cached_overview import rounded_now
from incidents.scores.scope import ALL_DATASETS, DEFAULT_DAYS, Scope, parse_scope, parse_window
from incidents.scores.scoring import GROUPINGS
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval

PAGE_SIZE = 50
MAX_DAYS = 366


GROUPING_LABELS = {"team": "Team", "tier": "Tier", "category": "Category", "dataset": "Dataset", "test": "Test"}


@dataclass(frozen=True)
class ScoreFilters:
    window: Interval
    scope: Scope
    by: str
    days: int | None
    """None: the window was given by its ends."""
    parameters: Mapping[str, str]
    problems: dict[str, str] = field(default_factory=dict)
    """What could not be understood, and is as it is where nobody says anything."""

    def address(self, **changes: Any) -> str:
        """This page with something else; an empty text leaves a parameter out."""
        parameters = {**self.parameters, **{name: str(value) for name, value in changes.items()}}
        return f"?{urlencode({name: value for name, value in parameters.items() if value})}"

    @property
    def window_links(self) -> list[tuple[str, str, bool]]:
        links = []
        for days, name in WINDOW_CHOICES:
            links.append((name, self.address(days=days, **{"from": "", "to": ""}), days == self.days))
        return links

    @property
    def groupings(self) -> list[tuple[str, str, bool]]:
        return [(name, self.address(by=by), by == self.by) for by, name in GROUPING_LABELS.items()]

    @property
    def narrowed(self) -> list[tuple[str, str, str]]:
        """(what, which, the address without it)"""
        return [(name, value, self.address(**{name: ""})) for name, value in self.scope.query_params.items()]

    @property
    def csv(self) -> str:
        return self.address(by=self.by)


def _require_bounded(window: Interval) -> Interval:
    if window.length > timedelta(days=MAX_DAYS):
        days = f"{window.length / timedelta(days=1):,.0f} days"
        raise Refused.for_fields(
            {"from": f"A window of {days} is longer than this page shows: {MAX_DAYS} days at most."}
        )
    return window


def parse_score_filters(parameters: Mapping[str, str], *, now: datetime) -> ScoreFilters:
    """What cannot be understood is told, and the page shows what it shows to everybody."""
    problems: dict[str, str] = {}
    lately = {"to": rounded_now(now).isoformat()}
    scope, window = ALL_DATASETS, parse_window(lately, now=now)
    try:
        scope = parse_scope(parameters)
    except Refused as error:
        problems |= error.fields
    try:
        window = _require_bounded(
            parse_window(lately | {name: value for name, value in parameters.items() if value}, now=now)
        )
    except Refused as error:
        problems |= error.fields
    by = parameters.get("by", "") if parameters.get("by") in GROUPINGS else "team"
    plain = not parameters.get("from") and not parameters.get("to") and not problems.keys() & {"from", "to", "days"}
    days = int(parameters.get("days") or DEFAULT_DAYS) if plain else None
    parameter_names = ("days", "from", "to", "by", "dataset", "team", "tier", "category")
    valid_parameters = {
        name: parameters[name] for name in parameter_names if parameters.get(name) and name not in problems
    }
    return ScoreFilters(window, scope.narrowed(test=""), by, days, valid_parameters, problems)
