"""Reading no faster than a source may be read: a token bucket."""

from __future__ import annotations

from dataclasses import dataclass

MAX_PIECE_S = 10
"""So many seconds a piece of a paced reading takes at most: the source is not to wait for longer with its answer half read, and a reading ends between two of them."""


def piece_rows(wanted: int, rows_per_s: float | None) -> int:
    """How many rows to read at a time, where they may be read so fast; None: as fast as can be."""
    return wanted if rows_per_s is None else min(wanted, max(1, int(rows_per_s * MAX_PIECE_S)))


@dataclass
class Pace:
    """`rows_per_s`: on average, from the first rows on. What was not read in a pause may be caught up for one second's rows."""

    rows_per_s: float
    _tokens: float = 0.0
    _at: float | None = None

    def delay(self, rows: int, *, now: float) -> float:
        """Seconds to wait after `rows` were read. `now`: seconds of a clock that only grows."""
        elapsed = 0.0 if self._at is None else now - self._at
        self._at = now
        self._tokens = min(self.rows_per_s, self._tokens + elapsed * self.rows_per_s) - rows
        return max(0.0, -self._tokens / self.rows_per_s)
