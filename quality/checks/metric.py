"""Are the numbers that the business goes by there, plausible, and the same whichever way they are worked out?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.business_metrics import TITLES, BadShare, BusinessMetric
from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck

_NOT_GATING = ("freshness", "week_over_week")
"""The inputs gate themselves, and a business may change within a week: what these find alarms but does not gate."""


class MetricCheck:
    category = "others"
    keys = ("metric:",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        for metric in dataset.metrics:
            try:
                yield from self._definitions_of(metric, dataset)
            except BadShare as problem:
                yield InapplicableCheck("metric", f"{metric.name}: {problem}")

    def _definitions_of(self, metric: BusinessMetric, dataset: DatasetFacts) -> Iterator[Definition]:
        for standard, expression in metric.expressions().items():
            yield Definition(
                key=metric.key(standard),
                title=TITLES[standard].format(name=metric.name),
                category=self.category,
                check="metric",
                expression=expression,
                sustain=dataset.slas.sustain,
                cadence=dataset.slas.cadence if standard == "freshness" else dataset.cadence,
                because=f"tier {dataset.tier}, metric {metric.name}",
                gating=standard not in _NOT_GATING,
            )


METRIC = MetricCheck()
