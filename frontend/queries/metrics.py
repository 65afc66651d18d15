"""Business metrics with the tests that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontend.queries.tests import TestRow, test_rows
from incidents.domain.rollup import heaviest
from incidents.rollup import health_of
from quality.models import Metric, Test


@dataclass(frozen=True)
class MetricRow:
    metric: Metric
    rows: list[TestRow]

    @property
    def state(self) -> str:
        return heaviest(row.state for row in self.rows)

    @property
    def tests(self) -> int:
        return len({row.test.pk for row in self.rows})


def metric_rows(metrics: Sequence[Metric], *, now: datetime) -> list[MetricRow]:
    """Seven queries a dataset that has metrics, however many those are; three for the health of all."""
    by_dataset: dict[int, list[Metric]] = defaultdict(list)
    for metric in metrics:
        by_dataset[metric.dataset_id].append(metric)
    healths = health_of([members[0].dataset for members in by_dataset.values()], now=now)
    found: dict[int, list[TestRow]] = defaultdict(list)
    for pk, members in by_dataset.items():
        dataset = members[0].dataset
        tests = Test.objects.filter(dataset=dataset, retired_at=None, key__startswith="metric:")
        rows = test_rows(dataset, list(tests.select_related("version").order_by("key")), healths[pk], now=now)
        for metric in members:
            found[metric.pk] = [row for row in rows if row.test.key.startswith(f"metric:{metric.name}.")]
    return [MetricRow(metric, found[metric.pk]) for metric in metrics]
