"""Does it hold for each value of a column too: each airport, each carrier?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.generation.rule_definitions import definitions_of_rules


class DimensionCheck:
    category = "others"
    keys = ("rule:",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        yield from definitions_of_rules("dimension", dataset)


DIMENSION = DimensionCheck()
