"""Is a value out of the ordinary, by what the same weekdays and hours were like? Suspicion alarms; it does not gate."""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.generation.rule_definitions import definitions_of_rules


class AnomalyCheck:
    category = "others"
    keys = ("rule:", "metric:")

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        yield from definitions_of_rules("anomaly", dataset, gating=False)
        for metric in dataset.metrics:
            if metric.anomaly:
                yield Definition(
                    key=metric.key("anomaly"),
                    title=f"{metric.name} out of the ordinary",
                    category=self.category,
                    check="anomaly",
                    expression=f"deviation({metric.value}, 8w) < 4",
                    sustain=dataset.slas.sustain,
                    cadence=dataset.cadence,
                    because=f"tier {dataset.tier}, metric {metric.name}",
                    gating=False,
                )


ANOMALY = AnomalyCheck()
