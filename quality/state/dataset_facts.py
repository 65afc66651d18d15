"""A dataset of the catalog as the checks and expressions know it."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeAlias
from zoneinfo import ZoneInfo

from lakehub.catalog.metadata import ColumnType
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy, Feed, FeedKind, LineageEdge
from lakehub.catalog.storages import is_captured, is_lake
from lakehub.kernel.partitions import Grain, why_not_summed
from lakehub.kernel.partitions.form import split_columns
from quality.domain.generation.business_metrics import BusinessMetric
from quality.domain.generation.definitions import DatasetFacts
from quality.domain.generation.rules import Rule
from quality.domain.language import THIS, UPSTREAM, Scope
from quality.domain.slas import BadOverride, columns_not_compared, keys_unique_within
from quality.engines import ENGINES
from quality.models import ColumnRule, Metric
from quality.state.dataset_slas import dataset_slas, production_calendar


@dataclass(frozen=True)
class UpstreamTable:
    """What the rows of a dataset come from one to one; `is_external`: it is no table of the lake."""

    columns: frozenset[str] | None
    is_external: bool
    grain: Grain | None = None
    """None: the dataset's own."""
    zone: str = "UTC"


@dataclass(frozen=True)
class CatalogContext:
    """What tests are made from besides their dataset, read in a few queries however many datasets there are."""

    tables: Mapping[str, frozenset[str] | None]
    data_centers: frozenset[str]
    copies: Mapping[int, tuple[str, ...]]
    """The data centers of each dataset's copies."""
    upstream: Mapping[int, UpstreamTable]
    """What each dataset's rows come from one to one, where there is a table of that."""
    rules: Mapping[int, tuple[Rule, ...]]
    metrics: Mapping[int, tuple[BusinessMetric, ...]]
    problems: Mapping[int, BadOverride]
    """Why the metrics of a dataset cannot be described; it says so when that one is asked for, and costs no other."""
    grains: Mapping[str, Grain]
    captured: frozenset[int] = frozenset()
    """Those of the datasets whose changes come from the log of their source."""


def catalog_context(datasets: Collection[Dataset]) -> CatalogContext:
    """For all of these at once; where they are many, with their feeds."""
    metrics, problems = _metrics(datasets)
    tables, grains = _tables_lazily() if len(datasets) == 1 else _tables_at_once()
    return CatalogContext(
        tables=tables,
        data_centers=frozenset(DataCenter.objects.values_list("name", flat=True)),
        copies=_copies(datasets),
        upstream=_upstream(datasets),
        rules=_rules(datasets),
        metrics=metrics,
        problems=problems,
        grains=grains,
        captured=_captured(datasets),
    )


class LazyColumns(Mapping[str, "frozenset[str] | None"]):
    """The columns of the live datasets, by name. Those of one are read when it is asked for: most are never named."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._read: dict[str, frozenset[str] | None] = {}

    def __getitem__(self, name: str) -> frozenset[str] | None:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            columns = Dataset.objects.filter(name=name, offboarded_at=None).values_list("columns", flat=True).first()
            self._read[name] = _column_names(columns or [])
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_Tables: TypeAlias = tuple[Mapping[str, frozenset[str] | None], dict[str, Grain]]
"""The live datasets by name: their columns, and how they are cut."""


def _tables_lazily() -> _Tables:
    live = dict(Dataset.objects.filter(offboarded_at=None).values_list("name", "grain"))
    return LazyColumns(live), {name: Grain(grain) for name, grain in live.items()}


def _tables_at_once() -> _Tables:
    live = list(Dataset.objects.filter(offboarded_at=None).values_list("name", "columns", "grain"))
    return {name: _column_names(columns) for name, columns, _ in live}, {name: Grain(grain) for name, _, grain in live}


def dataset_facts(dataset: Dataset, among: CatalogContext | None = None) -> DatasetFacts:
    """Raises BadOverride. `among`: for many datasets at once."""
    around = among or catalog_context([dataset])
    if dataset.pk in around.problems:
        raise around.problems[dataset.pk]
    own = _column_names(dataset.columns)
    tables: ChainMap[str, frozenset[str] | None] = ChainMap({THIS: own}, around.tables)  # type: ignore[arg-type]  # only the first is written to
    upstream = around.upstream.get(dataset.pk)
    upstream_problem = _why_not_compared(dataset, upstream)
    if upstream_problem:
        upstream = None
    if upstream is not None:
        tables[UPSTREAM] = upstream.columns
    return DatasetFacts(
        name=dataset.name,
        tier=dataset.tier,
        slas=dataset_slas(dataset),
        scope=Scope(
            tables=tables,
            data_centers=around.data_centers,
            primary_key=tuple(dataset.primary_key),
            event_time=_event_time(dataset),
            grains={**around.grains, THIS: dataset.partition_grain},
            engines=frozenset(ENGINES),
            metrics={metric.name: metric.sql for metric in around.metrics.get(dataset.pk, ())},
        ),
        grain=dataset.partition_grain,
        data_centers=around.copies.get(dataset.pk, ()),
        one_to_one=upstream is not None,
        upstream_problem=upstream_problem,
        float_columns=frozenset(column["name"] for column in dataset.columns if column["type"] == ColumnType.FLOAT),
        partition_columns=split_columns(dataset.partition_column),
        unique_within_partition=keys_unique_within(dataset.overrides) == "partition",
        nullable_keys=_nullable_keys(dataset, around.copies.get(dataset.pk, ())),
        upstream_is_external=upstream is not None and upstream.is_external,
        rules=around.rules.get(dataset.pk, ()),
        metrics=around.metrics.get(dataset.pk, ()),
        production_calendar=production_calendar(dataset),
        is_captured=dataset.pk in around.captured,
        not_compared=columns_not_compared(dataset.overrides),
    )


def _event_time(dataset: Dataset) -> str:
    """Empty where partitions are cut from it: they are read on the dataset's clock, which a time without a zone does not say."""
    form = dataset.source_form
    is_partition = form is not None and form.is_time and dataset.event_time in form.columns
    return "" if is_partition else dataset.event_time


