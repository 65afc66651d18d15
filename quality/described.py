"""A dataset of the catalog as the checks and expressions know it."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakehub.catalog.metadata import ColumnType
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.calendar import Grain
from quality.domain.definitions import DatasetFacts
from quality.domain.expression import THIS, UPSTREAM, Scope
from quality.domain.metrics import BusinessMetric
from quality.domain.production import BadCalendar, Production, production, text_of
from quality.domain.rules import Rule
from quality.domain.tiers import PRODUCTION, BadOverride, Slas, slas_of
from quality.models import ColumnRule, Metric


def slas(dataset: Dataset) -> Slas:
    """The promises of the dataset: its tier's, with what it overrides. Raises BadOverride."""
    return slas_of(dataset.tier, dataset.overrides, freshness=dataset.freshness_sla)


def slas_anyway(dataset: Dataset) -> Slas:
    """Those of its tier where what it overrides cannot be read; its coverage says what is wrong."""
    try:
        return slas(dataset)
    except BadOverride:
        return slas_of(dataset.tier, freshness=dataset.freshness_sla)


def produced(dataset: Dataset) -> Production | None:
    """When the dataset is produced, where it says so; None: always. Raises BadOverride."""
    calendar, holidays = (text_of(dataset.overrides.get(name, "")) for name in PRODUCTION)
    if not calendar and not holidays:
        return None
    try:
        return production(calendar, holidays, dataset.zone)
    except BadCalendar as problem:
        raise BadOverride(str(problem)) from problem


@dataclass(frozen=True)
class Upstream:
    """Where the rows of a dataset that is only watched come from; `outside`: no table of the lake."""

    columns: frozenset[str] | None
    outside: bool


@dataclass(frozen=True)
class Surroundings:
    """What tests are made from besides their dataset, read in a few queries however many datasets there are."""

    tables: Mapping[str, frozenset[str] | None]
    data_centers: frozenset[str]
    copies: Mapping[int, tuple[str, ...]]
    """The data centers of each dataset's copies."""
    upstream: Mapping[int, Upstream]
    """The columns of what each dataset's rows come from one to one, where lineage names it."""
    rules: Mapping[int, tuple[Rule, ...]]
    metrics: Mapping[int, tuple[BusinessMetric, ...]]
    problems: Mapping[int, BadOverride]
    """Why the metrics of a dataset cannot be described; it says so when that one is asked for, and costs no other."""
    grains: Mapping[str, Grain]


def surroundings(datasets: Collection[Dataset]) -> Surroundings:
    """For all of these at once."""
    metrics, problems = _metrics(datasets)
    tables, grains = _of_one() if len(datasets) == 1 else _of_many()
    return Surroundings(
        tables=tables,
        data_centers=frozenset(DataCenter.objects.values_list("name", flat=True)),
        copies=_copies(datasets),
        upstream=_upstream(datasets),
        rules=_rules(datasets),
        metrics=metrics,
        problems=problems,
        grains=grains,
    )


