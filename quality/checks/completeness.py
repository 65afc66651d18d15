"""Have all the rows arrived that upstream has, each once? More than there should be is a defect like fewer."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.slas import above, format_sla


class CompletenessCheck:
    category = "completeness"
    keys = ("completeness",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        if not dataset.scope.has_upstream or not dataset.one_to_one:
            yield InapplicableCheck("completeness", dataset.upstream_problem or "no upstream whose rows map one to one")
            return
        yield Definition(
            key="completeness",
            title="Rows of upstream",
            category=self.category,
            check="completeness",
            expression=_within(dataset.slas.completeness),
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, rows map one to one to upstream",
        )


def _within(sla: Fraction) -> str:
    """As far above 100% as below."""
    share = "rows(this) / rows(upstream)"
    lower = f"{share} {above(sla)}"
    return lower if sla == 1 else f"{lower} and {share} < {format_sla(2 - sla)}"


COMPLETENESS = CompletenessCheck()
