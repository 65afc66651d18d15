"""Receivers that keep whoever sends waiting: their other messages are put off together, so that those of others go out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from lakehub.kernel.backoff import Backoff

SLOW_AFTER_S = 3.0
BUDGET_S = 20.0
"""Of one call, spent on receivers; the next one goes on with the rest."""
PAUSES = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=5))
_at_work = Lock()


@contextmanager
def only_sender() -> Iterator[bool]:
    """Whether nobody else in this process sends; never waits, so that the other threads are free to make incidents."""
    is_alone = _at_work.acquire(blocking=False)
    try:
        yield is_alone
    finally:
        if is_alone:
            _at_work.release()


@dataclass
class Pauses:
    """Kept by the process: after a restart each silent receiver is tried once more."""

    failures: dict[tuple[str, str], tuple[int, datetime]] = field(default_factory=dict)

    def until(self, receiver: tuple[str, str], now: datetime) -> datetime | None:
        """None also where the clock was set back since."""
        _, until = self.failures.get(receiver, (0, now))
        return until if now < until <= now + 2 * PAUSES.cap else None

    def note(self, receiver: tuple[str, str], *, now: datetime, took_s: float, failed: bool) -> None:
        if not failed or took_s < SLOW_AFTER_S:
            self.failures.pop(receiver, None)
            return
        count = self.failures.get(receiver, (0, now))[0] + 1
        # From the end of the attempt: its beginning is as long ago as the receiver was silent.
        self.failures[receiver] = (count, now + timedelta(seconds=took_s) + PAUSES.delay(count - 1, 0.0))


_PAUSES = Pauses()


@dataclass
class Turn:
    """One call of a sender."""

    monotonic: Callable[[], float] = time.monotonic
    pauses: Pauses = field(default_factory=lambda: _PAUSES)
    spent_s: float = 0.0

    @property
    def has_time(self) -> bool:
        return self.spent_s < BUDGET_S

    @contextmanager
    def spending(self) -> Iterator[None]:
        began = self.monotonic()
        try:
            yield
        finally:
            self.spent_s += self.monotonic() - began