class Columns(Mapping[str, "frozenset[str] | None"]):
    """The columns of the live datasets, by name. Those of one are read when it is asked for: most are never named."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._read: dict[str, frozenset[str] | None] = {}

    def __getitem__(self, name: str) -> frozenset[str] | None:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            found = Dataset.objects.filter(name=name, offboarded_at=None).values_list("columns", flat=True).first()
            self._read[name] = _names(found or [])
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_Tables: TypeAlias = tuple[Mapping[str, frozenset[str] | None], dict[str, Grain]]
"""The live datasets by name: their columns, and how they are cut."""


def _of_one() -> _Tables:
    live = dict(Dataset.objects.filter(offboarded_at=None).values_list("name", "grain"))
    return Columns(live), {name: Grain(grain) for name, grain in live.items()}


def _of_many() -> _Tables:
    live = list(Dataset.objects.filter(offboarded_at=None).values_list("name", "columns", "grain"))
    return {name: _names(columns) for name, columns, _ in live}, {name: Grain(grain) for name, _, grain in live}


def described(dataset: Dataset, among: Surroundings | None = None) -> DatasetFacts:
    """Raises BadOverride. `among`: for many datasets at once."""
    around = among or surroundings([dataset])
    if dataset.pk in around.problems:
        raise around.problems[dataset.pk]
    own = _names(dataset.columns)
    tables: ChainMap[str, frozenset[str] | None] = ChainMap({THIS: own}, around.tables)  # type: ignore[arg-type]  # only the first is written to
    # What Lakehub ingests comes row by row from its feed; anything else from the dataset that lineage names.
    one_to_one = dataset.ingested or dataset.pk in around.upstream
    if one_to_one:
        tables[UPSTREAM] = own if dataset.ingested else around.upstream[dataset.pk].columns
    return DatasetFacts(
        name=dataset.name,
        tier=dataset.tier,
        slas=slas(dataset),
        scope=Scope(
            tables=tables,
            data_centers=around.data_centers,
            primary_key=tuple(dataset.primary_key),
            event_time=dataset.event_time,
            grains={**around.grains, THIS: dataset.partition_grain},
            metrics={one.name: one.sql for one in around.metrics.get(dataset.pk, ())},
        ),
        grain=dataset.partition_grain,
        data_centers=around.copies.get(dataset.pk, ()),
        one_to_one=one_to_one,
        floats=frozenset(column["name"] for column in dataset.columns if column["type"] == ColumnType.FLOAT),
        upstream_outside=dataset.ingested or (one_to_one and around.upstream[dataset.pk].outside),
        rules=around.rules.get(dataset.pk, ()),
        metrics=around.metrics.get(dataset.pk, ()),
        produced=produced(dataset),
    )


def described_anyway(dataset: Dataset) -> DatasetFacts:
    """As if it overrode nothing, and without its metrics, where what it overrides cannot be read."""
    try:
        return described(dataset)
    except BadOverride:
        plain = copy(dataset)
        plain.overrides = {}
        return described(plain, replace(surroundings([plain]), problems={}))


def _copies(datasets: Collection[Dataset]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = defaultdict(tuple)
    copies = DatasetCopy.objects.filter(dataset__in=datasets).order_by("data_center__name")
    for dataset_id, center in copies.values_list("dataset_id", "data_center__name"):
        found[dataset_id] += (center,)
    return found


def _rules(datasets: Collection[Dataset]) -> dict[int, tuple[Rule, ...]]:
    found: dict[int, tuple[Rule, ...]] = defaultdict(tuple)
    for one in ColumnRule.objects.filter(dataset__in=datasets, enabled=True):
        found[one.dataset_id] += (one.rule,)
    return found


def _metrics(
    datasets: Collection[Dataset],
) -> tuple[dict[int, tuple[BusinessMetric, ...]], dict[int, BadOverride]]:
    """By dataset, with the first problem of those that have one."""
    found: dict[int, tuple[BusinessMetric, ...]] = defaultdict(tuple)
    problems: dict[int, BadOverride] = {}
    registered = Metric.objects.filter(dataset__in=datasets).select_related("dataset").prefetch_related("inputs")
    for one in registered:
        try:
            found[one.dataset_id] += (business_metric(one),)
        except BadOverride as problem:
            problems.setdefault(one.dataset_id, problem)
    return found, problems


def business_metric(row: Metric) -> BusinessMetric:
    """Raises BadOverride."""
    inputs = [one for one in row.inputs.all() if one.offboarded_at is None]
    return BusinessMetric(
        name=row.name,
        sql=row.sql,
        second_sql=row.second_sql,
        low=row.low,
        high=row.high,
        week_over_week=row.week_over_week,
        agreement=row.agreement,
        anomaly=row.anomaly,
        inputs={one.name: slas(one).freshness for one in inputs},
        freshness=slas(row.dataset).freshness,
    )


def _upstream(datasets: Collection[Dataset]) -> dict[int, Upstream]:
    """The oldest edge counts, as where the rows are read (quality.places)."""
    edges = LineageEdge.objects.filter(downstream__in=datasets, one_to_one=True, upstream__offboarded_at=None)
    newest_first = edges.order_by("-pk").values_list(
        "downstream_id", "upstream__columns", "upstream__ingested", "upstream__feed__connection__plugin"
    )
    return {
        downstream: Upstream(_names(columns), outside=not ingested and plugin != "hudi")
        for downstream, columns, ingested, plugin in newest_first
    }


def _names(columns: list[dict[str, str]]) -> frozenset[str] | None:
    return frozenset(column["name"] for column in columns) or None
