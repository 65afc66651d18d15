"""Does a key of one partition come again in another one? The whole table is searched, once a day at most."""

from __future__ import annotations

from collections.abc import Iterator

from lakehub.kernel.partitions import Grain
from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language.functions.across_partitions import SEARCH_CADENCE

TIMEOUT = "15m"


class RepeatedKeysCheck:
    category = "duplicates"
    keys = ("repeated_keys",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        lacking, mendable = _why_not(dataset)
        if lacking:
            yield InapplicableCheck("repeated_keys", lacking, mendable=mendable)
            return
        yield Definition(
            key="repeated_keys",
            title="Keys in several partitions",
            category=self.category,
            check="repeated_keys",
            expression=f"across_partitions(this) == 0 with partition=whole, timeout={TIMEOUT}",
            sustain=dataset.slas.sustain,
            cadence=max(dataset.slas.cadence, SEARCH_CADENCE),
            because=f"tier {dataset.tier}, primary key {', '.join(dataset.scope.primary_key)}, partition {', '.join(dataset.partition_columns)}",
            gating=False,
            least_rerun=SEARCH_CADENCE,
        )


def _why_not(dataset: DatasetFacts) -> tuple[str, bool]:
    """Why there is no such test, and whether its owners could change that; empty where there is one."""
    if dataset.grain is Grain.NONE:
        return "a table without partitions: duplicates look at all of it", False
    if dataset.why_no_key:
        return dataset.why_no_key, True
    if set(dataset.partition_columns) <= set(dataset.scope.primary_key):
        return "the primary key holds the partition, so none is in two of them", False
    if dataset.unique_within_partition:
        return "keys are unique within a partition (override unique_within)", False
    return "", False


REPEATED_KEYS = RepeatedKeysCheck()
