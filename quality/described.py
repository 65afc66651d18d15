"""A dataset of the catalog as the checks and expressions know it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy, LineageEdge
from quality.domain.definitions import DatasetFacts
from quality.domain.expression import THIS, UPSTREAM, Scope
from quality.domain.tiers import Slas, slas_of


def slas(dataset: Dataset) -> Slas:
    """The promises of the dataset: its tier's, with what it overrides. Raises BadOverride."""
    return slas_of(dataset.tier, dataset.overrides, freshness=dataset.freshness_sla)


@dataclass(frozen=True)
class Surroundings:
    """What tests are made from besides their dataset, read in a few queries however many datasets there are."""

    tables: Mapping[str, frozenset[str] | None]
    data_centers: frozenset[str]
    copies: Mapping[int, tuple[str, ...]]
    """The data centers of each dataset's copies."""
    upstream: Mapping[int, frozenset[str] | None]
    """The columns of what each dataset's rows come from one to one, where lineage names it."""


def surroundings(datasets: Collection[Dataset]) -> Surroundings:
    live = Dataset.objects.filter(offboarded_at=None).values_list("name", "columns")
    return Surroundings(
        tables={name: _names(columns) for name, columns in live},
        data_centers=frozenset(DataCenter.objects.values_list("name", flat=True)),
        copies=_copies(datasets),
        upstream=_upstream(datasets),
    )


def described(dataset: Dataset, among: Surroundings | None = None) -> DatasetFacts:
    """Raises BadOverride. `among`: for many datasets at once."""
    around = among or surroundings([dataset])
    own = _names(dataset.columns)
    tables = {**around.tables, THIS: own}
    # What Lakehub ingests comes row by row from its feed; anything else from the dataset that lineage names.
    one_to_one = dataset.ingested or dataset.pk in around.upstream
    if one_to_one:
        tables[UPSTREAM] = own if dataset.ingested else around.upstream[dataset.pk]
    return DatasetFacts(
        name=dataset.name,
        tier=dataset.tier,
        slas=slas(dataset),
        scope=Scope(
            tables=tables,
            data_centers=around.data_centers,
            primary_key=tuple(dataset.primary_key),
            event_time=dataset.event_time,
        ),
        grain=dataset.partition_grain,
        data_centers=around.copies.get(dataset.pk, ()),
        one_to_one=one_to_one,
    )


def _copies(datasets: Collection[Dataset]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = defaultdict(tuple)
    copies = DatasetCopy.objects.filter(dataset__in=datasets).order_by("data_center__name")
    for dataset_id, center in copies.values_list("dataset_id", "data_center__name"):
        found[dataset_id] += (center,)
    return found


def _upstream(datasets: Collection[Dataset]) -> dict[int, frozenset[str] | None]:
    """The oldest edge counts, as where the rows are read (quality.places)."""
    edges = LineageEdge.objects.filter(downstream__in=datasets, one_to_one=True, upstream__offboarded_at=None)
    newest_first = edges.order_by("-pk").values_list("downstream_id", "upstream__columns")
    return {downstream: _names(columns) for downstream, columns in newest_first}


def _names(columns: list[dict[str, str]]) -> frozenset[str] | None:
    return frozenset(column["name"] for column in columns) or None
