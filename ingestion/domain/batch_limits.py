"""How much a source hands over at once: rows, bytes and time, so that a commit stays small however much there is to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BatchLimits:
    """None: no limit. A reading ends at the first place where it can be continued once one of them is reached, so it may exceed them a little.

    `bytes`: of the values in memory, estimated. `seconds`: from the first look at the source.
    """

    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "bytes", "seconds"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"The limit `{name}` of a batch is {value}: it is above 0, or left out.")

    @property
    def is_unlimited(self) -> bool:
        return self == UNLIMITED


UNLIMITED = BatchLimits()


@dataclass
class BatchMeter:
    """What one reading has handed over. `clock`: seconds that only grow."""

    limits: BatchLimits
    clock: Callable[[], float]
    rows: int = 0
    bytes: int = 0
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def add(self, rows: int, bytes_: int) -> None:
        self.rows += rows
        self.bytes += bytes_

    def is_full(self) -> bool:
        return any(value >= limit for value, limit in self._reached())

    def rows_that_fit(self) -> int | None:
        """How many rows more, if they are like those so far. None: as many as there are."""
        rooms = [self.rows * (limit - value) / value for value, limit in self._reached() if value > 0]
        return None if not rooms else max(0, int(min(rooms)))

    def _reached(self) -> list[tuple[float, float]]:
        """What was handed over, and the limit of it."""
        values = (self.rows, self.bytes, self.clock() - self._began)
        limits = (self.limits.rows, self.limits.bytes, self.limits.seconds)
        return [(value, limit) for value, limit in zip(values, limits, strict=True) if limit is not None]
