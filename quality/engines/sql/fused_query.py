"""Many measures, one query: bound before anything is read, bisected where it fails while reading.

So one bad measure never costs its neighbours, and the number of queries does not grow with the number of measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from quality.domain.language.measures import Answer, Measure
from quality.domain.language.values import Failed

MeasureAnswers: TypeAlias = dict[Measure, Answer | Failed]


class QueryRefused(Exception):
    """A query could not be bound or failed while it ran; `is_final`: there is no use in trying again (its time is up)."""

    def __init__(self, failed: Failed, *, is_final: bool = False) -> None:
        super().__init__(failed.cause)
        self.failed = failed
        self.is_final = is_final


@dataclass
class FusedQuery:
    """`bind` has the engine check a query of these measures without reading a row; `run` answers them.

    Both raise QueryRefused. All measures are bound at once, which costs one look at the plan; where that is refused, each alone.
    """

    bind: Callable[[Sequence[Measure]], None]
    run: Callable[[Sequence[Measure]], Mapping[Measure, Answer]]
    scan_count: int = field(default=0, init=False)

    def answers(self, measures: Sequence[Measure]) -> MeasureAnswers:
        refused = self._refusal(measures) if measures else None
        if refused is not None and refused.is_final:
            return dict.fromkeys(measures, refused.failed)
        alone = {measure: self._refusal([measure]) for measure in measures} if refused is not None else {}
        bad: MeasureAnswers = {measure: why.failed for measure, why in alone.items() if why is not None}
        return self._measured([measure for measure in measures if measure not in bad]) | bad

    def _refusal(self, measures: Sequence[Measure]) -> QueryRefused | None:
        try:
            self.bind(measures)
        except QueryRefused as refused:
            return refused
        return None

    def _measured(self, measures: Sequence[Measure]) -> MeasureAnswers:
        if not measures:
            return {}
        self.scan_count += 1
        try:
            return dict(self.run(measures))
        except QueryRefused as refused:
            if len(measures) == 1 or refused.is_final:
                return dict.fromkeys(measures, refused.failed)
        half = len(measures) // 2
        return {**self._measured(measures[:half]), **self._measured(measures[half:])}
