"""What to do about tests that cried wolf, and how long things took."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.domain.incident.resolution import FalsePositive
from incidents.domain.scores.noisy_tests import Advice, FalseAlarmCounts, advice, advice_reason
from incidents.domain.scores.response_times import ResponseTime, response_time

TEST, SLA, PLANNED = FalsePositive.WRONG_TEST, FalsePositive.WRONG_SLA, FalsePositive.PLANNED_CHANGE


@pytest.mark.parametrize(
    ("kinds", "real", "what"),
    [
        ({}, 3, None),
        ({TEST: 2}, 0, Advice.RETIRE),
        ({TEST: 1}, 0, Advice.TUNE),
        ({TEST: 5}, 1, Advice.TUNE),
        ({TEST: 5, SLA: 1}, 0, Advice.TUNE),
        ({SLA: 3, TEST: 1}, 0, Advice.CHANGE_SLA),
        ({PLANNED: 2}, 0, Advice.ANNOUNCE),
        ({PLANNED: 2, TEST: 2}, 0, Advice.TUNE),
    ],
)
def test_what_to_do_follows_from_the_kinds(kinds: dict[FalsePositive, int], real: int, what: Advice | None) -> None:
    assert advice(FalseAlarmCounts(kinds, real)) == what


@pytest.mark.parametrize(
    ("kinds", "real", "reason"),
    [
        ({TEST: 2, PLANNED: 1}, 1, "3 of its 4 incidents were false: 2 wrong test, 1 planned change"),
        ({SLA: 1}, 0, "Its only incident was false: 1 wrong SLA"),
        ({SLA: 1}, 2, "1 of its 3 incidents was false: 1 wrong SLA"),
    ],
)
def test_the_reason_has_the_numbers(kinds: dict[FalsePositive, int], real: int, reason: str) -> None:
    assert advice_reason(FalseAlarmCounts(kinds, real)) == reason


def minutes(*numbers: int) -> list[timedelta]:
    return [timedelta(minutes=number) for number in numbers]


@pytest.mark.parametrize(
    ("numbers", "mean", "median", "p90"),
    [([5], 5, 5, 5), ([1, 3], 2, 2, 3), (list(range(1, 11)), 5.5, 5.5, 9), (list(range(1, 12)), 6, 6, 10)],
)
def test_mean_median_and_ninetieth(numbers: list[int], mean: float, median: float, p90: float) -> None:
    times = response_time(reversed(minutes(*numbers)))
    assert [times.mean, times.median, times.p90] == [timedelta(minutes=number) for number in (mean, median, p90)]


def test_of_nothing_there_are_no_times() -> None:
    assert response_time([], waiting=2) == ResponseTime(n=0, waiting=2)
