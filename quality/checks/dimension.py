"""Does it hold for each value of a column too: each airport, each carrier?"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.declarations import of_rules
from quality.domain.definitions import DatasetFacts, Definition, Skipped


class Dimension:
    category = "others"
    keys = ("rule:",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | Skipped]:
        yield from of_rules("dimension", dataset)


DIMENSION = Dimension()
