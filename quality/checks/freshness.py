"""Is the data there in time? c >= floor_to_bucket(now - SLA), where c is the front: the end of the last complete bucket."""

from __future__ import annotations

from collections.abc import Iterator

from lakehub.kernel.partitions import Grain
from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language.tree.literals import quote_text
from quality.domain.slas import format_sla


class FreshnessCheck:
    category = "freshness"
    keys = ("freshness",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        # Without buckets the data may be exactly as old as the SLA; with them the first incomplete one may not.
        comparison = "<=" if dataset.grain is Grain.NONE else "<"
        yield Definition(
            key="freshness",
            title="Complete in time",
            category=self.category,
            check="freshness",
            expression=f"freshness(this) {comparison} {format_sla(dataset.slas.freshness)}{self._calendar_parameters(dataset)}",
            sustain=dataset.slas.sustain,
            cadence=dataset.slas.cadence,
            because=f"tier {dataset.tier}, {self._rule_words(dataset)}",
        )

    def _calendar_parameters(self, dataset: DatasetFacts) -> str:
        """Partitions that are not produced count as complete."""
        if dataset.production_calendar is None:
            return ""
        given = {"calendar": dataset.production_calendar.calendar, "holidays": dataset.production_calendar.holidays}
        return " with " + ", ".join(f"{name}={quote_text(text)}" for name, text in given.items() if text)

    def _rule_words(self, dataset: DatasetFacts) -> str:
        if dataset.scope.has_upstream:
            return "99.9% of the rows upstream"
        if dataset.scope.event_time:
            return f"event time `{dataset.scope.event_time}`"
        return "time of the latest commit" if dataset.grain is Grain.NONE else "latest partition that holds rows"


FRESHNESS = FreshnessCheck()
