"""The list of datasets: filters with their counts, worst first, and what a page of rows needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum
from django.db.models.functions import TruncDate

from frontend.queries.behind import Behind, by_dataset
from frontend.queries.reasons import reason_line, units_behind
from frontend.states import STATES
from incidents.rollup import Health, health_of
from ingestion.models import Commit
from lakehub.catalog.models import Dataset

PAGE = 50
_SPARK_DAYS = 28


@dataclass(frozen=True)
class Filters:
    """What was asked for in the address; empty: everything."""

    q: str = ""
    states: frozenset[str] = frozenset()
    tiers: frozenset[int] = frozenset()
    teams: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    data_centers: frozenset[str] = frozenset()
    mine: bool = False
    no_key: bool = False

    @property
    def any(self) -> bool:
        return self != Filters()


@dataclass(frozen=True)
class Row:
    health: Health
    why: str = ""
    behind: Behind | None = None
    written: tuple[int, ...] = ()
    """Rows written by day, oldest first."""

    @property
    def dataset(self) -> Dataset:
        return self.health.dataset


@dataclass(frozen=True)
class Facet:
    title: str
    name: str
    choices: tuple[tuple[str, str, int, bool], ...]
    """(value, word, how many, chosen)"""


@dataclass(frozen=True)
class Listing:
    matches: list[Health]
    """Worst first, all pages."""
    all: list[Health]
    facets: list[Facet]

    def in_state(self, *names: str) -> int:
        return sum(health.state in names for health in self.all)


def listing(filters: Filters, my_teams: frozenset[int], *, now: datetime) -> Listing:
    """Everything that is onboarded, its states, and what of it matches. Five queries."""
    datasets = (
        Dataset.objects.filter(offboarded_at=None)
        .select_related("team", "feed__connection")
        .prefetch_related("copies__data_center")
    )
    everything = sorted(health_of(datasets, now=now).values(), key=_worst_first)
    matches = [health for health in everything if _matches(health, filters, my_teams)]
    return Listing(matches, everything, _facets(everything, filters))


def _worst_first(health: Health) -> tuple[int, int, str]:
    return -STATES[health.state].weight, health.dataset.tier, health.dataset.name


def _matches(health: Health, wanted: Filters, my_teams: frozenset[int]) -> bool:
    dataset = health.dataset
    return (
        (not wanted.q or wanted.q.lower() in f"{dataset.name} {dataset.description}".lower())
        and (not wanted.states or health.state in wanted.states)
        and (not wanted.tiers or dataset.tier in wanted.tiers)
        and (not wanted.teams or dataset.team.name in wanted.teams)
        and (not wanted.sources or source_of(dataset) in wanted.sources)
        and (
            not wanted.data_centers
            or any(copy.data_center.name in wanted.data_centers for copy in dataset.copies.all())
        )
        and (not wanted.mine or dataset.team_id in my_teams)
        and (not wanted.no_key or not dataset.primary_key)
    )


def source_of(dataset: Dataset) -> str:
    feed = getattr(dataset, "feed", None)
    return feed.connection.name if feed is not None else "monitored only"


def _facets(everything: Sequence[Health], wanted: Filters) -> list[Facet]:
    datasets = [health.dataset for health in everything]
    states = Counter(health.state for health in everything)
    return [
        Facet(
            "State", "state", tuple((s, STATES[s].word, states[s], s in wanted.states) for s in STATES if s in states)
        ),
        _facet("Tier", "tier", Counter(dataset.tier for dataset in datasets), wanted.tiers, word="Tier {}"),
        _facet("Team", "team", Counter(dataset.team.name for dataset in datasets), wanted.teams),
        _facet("Source", "source", Counter(source_of(dataset) for dataset in datasets), wanted.sources),
        _facet(
            "Data center",
            "dc",
            Counter(copy.data_center.name for dataset in datasets for copy in dataset.copies.all()),
            wanted.data_centers,
        ),
    ]


def _facet(title: str, name: str, counts: Mapping[Any, int], chosen: frozenset[Any], word: str = "{}") -> Facet:
    return Facet(
        title, name, tuple((str(value), word.format(value), counts[value], value in chosen) for value in sorted(counts))
    )


def rows(page: Sequence[Health], *, now: datetime) -> list[Row]:
    """The rows of one page. Three queries."""
    units = units_behind(health.worst for health in page if health.worst)
    ids = [health.dataset.pk for health in page]
    behind, written = by_dataset(ids), _written(ids, now)
    return [
        replace(
            Row(health, behind=behind.get(health.dataset.pk), written=written.get(health.dataset.pk, ())),
            why=reason_line(health.worst, units, now=now) if health.worst else "",
        )
        for health in page
    ]


def _written(datasets: Sequence[int], now: datetime) -> dict[int, tuple[int, ...]]:
    since = (now - timedelta(days=_SPARK_DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    commits = Commit.objects.filter(copy__dataset__in=datasets, completed_at__gte=since)
    days = (
        commits.annotate(day=TruncDate("completed_at"))
        .values_list("copy__dataset_id", "day")
        .annotate(rows=Sum("applied"))
    )
    found: dict[int, list[int]] = {}
    for dataset, day, count in days.order_by():
        line = found.setdefault(dataset, [0] * _SPARK_DAYS)
        at = (day - since.date()).days
        if 0 <= at < _SPARK_DAYS:
            line[at] = count or 0
    return {dataset: tuple(line) for dataset, line in found.items()}
