"""The list of datasets: filters with their counts, worst first, and what a page of rows needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum

from frontend.components.freshness_lag import FreshnessLag, lag_by_dataset
from frontend.results.reasons import cell_reason, example_units
from frontend.ui.states import STATES
from incidents.record.health import DatasetHealth, health_of
from ingestion.models import Commit
from lakehub.catalog.models import Dataset

PAGE_SIZE = 50
_SPARK_DAYS = 28


@dataclass(frozen=True)
class DatasetFilters:
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
        return self != DatasetFilters()


@dataclass(frozen=True)
class DatasetRow:
    health: DatasetHealth
    reason: str = ""
    freshness_lag: FreshnessLag | None = None
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
class DatasetListing:
    matches: list[DatasetHealth]
    """Worst first, all pages."""
    all: list[DatasetHealth]
    facets: list[Facet]


def list_datasets(filters: DatasetFilters, my_teams: frozenset[int], *, now: datetime) -> DatasetListing:
    """Everything that is onboarded, its states, and what of it matches. Five queries."""
    datasets = (
        Dataset.objects.filter(offboarded_at=None)
        .select_related("team", "feed__connection")
        .prefetch_related("copies__data_center")
    )
    everything = sorted(health_of(datasets, now=now).values(), key=_worst_first)
    matches = [health for health in everything if _matches(health, filters, my_teams)]
    return DatasetListing(matches, everything, _facets_of(everything, filters))


def _worst_first(health: DatasetHealth) -> tuple[int, int, str]:
    return -STATES[health.state].weight, health.dataset.tier, health.dataset.name


def _matches(health: DatasetHealth, filters: DatasetFilters, my_teams: frozenset[int]) -> bool:
    dataset = health.dataset
    return (
        (not filters.q or filters.q.lower() in f"{dataset.name} {dataset.description}".lower())
        and (not filters.states or health.state in filters.states)
        and (not filters.tiers or dataset.tier in filters.tiers)
        and (not filters.teams or dataset.team.name in filters.teams)
        and (not filters.sources or source_name_of(dataset) in filters.sources)
        and (
            not filters.data_centers
            or any(copy.data_center.name in filters.data_centers for copy in dataset.copies.all())
        )
        and (not filters.mine or dataset.team_id in my_teams)
        and (not filters.no_key or not dataset.primary_key)
    )


def source_name_of(dataset: Dataset) -> str:
    feed = dataset.feed_or_none
    return feed.source_name if feed is not None else "monitored only"


def _facets_of(everything: Sequence[DatasetHealth], filters: DatasetFilters) -> list[Facet]:
    datasets = [health.dataset for health in everything]
    states = Counter(health.state for health in everything)
    return [
        Facet(
            "State", "state", tuple((s, STATES[s].word, states[s], s in filters.states) for s in STATES if s in states)
        ),
        _facet("Tier", "tier", Counter(dataset.tier for dataset in datasets), filters.tiers, word="Tier {}"),
        _facet("Team", "team", Counter(dataset.team.name for dataset in datasets), filters.teams),
        _facet("Source", "source", Counter(source_name_of(dataset) for dataset in datasets), filters.sources),
        _facet(
            "Data center",
            "dc",
            Counter(copy.data_center.name for dataset in datasets for copy in dataset.copies.all()),
            filters.data_centers,
        ),
    ]


def _facet(title: str, name: str, counts: Mapping[Any, int], chosen: frozenset[Any], word: str = "{}") -> Facet:
    return Facet(
        title, name, tuple((str(value), word.format(value), counts[value], value in chosen) for value in sorted(counts))
    )


def dataset_rows(page: Sequence[DatasetHealth], *, now: datetime) -> list[DatasetRow]:
    """The rows of one page. Three queries."""
    units = example_units(health.worst for health in page if health.worst)
    ids = [health.dataset.pk for health in page]
    behind, written = lag_by_dataset(ids), _rows_written_by_day(ids, now)
    return [
        replace(
            DatasetRow(health, freshness_lag=behind.get(health.dataset.pk), written=written.get(health.dataset.pk, ())),
            reason=cell_reason(health.worst, units, now=now) if health.worst else "",
        )
        for health in page
    ]


def _rows_written_by_day(datasets: Sequence[int], now: datetime) -> dict[int, tuple[int, ...]]:
    """A followed copy may have hundreds of thousands of commits in these days: they are compared with bounds, as SQLite would call Python for
    the day of each."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=back) for back in reversed(range(_SPARK_DAYS))]
    commits = Commit.objects.filter(copy__dataset__in=datasets, completed_at__gte=days[0])
    sums = {f"day_{number}": Sum("applied", filter=_within_day(day)) for number, day in enumerate(days)}
    written = commits.order_by().values_list("copy__dataset_id").annotate(**sums)
    return {dataset: tuple(rows or 0 for rows in line) for dataset, *line in written}


def _within_day(begins: datetime) -> Q:
    return Q(completed_at__gte=begins, completed_at__lt=begins + timedelta(days=1))
