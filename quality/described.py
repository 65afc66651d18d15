"""A dataset of the catalog as the checks and expressions know it."""

from __future__ import annotations

from lakehub.catalog.models import DataCenter, Dataset, LineageEdge
from quality.domain.definitions import DatasetFacts
from quality.domain.expression import THIS, UPSTREAM, Scope
from quality.domain.tiers import Slas, slas_of


def slas(dataset: Dataset) -> Slas:
    """The promises of the dataset: its tier's, with what it overrides. Raises BadOverride."""
    return slas_of(dataset.tier, dataset.overrides, freshness=dataset.freshness_sla)


def described(dataset: Dataset) -> DatasetFacts:
    """Raises BadOverride."""
    upstream, one_to_one = _upstream(dataset)
    tables = {
        name: _names(columns)
        for name, columns in Dataset.objects.filter(offboarded_at=None).values_list("name", "columns")
    }
    tables[THIS] = _names(dataset.columns)
    if upstream is not None:
        tables[UPSTREAM] = _names(upstream)
    return DatasetFacts(
        name=dataset.name,
        tier=dataset.tier,
        slas=slas(dataset),
        scope=Scope(
            tables=tables,
            data_centers=frozenset(DataCenter.objects.values_list("name", flat=True)),
            primary_key=tuple(dataset.primary_key),
            event_time=dataset.event_time,
        ),
        grain=dataset.partition_grain,
        data_centers=tuple(dataset.copies.order_by("data_center__name").values_list("data_center__name", flat=True)),
        one_to_one=one_to_one,
    )


def _upstream(dataset: Dataset) -> tuple[list[dict[str, str]] | None, bool]:
    """The columns of what `upstream` means, if anything, and whether its rows map one to one.

    What Lakehub ingests comes row by row from its feed; anything else from the dataset that lineage names.
    """
    if dataset.ingested:
        return dataset.columns, True
    edge = (
        LineageEdge.objects.filter(downstream=dataset, one_to_one=True)
        .select_related("upstream")
        .order_by("pk")
        .first()
    )
    return (edge.upstream.columns, True) if edge else (None, False)


def _names(columns: list[dict[str, str]]) -> frozenset[str] | None:
    return frozenset(column["name"] for column in columns) or None
