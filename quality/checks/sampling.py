"""Have the very rows arrived that upstream has? A sample of the keys of an upstream outside the lake is looked up here.

Row counts need rows that map one to one, and agree where one row was lost and another doubled; this does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.definitions import DatasetFacts, Definition, Skipped
from quality.domain.expression import UPSTREAM
from quality.domain.tiers import shown


class Sampling:
    category = "completeness"
    keys = ("sample",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | Skipped]:
        why = _cannot(dataset)
        if why:
            yield Skipped("sampling", why, mendable=dataset.upstream_outside)
            return
        yield Definition(
            key="sample",
            title="A sample of upstream",
            category=self.category,
            check="sampling",
            expression=f"sampled(this, upstream) > {shown(dataset.slas.completeness)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, upstream outside the lake, primary key {', '.join(dataset.scope.primary_key)}",
        )


def _cannot(dataset: DatasetFacts) -> str:
    if not dataset.scope.has_upstream or not dataset.upstream_outside:
        return "no upstream outside the lake"
    key, there = dataset.scope.primary_key, dataset.scope.tables[UPSTREAM]
    if dataset.no_key:
        return dataset.no_key
    lacking = [name for name in key if there is not None and name not in there]
    return f"upstream lacks {', '.join(lacking)} of the primary key" if lacking else ""


SAMPLING = Sampling()
