"""What one request may take of the engines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from quality.domain.language.measures import Measure
from quality.engines.scans.parts import CannotRead
from quality.engines.user_sql.user_queries import QUERY_KIND

MIN_TIMEOUT = timedelta(seconds=1)
"""Databases take less than a millisecond for no timeout at all."""


class QueryBudget:
    """So long on the clock, and so many queries of people, which run by themselves each. None: as much as each scan may take."""

    def __init__(self, budget: timedelta | None = None, queries: int | None = None) -> None:
        self._begun = time.monotonic()
        self._budget = budget
        self._queries = queries

    @property
    def spent(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._begun)

    @property
    def is_bounded(self) -> bool:
        return self._budget is not None or self._queries is not None

    @property
    def is_exhausted(self) -> bool:
        return self._queries == 0 or (self._budget is not None and self.spent >= self._budget)

    def take_timeout(self, own: timedelta, measures: Sequence[Measure]) -> timedelta:
        """How long a scan may take that may take `own` by itself. Raises CannotRead where nothing is left."""
        if self._queries is not None:
            query_count = sum(measure.kind == QUERY_KIND for measure in measures)
            if query_count > self._queries:
                self._queries = 0
                raise CannotRead("these are more queries than one request may run")
            self._queries -= query_count
        if self._budget is None:
            return own
        left = self._budget - self.spent
        if left <= timedelta():
            raise CannotRead("the time of the request was over before it was read")
        return min(own, max(left, MIN_TIMEOUT))


UNLIMITED = QueryBudget()
