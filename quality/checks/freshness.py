"""Is the data there in time? c >= floor_to_bucket(now - SLA), where everything before c is complete."""

from __future__ import annotations

from collections.abc import Iterator

from lakehub.kernel.calendar import Grain
from quality.domain.definitions import DatasetFacts, Definition, Skipped
from quality.domain.expression.amounts import text_literal
from quality.domain.tiers import shown


class Freshness:
    category = "freshness"
    keys = ("freshness",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | Skipped]:
        # Without buckets the data may be exactly as old as the SLA; with them the first incomplete one may not.
        comparison = "<=" if dataset.grain is Grain.NONE else "<"
        yield Definition(
            key="freshness",
            title="Complete in time",
            category=self.category,
            check="freshness",
            expression=f"freshness(this) {comparison} {shown(dataset.slas.freshness)}{self._produced(dataset)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.slas.cadence,
            because=f"tier {dataset.tier}, {self._rule(dataset)}",
        )

    def _produced(self, dataset: DatasetFacts) -> str:
        """Partitions that are not produced count as complete."""
        if dataset.produced is None:
            return ""
        given = {"calendar": dataset.produced.calendar, "holidays": dataset.produced.holidays}
        return " with " + ", ".join(f"{name}={text_literal(text)}" for name, text in given.items() if text)

    def _rule(self, dataset: DatasetFacts) -> str:
        if dataset.scope.has_upstream:
            return "99.9% of the rows upstream"
        return f"event time `{dataset.scope.event_time}`" if dataset.scope.event_time else "time of the latest commit"


FRESHNESS = Freshness()
