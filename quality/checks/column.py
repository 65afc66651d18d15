"""Do the columns hold what people said that they hold?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.declarations import of_rules
from quality.domain.definitions import DatasetFacts, Definition, Skipped


class Column:
    category = "others"
    keys = ("rule:",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | Skipped]:
        yield from of_rules("column", dataset)


COLUMN = Column()
