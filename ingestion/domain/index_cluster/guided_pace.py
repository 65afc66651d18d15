"""How fast a task sends requests while what it may send changes: it asks before each batch, and waits where it may send none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ingestion.domain.index_cluster.request_pace import RequestPace

NOTHING_ALLOWED_WAIT_S = 1.0
"""Until it is asked again."""


@dataclass
class GuidedPace:
    """`rate`: requests a second now; None: any; 0: none, until it is more. It may raise, to end the wait. `clock` and `sleep` as those of RequestPace."""

    rate: Callable[[], float | None]
    clock: Callable[[], float]
    sleep: Callable[[float], object]
    _pace: RequestPace | None = field(default=None, init=False)

    def take(self, wanted: int) -> int:
        """As RequestPace: how many of `wanted` may be sent."""
        while (rate := self.rate()) is not None and rate <= 0:
            self.sleep(NOTHING_ALLOWED_WAIT_S)
        if rate is None:
            return wanted
        if self._pace is None:
            self._pace = RequestPace(rate, self.clock, self.sleep)
        elif rate != self._pace.rate:
            self._pace.set_rate(rate)
        return self._pace.take(wanted)

    def back_off(self) -> None:
        if self._pace is not None:
            self._pace.back_off()
