"""Which part of the platform a number is about: a team's datasets, a tier, one dataset, one category, one test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q

from lakehub.accounts.models import Team
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import TIERS
from lakehub.catalog.request_times import parse_range
from lakehub.http.instants import parse_instant
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category, QualityTest

DEFAULT_DAYS = 90
"""Of a window that nobody chose."""
MAX_DAYS = 3660


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
        conditions: dict[str, Any] = {f"{path}offboarded_at": None}
        if self.dataset:
            conditions[f"{path}name"] = self.dataset
        if self.team:
            conditions[f"{path}team__name"] = self.team
        if self.tier is not None:
            conditions[f"{path}tier"] = self.tier
        return Q(**conditions)

    def narrowed(self, **to: Any) -> Scope:
        return replace(self, **to)

    @property
    def query_params(self) -> dict[str, str]:
        """As an address carries it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: str(value) for name, value in values.items() if value not in ("", None)}


ALL_DATASETS = Scope()


def parse_scope(params: Mapping[str, str]) -> Scope:
    """From the parameters of an address. Raises Refused for each that names nothing, with the nearest name."""
    problems: dict[str, str] = {}
    teams: Iterable[str] = Team.objects.values_list("name", flat=True)
    for name, choices in (("team", teams), ("category", Category.values), ("tier", [str(tier) for tier in TIERS])):
        value = params.get(name, "")
        if value and value not in choices:
            problems[name] = f"There is no {name} `{value}`.{did_you_mean(value, choices)}"
    dataset, test = params.get("dataset", ""), params.get("test", "")
    try:
        dataset_row = live_dataset(dataset) if dataset else None
    except NotFound as error:
        problems["dataset"] = str(error)
    else:
        if test:
            keys = (
                list(QualityTest.objects.filter(dataset=dataset_row).values_list("key", flat=True))
                if dataset_row
                else []
            )
            if test not in keys:
                problems["test"] = (
                    f"`{dataset}` has no test `{test}`.{did_you_mean(test, keys)}"
                    if dataset_row
                    else f"`{test}` is the key of a test within a dataset: name that too, with `dataset`."
                )
    if problems:
        raise Refused.for_fields(problems)
    tier = params.get("tier", "")
    return Scope(dataset, params.get("team", ""), int(tier) if tier else None, params.get("category", ""), test)


def parse_window(params: Mapping[str, str], *, now: datetime) -> Interval:
    """`from` and `to`, dates of UTC or instants; `to` is now unless said; without `from`, so many `days` before it.

    Raises Refused for what is none, and where the window ends in the future: nobody knows yet.
    """
    end, start = params.get("to", "") or now.isoformat(), params.get("from", "")
    window = parse_range(start or _start_before(end, params.get("days", "")), end, None)
    if window.end > now:
        raise Refused.for_fields({"to": f"The window ends at {window.end:%Y-%m-%d %H:%M} UTC, which has not come yet."})
    return window


def _start_before(end: str, days_text: str) -> str:
    days = (
        int(days_text) if days_text.isascii() and days_text.isdecimal() and len(days_text) <= len(str(MAX_DAYS)) else 0
    )
    if days_text and not 0 < days <= MAX_DAYS:
        raise Refused.for_fields({"days": f"`{days_text}` is no number of days from 1 to {MAX_DAYS:,}."})
    try:
        return (parse_instant(end, name="to", zone=ZoneInfo("UTC")) - timedelta(days=days or DEFAULT_DAYS)).isoformat()
    except OverflowError:
        raise Refused.for_fields({"to": f"Nothing is known of the time before {end}."}) from None
