"""Does each data center have the very records that the others have? A Bloom filter travels, and what is missing is named.

Row counts agree where one record was lost and another doubled; this does not. The copy that lacks records fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language import formula
from quality.domain.language.tree.nodes import Name
from quality.domain.slas import above, format_sla


class BloomCrossDcCheck:
    category = "consistency"
    keys = ("bloom",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        lacking = "a copy in one data center only" if len(dataset.data_centers) < 2 else dataset.why_no_key
        if lacking:
            yield InapplicableCheck("bloom_cross_dc", lacking, mendable=len(dataset.data_centers) > 1)
            return
        share = dataset.slas.compared
        sample = "" if share == 1 else f", {format_sla(share)}"
        for center in dataset.data_centers:
            yield Definition(
                key=f"bloom@{center}",
                title=f"Records of {center}",
                category=self.category,
                check="bloom_cross_dc",
                expression=f"matching(this, {formula(Name('this', center))}{sample}) {above(dataset.slas.consistency)}",
                sustain=dataset.slas.sustain,
                cadence=dataset.cadence,
                because=f"tier {dataset.tier}, copies in {', '.join(dataset.data_centers)}, primary key {', '.join(dataset.scope.primary_key)}",
            )


BLOOM_CROSS_DC = BloomCrossDcCheck()
