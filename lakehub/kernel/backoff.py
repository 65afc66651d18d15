"""When to try again: exponential growth up to a cap, with jitter that the caller draws; and whom to leave alone meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Backoff:
    """`min(cap, base * 2^attempt)`, spread by up to `jitter_share` of itself."""

    base: timedelta
    cap: timedelta
    jitter_share: float = 0.1

    def __post_init__(self) -> None:
        if self.base <= timedelta():
            raise ValueError(f"The first wait of a backoff must be longer than nothing, not {self.base}.")

    def delay(self, attempt: int, jitter: float) -> timedelta:
        """The wait after failed attempt number `attempt` (from 0); `jitter` is uniform in [0, 1)."""
        if attempt < 0:
            raise ValueError(f"Attempts are counted from 0, not {attempt}.")
        # Compared as a ratio: a doubled base may be longer than any timedelta.
        beyond = 2 ** min(attempt, 64) >= self.cap / self.base
        wait = self.cap if beyond else self.base * 2**attempt
        return wait * (1 + self.jitter_share * jitter)


@dataclass
class Pauses:
    """Of others that keep whoever asks them waiting: they are left alone for a while, so that the rest get their turn. Kept by the
    process: after a restart each silent one is asked once more. `slow_after_s`: what takes less is no silence."""

    backoff: Backoff
    slow_after_s: float
    _silent: dict[object, tuple[int, datetime]] = field(default_factory=dict)

    def until(self, name: object, now: datetime) -> datetime | None:
        """None where it may be asked; so it may where the clock was set back since."""
        _, until = self._silent.get(name, (0, now))
        return until if now < until <= now + 2 * self.backoff.cap else None

    def note(self, name: object, *, now: datetime, took_s: float, is_silent: bool) -> None:
        """How an attempt went that began at `now`."""
        if took_s < self.slow_after_s:
            self._silent.pop(name, None)
            return
        # One that answers late has the shortest pause each time, so that others get their turn.
        count = self._silent.get(name, (0, now))[0] + 1 if is_silent else 1
        # From the end of the attempt: its beginning is as long ago as the other was silent.
        self._silent[name] = (count, now + timedelta(seconds=took_s) + self.backoff.delay(count - 1, 0.0))


@dataclass
class Turn:
    """One call of a task that asks others: it has `budget_s` of time for them, and ends with the attempt that uses it up."""

    budget_s: float
    monotonic: Callable[[], float]
    spent_s: float = 0.0

    @property
    def has_time(self) -> bool:
        return self.spent_s < self.budget_s

    @contextmanager
    def spending(self) -> Iterator[Callable[[], float]]:
        """Yields how long it has been going on, in seconds."""
        began = self.monotonic()
        try:
            yield lambda: self.monotonic() - began
        finally:
            self.spent_s += self.monotonic() - began
