"""How long changes took from the source to the lake: a sum that adds up, and quantiles that are never told shorter than they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.lag import LagCounts, spread_of_times

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
LAGS = st.lists(st.integers(0, 10**6), min_size=1, max_size=60)


def counts_of(lags: list[int]) -> LagCounts:
    return LagCounts.of_commit(spread_of_times(NOW - timedelta(seconds=lag) for lag in lags), len(lags), NOW)


def seconds(counts: LagCounts, share: float) -> float:
    quantile = counts.quantile(share)
    assert quantile is not None
    return quantile.total_seconds()


def test_of_no_event_nothing_is_known() -> None:
    assert spread_of_times([]) == []
    assert LagCounts().quantile(0.5) is None
    assert (LagCounts() + LagCounts()).events == 0


@pytest.mark.parametrize(("lag", "told_as"), [(0, 1), (-40, 1), (1, 1), (2, 2), (60, 64), (3600, 4096)])
def test_a_lag_is_told_a_fifth_too_long_at_most(lag: int, told_as: float) -> None:
    assert seconds(counts_of([lag]), 0.5) == pytest.approx(told_as, rel=0.001)


def test_a_few_late_events_are_in_the_95th_and_not_in_the_middle() -> None:
    counts = counts_of([2] * 900 + [4000] * 100)
    assert (seconds(counts, 0.5), seconds(counts, 0.95)) == (2, 4096)


@given(LAGS)
def test_no_event_is_lost_and_none_is_told_shorter_than_it_was(lags: list[int]) -> None:
    counts = counts_of(lags)
    assert counts.events == len(lags)
    longest = seconds(counts, 1.0)
    assert max(lags) <= longest <= max(1.0, max(lags) * 1.19)
    assert seconds(counts, 0.5) >= sorted(lags)[(len(lags) - 1) // 2]


@given(LAGS, LAGS, LAGS)
def test_hours_add_up_in_any_order(first: list[int], second: list[int], third: list[int]) -> None:
    a, b, c = map(counts_of, (first, second, third))
    assert (a + b) + c == a + (b + c) == (c + b) + a
    assert LagCounts.from_json((a + b).to_json()) == a + b
