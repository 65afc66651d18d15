"""Which part of the platform a number is about: a team's datasets, a tier, one dataset, one category, one test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q

from lakehub.accounts.models import Team
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.instants import instant, wanted_range
from lakehub.catalog.models import TIERS
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category, Test

DAYS = 90
"""Of a window that nobody chose."""
MOST_DAYS = 3660


@dataclass(frozen=True)
class Scope:
    """Empty: everything that is live. A test is named by its key, within its dataset."""

    dataset: str = ""
    team: str = ""
    tier: int | None = None
    category: str = ""
    test: str = ""

    def of_datasets(self, path: str = "") -> Q:
        """Over rows that reach their dataset by `path`, as in `incident__dataset__`: those of live ones within."""
        wanted: dict[str, Any] = {f"{path}offboarded_at": None}
        if self.dataset:
            wanted[f"{path}name"] = self.dataset
        if self.team:
            wanted[f"{path}team__name"] = self.team
        if self.tier is not None:
            wanted[f"{path}tier"] = self.tier
        return Q(**wanted)

    def narrowed(self, **to: Any) -> Scope:
        return replace(self, **to)

    @property
    def words(self) -> dict[str, str]:
        """As an address carries it."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: str(value) for name, value in said.items() if value not in ("", None)}


ALL = Scope()


def wanted_scope(asked: Mapping[str, str]) -> Scope:
    """From the parameters of an address. Raises Refused for each that names nothing, with the nearest name."""
    problems: dict[str, str] = {}
    teams: Iterable[str] = Team.objects.values_list("name", flat=True)
    for name, known in (("team", teams), ("category", Category.values), ("tier", [str(tier) for tier in TIERS])):
        value = asked.get(name, "")
        if value and value not in known:
            problems[name] = f"There is no {name} `{value}`.{did_you_mean(value, known)}"
    dataset, test = asked.get("dataset", ""), asked.get("test", "")
    try:
        found = live_dataset(dataset) if dataset else None
    except NotFound as error:
        problems["dataset"] = str(error)
    else:
        if test:
            keys = list(Test.objects.filter(dataset=found).values_list("key", flat=True)) if found else []
            if test not in keys:
                problems["test"] = (
                    f"`{dataset}` has no test `{test}`.{did_you_mean(test, keys)}"
                    if found
                    else f"`{test}` is the key of a test within a dataset: name that too, with `dataset`."
                )
    if problems:
        raise Refused.because(problems)
    tier = asked.get("tier", "")
    return Scope(dataset, asked.get("team", ""), int(tier) if tier else None, asked.get("category", ""), test)


def wanted_window(asked: Mapping[str, str], *, now: datetime) -> Interval:
    """`from` and `to`, dates of UTC or instants; `to` is now unless said; without `from`, so many `days` before it.

    Raises Refused for what is none, and where the window ends in the future: nobody knows yet.
    """
    end, start = asked.get("to", "") or now.isoformat(), asked.get("from", "")
    window = wanted_range(start or _before(end, asked.get("days", "")), end, None)
    if window.end > now:
        raise Refused.because({"to": f"The window ends at {window.end:%Y-%m-%d %H:%M} UTC, which has not come yet."})
    return window


def _before(end: str, said: str) -> str:
    days = int(said) if said.isascii() and said.isdecimal() and len(said) <= len(str(MOST_DAYS)) else 0
    if said and not 0 < days <= MOST_DAYS:
        raise Refused.because({"days": f"`{said}` is no number of days from 1 to {MOST_DAYS:,}."})
    try:
        return (instant(end, name="to", zone=ZoneInfo("UTC")) - timedelta(days=days or DAYS)).isoformat()
    except OverflowError:
        raise Refused.because({"to": f"Nothing is known of the time before {end}."}) from None
