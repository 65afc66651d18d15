"""Does each data center have the very records that the others have? A Bloom filter travels, and what is missing is named.

Row counts agree where one record was lost and another doubled; this does not. The copy that lacks records fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.definitions import DatasetFacts, Definition, Skipped
from quality.domain.expression import formula
from quality.domain.expression.nodes import Name
from quality.domain.tiers import shown


class BloomCrossDc:
    category = "consistency"
    keys = ("bloom",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | Skipped]:
        lacking = "a copy in one data center only" if len(dataset.data_centers) < 2 else dataset.no_key
        if lacking:
            yield Skipped("bloom_cross_dc", lacking, mendable=len(dataset.data_centers) > 1)
            return
        share = dataset.slas.compared
        sample = "" if share == 1 else f", {shown(share)}"
        for center in dataset.data_centers:
            yield Definition(
                key=f"bloom@{center}",
                title=f"Records of {center}",
                category=self.category,
                check="bloom_cross_dc",
                expression=f"matching(this, {formula(Name('this', center))}{sample}) > {shown(dataset.slas.consistency)}",
                sustain=dataset.slas.sustain,
                cadence=dataset.cadence,
                because=f"tier {dataset.tier}, copies in {', '.join(dataset.data_centers)}, primary key {', '.join(dataset.scope.primary_key)}",
            )


BLOOM_CROSS_DC = BloomCrossDc()
