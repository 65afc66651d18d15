"""Have all the rows arrived that upstream has?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.slas import format_sla


class CompletenessCheck:
    category = "completeness"
    keys = ("completeness",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        if not dataset.scope.has_upstream or not dataset.one_to_one:
            yield InapplicableCheck("completeness", "no upstream whose rows map one to one")
            return
        yield Definition(
            key="completeness",
            title="Rows of upstream",
            category=self.category,
            check="completeness",
            expression=f"rows(this) / rows(upstream) > {format_sla(dataset.slas.completeness)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, rows map one to one to upstream",
        )


COMPLETENESS = CompletenessCheck()
