"""How long after their ends partitions had come: all that the tests of a copy ask for is read from our database at once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.calendar import shifted
from lakehub.kernel.interval import Interval
from quality.arrivals import arrivals
from quality.domain.backtest import complete_at
from quality.domain.expression.measures import Answer, Ask
from quality.models import Unit


class Delays:
    """Of each unit the partitions that its test looks at; a deviation looks at more than a thousand."""

    def __init__(self, copy: DatasetCopy, asked: Iterable[tuple[Unit, Ask]]) -> None:
        looked_at = (_partition(unit, ask) for unit, ask in asked if ask.measure.kind == "delay")
        partitions = sorted({one for one in looked_at if one is not None}, key=lambda one: one.start)
        self._came = arrivals(copy, partitions)

    def answer(self, unit: Unit, ask: Ask, now: datetime) -> Answer:
        """In seconds; what came to an earlier partition later than the tested one is old now does not count."""
        partition = _partition(unit, ask)
        if partition is None:
            return None
        until = partition.end + (now - unit.end)
        came = [one for one in self._came[partition] if one.at <= until]
        complete = complete_at(came, sum(one.rows for one in came))
        return None if complete is None else max(0.0, (complete - partition.end).total_seconds())


def _partition(unit: Unit, ask: Ask) -> Interval | None:
    dataset = unit.copy.dataset
    try:
        return shifted(Interval(unit.start, unit.end), ask.table.shift, dataset.partition_grain, dataset.zone)
    except ValueError:
        return None
