"""Does each primary key occur once?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.slas import format_sla


class DuplicatesCheck:
    category = "duplicates"
    keys = ("duplicates",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        if not dataset.scope.primary_key:
            yield InapplicableCheck("duplicates", "no primary key")
            return
        share = dataset.slas.duplicates
        yield Definition(
            key="duplicates",
            title="Primary key",
            category=self.category,
            check="duplicates",
            expression=f"duplicates(this) {'<' if share else '<='} {format_sla(share)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, primary key {', '.join(dataset.scope.primary_key)}",
        )


DUPLICATES = DuplicatesCheck()
