"""How fast a task sends requests: a token bucket that waits before it sends, and slows down where the servers do not keep up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

SLOWER = 0.5
"""The factor of each step back."""
SLOWEST = 1 / 32
"""Of the rate: a server that is overloaded for long is still asked, or nobody would see that it has recovered."""
RECOVERY_PER_S = 1 / 30
"""Of the rate: from a standstill it is whole again after half a minute, which is how long HBase takes to move the regions of a server that died."""
AT_ONCE_S = 0.25
"""The requests of so many seconds are sent at once at most: smaller calls at a slower rate, so that servers are not asked in bursts."""
WORTH_A_CALL, WORTH_WAITING_S = 50, 1.0
"""But so many at a slow rate, or those of so many seconds, as another rate is heard of no sooner: each call also asks for a row that lies on one server, which would have most of many small calls."""
SAVED_UP_S = 2 * AT_ONCE_S
"""The requests of so many seconds are saved up at most: enough for a clock that wakes late, and too few for a burst of which a server sees much."""
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.001, 1.0
"""Of one sleep: no shorter than a clock can tell apart, and no longer than it may take the rate to recover."""


@dataclass
class RequestPace:
    """`rate`: requests a second on average. At most those of SAVED_UP_S are saved up, and one call's where that is more; a task that begins has none.

    `clock`: seconds of a clock that only grows; `sleep`: waits for seconds. Both are given, so that this runs in a task of Spark and in a test. For one thread.
    """

    rate: float
    clock: Callable[[], float]
    sleep: Callable[[float], object]
    _slowed: float = field(default=1.0, init=False)
    """What steps back have left of the rate."""
    _saved: float = field(default=0.0, init=False)
    _at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    @property
    def present_rate(self) -> float:
        """With the steps back, as of the last request."""
        return self.rate * self._slowed

    def take(self, wanted: int) -> int:
        """Waits until requests may be sent, and says how many: at least one, at most `wanted`, and at most those of a call.

        Whoever wants more sends these and asks again: a batch of any size keeps to the rate.
        """
        if wanted < 1:
            return 0
        while True:
            self._advance()
            granted = min(wanted, self._most_at_once())
            if self._saved >= granted:
                self._saved -= granted
                return granted
            wait = (granted - self._saved) / self.present_rate
            self.sleep(min(LONGEST_WAIT_S, max(SHORTEST_WAIT_S, wait)))

    def set_rate(self, rate: float) -> None:
        """From now on: a server came or went, or the job got another fraction. Raises ValueError where it is not above zero."""
        _check_rate(rate)
        if self._at is not None:
            self._advance()  # what has passed was at the rate of before
        self.rate = rate

    def back_off(self) -> None:
        """After a timeout, or where a region was too busy: half as fast, and nothing is saved up. It recovers by itself."""
        self._advance()
        self._slowed, self._saved = max(SLOWEST, self._slowed * SLOWER), 0.0

    def _most_at_once(self) -> int:
        slow = min(WORTH_A_CALL, int(self.present_rate * WORTH_WAITING_S))
        return max(1, slow, int(self.present_rate * AT_ONCE_S))

    def _most_saved(self) -> float:
        return max(float(self._most_at_once()), self.present_rate * SAVED_UP_S)

    def _advance(self) -> None:
        """What has passed counts at the rate at its beginning: never more than was allowed while it recovered."""
        now = self.clock()
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now
        self._saved = min(self._most_saved(), self._saved + elapsed * self.present_rate)
        self._slowed = min(1.0, self._slowed + elapsed * RECOVERY_PER_S)


def _check_rate(rate: float) -> None:
    if not 0 < rate < inf:
        raise ValueError(f"The rate is {rate} requests a second: it has to be above 0.")