def dataset_facts_or_defaults(dataset: Dataset) -> DatasetFacts:
    """As if it overrode nothing, and without its metrics, where what it overrides cannot be read."""
    try:
        return dataset_facts(dataset)
    except BadOverride:
        plain = copy(dataset)
        plain.overrides = {}
        return dataset_facts(plain, replace(catalog_context([plain]), problems={}))


def _captured(datasets: Collection[Dataset]) -> frozenset[int]:
    feeds = Feed.objects.filter(dataset__in=datasets, dataset__ingested=True, kind=FeedKind.CONNECTION)
    plugins = feeds.values_list("dataset_id", "connection__plugin")
    return frozenset(dataset for dataset, plugin in plugins if is_captured(plugin))


def _copies(datasets: Collection[Dataset]) -> dict[int, tuple[str, ...]]:
    centers_by_dataset: dict[int, tuple[str, ...]] = defaultdict(tuple)
    copies = DatasetCopy.objects.filter(dataset__in=datasets).order_by("data_center__name")
    for dataset_id, center in copies.values_list("dataset_id", "data_center__name"):
        centers_by_dataset[dataset_id] += (center,)
    return centers_by_dataset


def _rules(datasets: Collection[Dataset]) -> dict[int, tuple[Rule, ...]]:
    rules_by_dataset: dict[int, tuple[Rule, ...]] = defaultdict(tuple)
    for column_rule in ColumnRule.objects.filter(dataset__in=datasets, enabled=True):
        rules_by_dataset[column_rule.dataset_id] += (column_rule.rule,)
    return rules_by_dataset


def _metrics(
    datasets: Collection[Dataset],
) -> tuple[dict[int, tuple[BusinessMetric, ...]], dict[int, BadOverride]]:
    """By dataset, with the first problem of those that have one."""
    metrics_by_dataset: dict[int, tuple[BusinessMetric, ...]] = defaultdict(tuple)
    problems: dict[int, BadOverride] = {}
    registered = Metric.objects.filter(dataset__in=datasets).select_related("dataset").prefetch_related("inputs")
    for metric in registered:
        try:
            metrics_by_dataset[metric.dataset_id] += (metric_definition(metric),)
        except BadOverride as problem:
            problems.setdefault(metric.dataset_id, problem)
    return metrics_by_dataset, problems


def metric_definition(row: Metric) -> BusinessMetric:
    """Raises BadOverride."""
    inputs = [input_dataset for input_dataset in row.inputs.all() if input_dataset.offboarded_at is None]
    return BusinessMetric(
        name=row.name,
        sql=row.sql,
        second_sql=row.second_sql,
        low=row.low,
        high=row.high,
        week_over_week=row.week_over_week,
        agreement=row.agreement,
        anomaly=row.anomaly,
        inputs={input_dataset.name: dataset_slas(input_dataset).freshness for input_dataset in inputs},
        freshness=dataset_slas(row.dataset).freshness,
    )


def _why_not_compared(dataset: Dataset, upstream: UpstreamTable | None) -> str:
    """Why the rows of its upstream cannot be held against its own, partition by partition; empty where they can."""
    if upstream is None or upstream.grain is None:
        return ""
    why = why_not_summed(upstream.grain, ZoneInfo(upstream.zone), dataset.partition_grain, dataset.zone)
    return f"upstream cannot be compared: {why}" if why else ""


def _upstream(datasets: Collection[Dataset]) -> dict[int, UpstreamTable]:
    """The table that a connection's feed reads row by row, else the dataset that lineage names."""
    edges = (
        LineageEdge.compared()
        .filter(downstream__in=datasets)
        .values_list(
            "downstream_id",
            "upstream__columns",
            "upstream__ingested",
            "upstream__feed__connection__plugin",
            "upstream__grain",
            "upstream__partition_tz",
        )
    )
    named = {
        downstream: UpstreamTable(
            _column_names(columns), is_external=not ingested and not is_lake(plugin), grain=Grain(grain), zone=zone
        )
        for downstream, columns, ingested, plugin, grain, zone in edges
    }
    sources = {
        dataset.pk: UpstreamTable(_column_names(dataset.columns), is_external=True)
        for dataset in datasets
        if dataset.is_loaded_from_connection
    }
    return named | sources


def _nullable_keys(dataset: Dataset, data_centers: Collection[str]) -> tuple[str, ...]:
    """A row without a record key never reaches the lake, and one without a partition is in none, which is a finding. What a table
    declares is known of the one that the feed reads only."""
    is_declared = len(data_centers) < 2 or dataset.ingested
    never_null = {column["name"] for column in dataset.columns if is_declared and not column.get("nullable", True)}
    if dataset.ingested:
        never_null |= set(dataset.record_key)
    if dataset.partition_grain is not Grain.NONE:
        never_null |= set(split_columns(dataset.partition_column))
    return tuple(name for name in dataset.primary_key if name not in never_null)


def _column_names(columns: list[dict[str, str]]) -> frozenset[str] | None:
    return frozenset(column["name"] for column in columns) or None
