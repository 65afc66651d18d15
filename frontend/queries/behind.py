"""How far the freshest whole data of a dataset lies back, as its freshness tests measured it last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lakehub.catalog.models import Dataset, DatasetCopy
from quality.models import Category, Unit


@dataclass(frozen=True)
class Behind:
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


def by_dataset(datasets: Sequence[int]) -> dict[int, Behind]:
    """The copy that lies furthest back speaks for its dataset. One query."""
    return {one.dataset: one for one in _nearest_first(datasets)}


def by_copy(dataset: Dataset) -> list[tuple[DatasetCopy, Behind]]:
    """One query."""
    found = {one.copy: one for one in _nearest_first([dataset.pk])}
    return [(copy, found[copy.pk]) for copy in dataset.copies.all() if copy.pk in found]


def _nearest_first(datasets: Sequence[int]) -> Iterator[Behind]:
    units = Unit.objects.filter(
        test__dataset__in=datasets, test__category=Category.FRESHNESS, test__retired_at=None, observed__isnull=False
    )
    fields = ("test__dataset_id", "copy_id", "observed", "test__version__due_after", "verdict")
    for dataset, copy, seconds, sla, verdict in units.order_by("observed").values_list(*fields):
        yield Behind(dataset, copy, timedelta(seconds=seconds or 0), sla, "" if verdict == "pass" else verdict)
