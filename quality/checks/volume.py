"""Does each partition that is expected hold rows? So a lost day is told with or without an upstream."""

from __future__ import annotations

from collections.abc import Iterator

from lakehub.kernel.partitions import Grain
from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck


class VolumeCheck:
    category = "completeness"
    keys = ("volume",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        if dataset.grain is Grain.NONE:
            yield InapplicableCheck("volume", "a table without partitions", mendable=False)
            return
        yield Definition(
            key="volume",
            title="Holds rows",
            category=self.category,
            check="volume",
            expression="rows(this) > 0",
            sustain=dataset.slas.sustain,
            cadence=None,
            because=f"tier {dataset.tier}, a partition by {dataset.grain}",
        )


VOLUME = VolumeCheck()
