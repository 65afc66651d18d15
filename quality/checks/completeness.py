"""Have all the rows arrived that upstream has?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.definitions import DatasetFacts, Definition, Skipped
from quality.domain.tiers import shown


class Completeness:
    category = "completeness"
    keys = ("completeness",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | Skipped]:
        if not dataset.scope.has_upstream or not dataset.one_to_one:
            yield Skipped("completeness", "no upstream whose rows map one to one")
            return
        yield Definition(
            key="completeness",
            title="Rows of upstream",
            category=self.category,
            check="completeness",
            expression=f"rows(this) / rows(upstream) > {shown(dataset.slas.completeness)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, rows map one to one to upstream",
        )


COMPLETENESS = Completeness()
