"""The scores as people look at them: computed at their first time within five minutes, one after the other, and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TypeVar

from django.core.cache import cache

from incidents.scores.noise import Noisy, noisy_tests
from incidents.scores.reactions import Reactions, reactions_of
from incidents.scores.scope import ALL, Scope
from incidents.scores.scoring import Score, Scores, named, scores_of
from incidents.scores.trend import STEPS, Trend, trend_of
from incidents.scores.turns import turn
from lakehub.kernel.errors import Busy
from lakehub.kernel.interval import Interval

KEPT_FOR = timedelta(minutes=5)
T = TypeVar("T")


@dataclass(frozen=True)
class Overview:
    """What is told of the window beside its trend and its groups."""

    times: Reactions
    noisy: list[Noisy]


@dataclass(frozen=True)
class Groups:
    """A page of the groups; `number` is that of the nearest page that there is."""

    shown: list[Score]
    number: int
    count: int


def as_of(now: datetime) -> datetime:
    """Up to when a window without an end is looked at: the same for all who look within five minutes."""
    since = datetime.min.replace(tzinfo=now.tzinfo)
    return now - (now - since) % KEPT_FOR


def lately(days: int, *, now: datetime) -> Trend | None:
    """Of the days before now, for what is looked at all the time. None: others are at work on scores."""
    end = as_of(now)
    try:
        return Looked(Interval(end - timedelta(days=days), end), ALL, now=now).trend()
    except Busy:
        return None


class Looked:
    """At the scores of a window, which ended by now. Raises Busy."""

    def __init__(self, window: Interval, scope: Scope, *, now: datetime) -> None:
        self._window, self._scope, self._now = window, scope, now
        self._scores: Scores | None = None

    def trend(self) -> Trend:
        return self._kept("trend", lambda: trend_of(self._computed(), now=self._now))

    def overview(self) -> Overview:
        return self._kept("all", self._overview)

    def groups(self, by: str, page: int, size: int) -> Groups:
        return self._kept(f"{by} {page} {size}", lambda: self._groups(by, page, size))

    def _overview(self) -> Overview:
        return Overview(reactions_of(self._window, self._scope), noisy_tests(self._computed()))

    def _groups(self, by: str, page: int, size: int) -> Groups:
        found = self._computed().by(by)
        number = max(1, min(page, -(-len(found) // size)))
        shown = found[(number - 1) * size : number * size]
        return Groups(named(shown) if by == "test" else shown, number, len(found))

    def _computed(self) -> Scores:
        if self._scores is None:
            self._scores = scores_of(self._window, now=self._now, scope=self._scope, steps=STEPS)
        return self._scores

    def _kept(self, what: str, compute: Callable[[], T]) -> T:
        said = f"{self._window.start.isoformat()} {self._window.end.isoformat()} {self._scope.words} {what}"
        key = f"scores:{sha256(said.encode()).hexdigest()}"
        found: T | None = cache.get(key)
        if found is None:
            with turn():
                found = cache.get(key)  # whoever was at work may have made it
                if found is None:
                    found = compute()
                    cache.set(key, found, timeout=KEPT_FOR.total_seconds())
        return found
