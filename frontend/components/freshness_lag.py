"""How far the freshest whole data of a dataset lies back, as its freshness tests measured it last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lakehub.catalog.models import Dataset, DatasetCopy
from quality.models import Category, Unit


@dataclass(frozen=True)
class FreshnessLag:
    """Of one copy, against the SLA."""

    dataset: int
    copy: int
    lag: timedelta
    sla: timedelta | None
    state: str
    """Empty where it passes."""

    @property
    def share(self) -> float:
        return self.lag / self.sla if self.sla else 0.0


def lag_by_dataset(datasets: Sequence[int]) -> dict[int, FreshnessLag]:
    """The copy that lies furthest back speaks for its dataset. One query."""
    return {lag.dataset: lag for lag in _lags_shortest_first(datasets)}


def lag_by_copy(dataset: Dataset) -> list[tuple[DatasetCopy, FreshnessLag]]:
    """One query."""
    lags = {lag.copy: lag for lag in _lags_shortest_first([dataset.pk])}
    return [(copy, lags[copy.pk]) for copy in dataset.copies.all() if copy.pk in lags]


def _lags_shortest_first(datasets: Sequence[int]) -> Iterator[FreshnessLag]:
    units = Unit.objects.filter(
        test__dataset__in=datasets, test__category=Category.FRESHNESS, test__retired_at=None, observed__isnull=False
    )
    fields = ("test__dataset_id", "copy_id", "observed", "test__version__due_after", "verdict")
    for dataset, copy, seconds, sla, verdict in units.order_by("observed").values_list(*fields):
        yield FreshnessLag(dataset, copy, timedelta(seconds=seconds or 0), sla, "" if verdict == "pass" else verdict)
