"""Many measures, one query: bound before anything is read, bisected where it fails while reading.

So one bad measure never costs its neighbours, and the number of queries does not grow with the number of measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from quality.domain.expression.measures import Answer, Measure
from quality.domain.expression.values import Failed

Answers: TypeAlias = dict[Measure, Answer | Failed]


class Refused(Exception):
    """A query could not be bound or failed while it ran; `over`: there is no use in trying again (its time is up)."""

    def __init__(self, failed: Failed, *, over: bool = False) -> None:
        super().__init__(failed.cause)
        self.failed = failed
        self.over = over


@dataclass
class Fusion:
    """`bind` has the engine check a query of these measures without reading a row; `run` answers them.

    Both raise Refused. All measures are bound at once, which costs one look at the plan; where that is refused, each alone.
    """

    bind: Callable[[Sequence[Measure]], None]
    run: Callable[[Sequence[Measure]], Mapping[Measure, Answer]]
    scans: int = field(default=0, init=False)

    def answers(self, measures: Sequence[Measure]) -> Answers:
        refused = self._refusal(measures) if measures else None
        if refused is not None and refused.over:
            return dict.fromkeys(measures, refused.failed)
        alone = {one: self._refusal([one]) for one in measures} if refused is not None else {}
        bad: Answers = {one: why.failed for one, why in alone.items() if why is not None}
        return self._measured([one for one in measures if one not in bad]) | bad

    def _refusal(self, measures: Sequence[Measure]) -> Refused | None:
        try:
            self.bind(measures)
        except Refused as refused:
            return refused
        return None

    def _measured(self, measures: Sequence[Measure]) -> Answers:
        if not measures:
            return {}
        self.scans += 1
        try:
            return dict(self.run(measures))
        except Refused as refused:
            if len(measures) == 1 or refused.over:
                return dict.fromkeys(measures, refused.failed)
        half = len(measures) // 2
        return {**self._measured(measures[:half]), **self._measured(measures[half:])}
