"""Have the very rows arrived that upstream has? A sample of the keys of an upstream outside the lake is looked up here.

Row counts need rows that map one to one, and agree where one row was lost and another doubled; this does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language import UPSTREAM
from quality.domain.slas import above


class SamplingCheck:
    category = "completeness"
    keys = ("sample",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        why = _why_not(dataset)
        if why:
            yield InapplicableCheck("sampling", why, mendable=dataset.upstream_is_external)
            return
        yield Definition(
            key="sample",
            title="A sample of upstream",
            category=self.category,
            check="sampling",
            expression=f"sampled(this, upstream, {dataset.slas.sampled}) {above(dataset.slas.completeness)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, upstream outside the lake, primary key {', '.join(dataset.scope.primary_key)}",
        )


def _why_not(dataset: DatasetFacts) -> str:
    if not dataset.scope.has_upstream or not dataset.upstream_is_external:
        return "no upstream outside the lake"
    key, there = dataset.scope.primary_key, dataset.scope.tables[UPSTREAM]
    if dataset.why_no_key:
        return dataset.why_no_key
    lacking = [name for name in key if there is not None and name not in there]
    return f"upstream lacks {', '.join(lacking)} of the primary key" if lacking else ""


SAMPLING = SamplingCheck()
