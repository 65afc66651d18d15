"""How fast a job reads its source: no faster than its feed and its connection allow, whether rows are handed over or only looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ingestion.domain.pace import Pace
from ingestion.sources import EventBatch

_NAP_S = 5.0
"""Whoever waits for longer looks at the deadline in between."""


@dataclass
class ReadingPace:
    """Told of each piece that was read of the source, it waits as long as the source is to be spared.

    `alive` raises when the job's time is up. `pace`: of the feed; None: as fast as can be. `pay`: called with how many rows more were read, it waits
    until they are paid for; None: the connection has no limit.
    """

    alive: Callable[[], None]
    pace: Pace | None = None
    pay: Callable[[int], None] | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _read: int = field(default=0, init=False)
    """By the words of the source."""
    _handed_over: int = field(default=0, init=False)
    _counted: int = field(default=0, init=False)

    def after_piece(self, rows: int) -> None:
        """`rows`: of the piece. What `alive` raises."""
        self._read += rows
        self._spare_source()

    def batches(self, batches: Iterator[EventBatch]) -> Iterator[EventBatch]:
        """The same. A source that does not tell what it reads is spared for what it hands over."""
        for batch in batches:
            yield batch
            self._handed_over += 0 if batch.is_landed else batch.rows
            self._spare_source()

    def _spare_source(self) -> None:
        self.alive()
        rows = max(self._read, self._handed_over) - self._counted
        if rows <= 0:
            return
        self._counted += rows
        if self.pace is not None:
            self._wait(self.pace.delay(rows, now=self.clock()))
        if self.pay is not None:
            self.pay(rows)

    def _wait(self, seconds: float) -> None:
        while seconds > 0:
            self.alive()
            self.sleep(min(seconds, _NAP_S))
            seconds -= _NAP_S
