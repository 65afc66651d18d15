"""The baseline: which past values are comparable, what a spread is, and what does not count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, floor_to_bucket, partition_at
from quality.domain.statistics.anomaly import (
    MAX_SCORE,
    MIN_POINTS,
    Baseline,
    Point,
    TooFewPoints,
    baseline_facts,
    compute_baseline,
    window_shifts,
)
from quality.domain.value_types import ValueType

NEW_YORK = ZoneInfo("America/New_York")
TUESDAY = datetime(2026, 11, 17, tzinfo=NEW_YORK).astimezone(UTC)
"""Two weeks after the clocks went back."""


def day(number: int) -> datetime:
    """The start of the day so many days before that Tuesday."""
    return floor_to_bucket(TUESDAY - timedelta(days=number) + timedelta(hours=12), Grain.DAY, NEW_YORK)


def weeks(*values: float | None) -> list[Point]:
    """Values of the Tuesdays before, the latest first."""
    return [Point(day(7 * number), value) for number, value in enumerate(values, start=1)]


def of(value: float, past: list[Point], **given: object) -> Baseline:
    baseline = compute_baseline(value, TUESDAY, past, grain=Grain.DAY, zone=NEW_YORK, **given)  # type: ignore[arg-type]  # named as in the signature
    assert isinstance(baseline, Baseline)
    return baseline


def test_the_score_is_the_distance_from_the_median_in_robust_spreads() -> None:
    baseline = of(160, weeks(100, 110, 90, 105, 95))
    assert (baseline.center, baseline.spread) == (100, pytest.approx(5 * 1.4826))
    assert baseline.score == pytest.approx(60 / (5 * 1.4826))
    assert baseline.band(2) == pytest.approx((100 - 14.826, 100 + 14.826))


def test_only_the_same_weekdays_are_compared_where_there_are_enough() -> None:
    other_days = [Point(day(number), 7.0) for number in range(1, 60) if number % 7]
    baseline = of(100, [*other_days, *weeks(100, 101, 99, 100)])
    assert (baseline.center, baseline.cohort, len(baseline.points)) == (100, "Tuesdays", 4)


def test_with_few_of_them_the_workdays_are_and_then_all_days() -> None:
    assert of(1, [Point(day(number), 1.0) for number in range(1, 12)]).cohort == "workdays"
    sunday = day(2)
    baseline = compute_baseline(1, sunday, [Point(day(n), 1.0) for n in range(3, 10)], grain=Grain.DAY, zone=NEW_YORK)
    assert isinstance(baseline, Baseline)
    assert baseline.cohort == "all days"


def test_hours_are_compared_by_their_place_on_the_clock() -> None:
    at = TUESDAY + timedelta(hours=9)
    past = [Point(day(number) + timedelta(hours=9), float(number)) for number in range(1, 57)]
    baseline = compute_baseline(1, at, past, grain=Grain.HOUR, zone=NEW_YORK)
    assert isinstance(baseline, Baseline)
    assert baseline.cohort == "Tuesdays at 09:00"
    # Before the clocks went back the same hour here was another one of UTC.
    assert [point.value for point in baseline.points] == [56, 49, 42, 35, 28, 21, 14, 7]


def test_months_are_compared_with_the_same_month_and_then_by_their_place_in_the_quarter() -> None:
    november = floor_to_bucket(TUESDAY, Grain.MONTH, NEW_YORK)
    past = [Point(_month(november, number), 30.0 if number % 3 else 90.0) for number in range(1, 25)]
    baseline = compute_baseline(90, november, past, grain=Grain.MONTH, zone=NEW_YORK)
    assert isinstance(baseline, Baseline)
    assert (baseline.center, baseline.cohort) == (90, "months in the place of November in the quarter")


def _month(start: datetime, number: int) -> datetime:
    for _ in range(number):
        start = floor_to_bucket(start - timedelta(days=3), Grain.MONTH, NEW_YORK)
    return start


def test_the_shifts_of_a_window_meet_each_partition_once() -> None:
    assert window_shifts(timedelta(weeks=8)) == tuple(-timedelta(days=number) for number in range(1, 57))
    november = floor_to_bucket(TUESDAY, Grain.MONTH, NEW_YORK)
    met = [
        partition_at(november + shift, Grain.MONTH, NEW_YORK).start
        for shift in window_shifts(timedelta(days=1096), Grain.MONTH)
    ]
    assert met == [_month(november, number) for number in range(1, 37)]


def test_what_was_part_of_an_incident_is_left_out_and_says_so() -> None:
    bad = Interval(day(14), day(13))
    baseline = of(100, weeks(100, 3, 100, 101, 99), excluded=[bad])
    assert 3 not in [point.value for point in baseline.points]
    assert [(point.value, point.reason) for point in baseline.excluded] == [(3, "part of an incident")]


def test_what_could_not_be_measured_is_left_out_and_says_why() -> None:
    past = [*weeks(100, 100, 101, 99), Point(day(35), None, "there are no rows"), Point(day(42), None)]
    assert [point.reason for point in of(100, past).excluded] == ["nothing was measured", "there are no rows"]


def test_the_point_under_test_and_what_follows_do_not_count() -> None:
    past = [*weeks(100, 101, 99, 100), Point(TUESDAY, 7.0), Point(TUESDAY + timedelta(days=7), 7.0)]
    assert len(of(7, past).points) == 4


def test_fewer_than_four_points_are_no_baseline() -> None:
    too_few = compute_baseline(1, TUESDAY, weeks(1, 2, 3, None), grain=Grain.DAY, zone=NEW_YORK)
    assert isinstance(too_few, TooFewPoints)
    assert str(too_few) == "3 past values are known, 1 were left out; 4 are needed"


def test_a_series_that_never_moved_may_move_a_little() -> None:
    assert of(1005, weeks(1000, 1000, 1000, 1000)).score == pytest.approx(0.5)
    assert of(1, weeks(0, 0, 0, 0), kind=ValueType.COUNT).score == 1
    assert of(0.0001, weeks(0, 0, 0, 0), kind=ValueType.RATIO).score == pytest.approx(0.1)
    assert of(0.1, weeks(0, 0, 0, 0)).score == MAX_SCORE
    assert of(0, weeks(0, 0, 0, 0)).score == 0


def test_it_explains_the_band_it_used() -> None:
    past = [*weeks(100, 110, 90, 105, 95), Point(day(42), 3.0, "part of an incident")]
    assert baseline_facts(of(160, past)) == {
        "usual": "100, from 70.348 to 129.652 within 4 spreads of 7.413",
        "compared with": "the last 5 Tuesdays",
        "left out": "2026-10-06 04:00 UTC: part of an incident",
    }


@given(
    ordinary=st.lists(st.floats(90, 110), min_size=7, max_size=12),
    wild=st.lists(st.floats(-1e9, 1e9), max_size=3),
    value=st.floats(0, 1000),
)
def test_a_minority_of_wild_values_hides_nothing(ordinary: list[float], wild: list[float], value: float) -> None:
    """With half of the points and more in the usual band, what is far from it stands out, and what is in it does not."""
    past = [Point(day(7 * number), past_value) for number, past_value in enumerate([*ordinary, *wild], start=1)]
    baseline = of(value, past)
    assert 90 <= baseline.center <= 110
    assert baseline.spread <= 1.4826 * 20
    if value > 300:
        assert baseline.score > 4


@given(st.lists(st.tuples(st.integers(1, 60), st.floats(-1e6, 1e6)), max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_the_points_is_nothing(points: list[tuple[int, float]], chance: object) -> None:
    past = list({number: Point(day(number), value) for number, value in points}.values())
    first = compute_baseline(5, TUESDAY, past, grain=Grain.DAY, zone=NEW_YORK)
    again = compute_baseline(5, TUESDAY, past[::-1], grain=Grain.DAY, zone=NEW_YORK)
    assert first == again
    assert isinstance(first, TooFewPoints) == (len(past) < MIN_POINTS)
