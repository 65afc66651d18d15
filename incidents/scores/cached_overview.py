"""The scores as people look at them: computed at their first time within five minutes, one after the other, and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TypeVar

from django.core.cache import cache

from incidents.scores.noisy_tests import NoisyTest, noisy_tests
from incidents.scores.response_times import ResponseTimes, response_times_of
from incidents.scores.scope import ALL_DATASETS, Scope
from incidents.scores.scoring import Score, Scores, scores_of, with_test_names
from incidents.scores.single_flight import exclusive_computation
from incidents.scores.trend import STEPS, Trend, trend_of
from lakehub.kernel.errors import Busy
from lakehub.kernel.interval import Interval

CACHE_DURATION = timedelta(minutes=5)
T = TypeVar("T")


@dataclass(frozen=True)
class ScoreOverview:
    """What is told of the window beside its trend and its groups."""

    times: ResponseTimes
    noisy: list[NoisyTest]


@dataclass(frozen=True)
class GroupPage:
    """A page of the groups; `number` is that of the nearest page that there is."""

    shown: list[Score]
    number: int
    count: int


def rounded_now(now: datetime) -> datetime:
    """Up to when a window without an end is looked at: the same for all who look within five minutes."""
    since = datetime.min.replace(tzinfo=now.tzinfo)
    return now - (now - since) % CACHE_DURATION


def recent_trend(days: int, *, now: datetime) -> Trend | None:
    """Of the days before now, for what is looked at all the time. None: others are at work on scores."""
    end = rounded_now(now)
    try:
        return CachedScores(Interval(end - timedelta(days=days), end), ALL_DATASETS, now=now).trend()
    except Busy:
        return None


class CachedScores:
    """At the scores of a window, which ended by now. Raises Busy."""

    def __init__(self, window: Interval, scope: Scope, *, now: datetime) -> None:
        self._window, self._scope, self._now = window, scope, now
        self._scores: Scores | None = None

    def trend(self) -> Trend:
        return self._cached("trend", lambda: trend_of(self._computed(), now=self._now))

    def overview(self) -> ScoreOverview:
        return self._cached("all", self._overview)

    def groups(self, by: str, page: int, size: int) -> GroupPage:
        return self._cached(f"{by} {page} {size}", lambda: self._groups(by, page, size))

    def _overview(self) -> ScoreOverview:
        return ScoreOverview(response_times_of(self._window, self._scope), noisy_tests(self._computed()))

    def _groups(self, by: str, page: int, size: int) -> GroupPage:
        groups = self._computed().by(by)
        number = max(1, min(page, -(-len(groups) // size)))
        shown = groups[(number - 1) * size : number * size]
        return GroupPage(with_test_names(shown) if by == "test" else shown, number, len(groups))

    def _computed(self) -> Scores:
        if self._scores is None:
            self._scores = scores_of(self._window, now=self._now, scope=self._scope, steps=STEPS)
        return self._scores

    def _cached(self, name: str, compute: Callable[[], T]) -> T:
        identity = f"{self._window.start.isoformat()} {self._window.end.isoformat()} {self._scope.query_params} {name}"
        key = f"scores:{sha256(identity.encode()).hexdigest()}"
        value: T | None = cache.get(key)
        if value is None:
            with exclusive_computation():
                value = cache.get(key)  # whoever was at work may have made it
                if value is None:
                    value = compute()
                    cache.set(key, value, timeout=CACHE_DURATION.total_seconds())
        return value
