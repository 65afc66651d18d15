"""Does each data center have the rows that the others have? The copy that lacks rows fails, whichever side it is."""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language import formula
from quality.domain.language.tree.nodes import Name
from quality.domain.slas import above


class RowCountCrossDcCheck:
    category = "consistency"
    keys = ("row_count",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        if len(dataset.data_centers) < 2:
            yield InapplicableCheck("row_count_cross_dc", "a copy in one data center only", mendable=False)
            return
        for center in dataset.data_centers:
            there = f"rows({formula(Name('this', center))})"
            yield Definition(
                key=f"row_count@{center}",
                title=f"Rows of {center}",
                category=self.category,
                check="row_count_cross_dc",
                expression=f"rows(this) / max(rows(this), {there}) {above(dataset.slas.consistency)}",
                sustain=dataset.slas.sustain,
                cadence=dataset.cadence,
                because=f"tier {dataset.tier}, copies in {', '.join(dataset.data_centers)}",
            )


ROW_COUNT_CROSS_DC = RowCountCrossDcCheck()
