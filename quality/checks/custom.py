"""Tests that people write. None is generated; `definition_of` makes the definition of one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language import Expression, function_calls, understand
from quality.domain.language.functions.across_partitions import SEARCH_CADENCE


class CustomCheck:
    category = "others"
    keys = ()

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        yield from ()

    def definition_of(
        self, dataset: DatasetFacts, *, key: str, title: str, expression: str, because: str, gating: bool = True
    ) -> Definition:
        """The definition of what a person wrote. Raises ExpressionError with the place and a hint."""
        understood = understand(expression, dataset.scope)
        sustain = understood.parameters.sustain
        return Definition(
            key=key,
            title=title,
            category=self.category,
            check="custom",
            expression=expression,
            sustain=dataset.slas.sustain if sustain is None else sustain,
            cadence=_cadence(understood, dataset),
            because=because,
            gating=gating,
            least_rerun=SEARCH_CADENCE if _searches_table(understood) else timedelta(),
        )


def _searches_table(expression: Expression) -> bool:
    return any(call.function == "across_partitions" for call in function_calls(expression))


def _cadence(expression: Expression, dataset: DatasetFacts) -> timedelta | None:
    """A test of partitions has none, unless it looks at the whole: because it says so, or because freshness does."""
    given = expression.parameters.cadence
    if given is None and _searches_table(expression):
        return SEARCH_CADENCE
    whole = expression.parameters.partition == "whole" or any(
        call.function == "freshness" for call in function_calls(expression)
    )
    if given is not None or whole:
        return given or dataset.slas.cadence
    return dataset.cadence


CUSTOM = CustomCheck()
