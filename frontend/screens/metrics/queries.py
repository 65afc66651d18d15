"""Business metrics with the tests that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontend.components.quality_test_rows import QualityTestRow, rows_of_tests
from incidents.domain.incident.health import worst_state
from incidents.record.health import health_of
from quality.models import Metric, QualityTest


@dataclass(frozen=True)
class MetricRow:
    metric: Metric
    rows: list[QualityTestRow]

    @property
    def state(self) -> str:
        return worst_state(row.state for row in self.rows)

    @property
    def tests(self) -> int:
        return len({row.test.pk for row in self.rows})


def metric_rows(metrics: Sequence[Metric], *, now: datetime) -> list[MetricRow]:
    """Seven queries a dataset that has metrics, however many those are; three for the health of all."""
    by_dataset: dict[int, list[Metric]] = defaultdict(list)
    for metric in metrics:
        by_dataset[metric.dataset_id].append(metric)
    healths = health_of([members[0].dataset for members in by_dataset.values()], now=now)
    rows_by_metric: dict[int, list[QualityTestRow]] = defaultdict(list)
    for pk, members in by_dataset.items():
        dataset = members[0].dataset
        tests = QualityTest.objects.filter(dataset=dataset, retired_at=None, key__startswith="metric:")
        rows = rows_of_tests(dataset, list(tests.select_related("version").order_by("key")), healths[pk], now=now)
        for metric in members:
            rows_by_metric[metric.pk] = [row for row in rows if row.test.key.startswith(f"metric:{metric.name}.")]
    return [MetricRow(metric, rows_by_metric[metric.pk]) for metric in metrics]
