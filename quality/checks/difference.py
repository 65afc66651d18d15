"""Does each data center have the same records as the others, with the same values? Each one that differs is named.

Sums over the rows travel, and then the records that differ. A copy fails for what is wrong on its side: records that it lacks,
that it has too often, or that have other values (which of the two is right, nobody knows: both copies fail).
"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language import formula
from quality.domain.language.tree.literals import quote_text
from quality.domain.language.tree.nodes import Name
from quality.domain.slas import format_sla


class DifferenceCheck:
    category = "consistency"
    keys = ("difference",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        lacking = "a copy in one data center only" if len(dataset.data_centers) < 2 else dataset.why_no_key
        if lacking:
            yield InapplicableCheck("difference", lacking, mendable=len(dataset.data_centers) > 1)
            return
        allowed = 1 - dataset.slas.consistency
        left_out = f", {quote_text(', '.join(dataset.not_compared))}" if dataset.not_compared else ""
        for center in dataset.data_centers:
            there = formula(Name("this", center))
            yield Definition(
                key=f"difference@{center}",
                title=f"Differences from {center}",
                category=self.category,
                check="difference",
                expression=f"difference(this, {there}{left_out}) {'<' if allowed else '<='} {format_sla(allowed)}",
                sustain=dataset.slas.sustain,
                cadence=dataset.cadence,
                because=f"tier {dataset.tier}, copies in {', '.join(dataset.data_centers)}, primary key {', '.join(dataset.scope.primary_key)}",
            )


DIFFERENCE = DifferenceCheck()
