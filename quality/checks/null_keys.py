"""Does each row have a primary key? A row without one is told apart by no test: duplicates and comparisons leave it out."""

from __future__ import annotations

from collections.abc import Iterator

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language import formula
from quality.domain.language.tree.nodes import Name
from quality.domain.slas import format_sla


class NullKeysCheck:
    category = "duplicates"
    keys = ("null_keys",)

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        """By the SLA for duplicates: a row without a key is as bad as one whose key another has."""
        if not dataset.scope.primary_key:
            yield InapplicableCheck("null_keys", "no primary key")
            return
        if not dataset.nullable_keys:
            yield InapplicableCheck("null_keys", "no column of the primary key can be null", mendable=False)
            return
        share = dataset.slas.duplicates
        limit = f"{'<' if share else '<='} {format_sla(share)}"
        shares = (
            f"null_keys({formula(Name('this', column=column))}) / rows(this) {limit}"
            for column in dataset.nullable_keys
        )
        yield Definition(
            key="null_keys",
            title="Rows without a key",
            category=self.category,
            check="null_keys",
            expression=" and ".join(shares),
            sustain=dataset.slas.sustain,
            cadence=dataset.cadence,
            because=f"tier {dataset.tier}, {', '.join(dataset.nullable_keys)} of the primary key may be null",
        )


NULL_KEYS = NullKeysCheck()
