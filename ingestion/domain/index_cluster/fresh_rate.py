"""A rate that another process writes down again and again, for whoever sends by it: what is old holds no more, as the writer may have been told less, or have died."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

EVERY_S = 2.0
"""It is written, and read."""
HOLDS_S = 10.0
"""After the last news: less than a renewal of what a job is allowed, by when others may have it."""


def written_rate(rate: float, number: int) -> str:
    """`number`: another one each time."""
    return f"{rate!r} {number}\n"


def read_rate(text: str) -> float | None:
    """None: it is just being written, or is no rate."""
    words = text.split()
    try:
        rate = float(words[0]) if text.endswith("\n") and len(words) == 2 else nan
    except ValueError:
        return None
    return rate if 0 <= rate < inf else None


class FreshRate:
    """`read`: the text as it is now, empty where there is none."""

    def __init__(self, read: Callable[[], str], clock: Callable[[], float]) -> None:
        self._read, self._clock = read, clock
        self._text, self._rate = "", 0.0
        self._looked_at = self._news_at = float("-inf")

    def __call__(self) -> float | None:
        """0: what was read is old. None: none was ever there."""
        now = self._clock()
        if now >= self._looked_at + EVERY_S:
            self._looked_at = now
            self._take(self._read(), now)
        if not self._text:
            return None
        return self._rate if now < self._news_at + HOLDS_S else 0.0

    def _take(self, text: str, now: float) -> None:
        """What is no rate is no news."""
        rate = read_rate(text)
        if rate is not None and text != self._text:
            self._text, self._rate, self._news_at = text, rate, now
