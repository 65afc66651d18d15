"""Do the columns hold what people said that they hold?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.generation.rule_definitions import definitions_of_rules


class ColumnCheck:
    category = "others"
    keys = ("rule:",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        yield from definitions_of_rules("column", dataset)


COLUMN = ColumnCheck()
