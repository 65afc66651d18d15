"""Does each primary key occur once?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.definitions import DatasetFacts, Definition, Skipped
from quality.domain.tiers import shown


class Duplicates:
    category = "duplicates"
    keys = ("duplicates",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | Skipped]:
        if not dataset.scope.primary_key:
            yield Skipped("duplicates", "no primary key")
            return
        share = dataset.slas.duplicates
        yield Definition(
            key="duplicates",
            title="Primary key",
            category=self.category,
            check="duplicates",
            expression=f"duplicates(this) {'<' if share else '<='} {shown(share)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, primary key {', '.join(dataset.scope.primary_key)}",
        )


DUPLICATES = Duplicates()
