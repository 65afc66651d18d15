"""Scores against a grid of minutes: of the platform, of every kind of group, and of each test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.scores.quality_levels import DataLevel, QueryLevel, data_level, length_by_step, monitored_pieces
from incidents.domain.scores.tally import (
    DatasetCategory,
    Durations,
    LivedSpan,
    MissedFailure,
    MonitoringPeriod,
    Pieces,
    ReportedFailure,
    Tally,
    Window,
    missed_failure,
    tally_by_category,
    tally_by_test,
    total_length,
)
from lakehub.kernel.interval import Interval, union

START = datetime(2026, 11, 16, tzinfo=UTC)
NOW = 24
CATEGORIES = ("duplicates", "freshness")
DATASETS = (1, 2)
KEYS = [(dataset, category) for dataset in DATASETS for category in CATEGORIES]
GRACE = {2: (5, 9)}
"""Minutes of a dataset that are left out."""


MINUTES = [START + timedelta(minutes=number) for number in range(2 * NOW)]


def minute(number: int) -> datetime:
    return MINUTES[number]


def between(start: int, end: int) -> Interval:
    return Interval(minute(start), minute(end))


def starting(first: int, lasting: int) -> st.SearchStrategy[Interval]:
    return st.builds(
        lambda start, length: between(start, start + length), st.integers(0, first), st.integers(1, lasting)
    )


@dataclass(frozen=True)
class Failing:
    """A span, as the tests draw it."""

    lived: LivedSpan
    data: Interval


data_ranges = starting(6, 3)
lives = st.tuples(st.integers(0, NOW - 1), st.none() | st.integers(0, 12))
windows = starting(NOW - 1, NOW).map(lambda window: Interval(window.start, min(window.end, minute(NOW))))
TESTS: dict[DatasetCategory, tuple[int, ...]] = {key: (2 * at, 2 * at + 1) for at, key in enumerate(KEYS)}


@st.composite
def detected(draw: st.DrawFn) -> list[Failing]:
    """Up to six incidents of up to three spans, each of one of the two tests of its category."""
    failing = []
    for number in range(draw(st.integers(0, 6))):
        key = draw(st.sampled_from(KEYS))
        false = draw(st.booleans())
        for _ in range(draw(st.integers(1, 3))):
            began, lasted = draw(lives)
            ended = None if lasted is None else minute(min(began + lasted, NOW))
            test = draw(st.sampled_from(TESTS[key]))
            failing.append(Failing(LivedSpan(number, *key, test, false, minute(began), ended), draw(data_ranges)))
    return failing


@st.composite
def user_reports(draw: st.DrawFn) -> list[ReportedFailure]:
    reports = []
    for number in range(100, 100 + draw(st.integers(0, 3))):
        began, lasted = draw(lives)
        fixed = None if lasted is None else minute(began + lasted)
        reports.append(ReportedFailure(number, *draw(st.sampled_from(KEYS)), draw(data_ranges), minute(began), fixed))
    return reports


def tallied(spans: list[Failing], reports: list[ReportedFailure], window: Interval) -> dict[DatasetCategory, Tally]:
    return tally_by_category([span.lived for span in spans], all_missed(spans, reports, window), counted(window))


def counted(window: Interval) -> Window:
    return Window(window, {dataset: [between(*minutes)] for dataset, minutes in GRACE.items()})


def all_missed(spans: list[Failing], reports: list[ReportedFailure], window: Interval) -> list[MissedFailure]:
    missed = []
    for report in reports:
        mine = [span for span in spans if span.lived.dataset == report.dataset]
        ranges = [(span.lived.incident, span.data) for span in mine]
        missed.append(missed_failure(report, [span.lived for span in mine], ranges, counted(window)))
    return missed


# By the book: each minute is asked


def counts(dataset: int, at: int, window: Interval) -> bool:
    grace = GRACE.get(dataset, (0, 0))
    return window.contains(minute(at)) and not grace[0] <= at < grace[1]


def is_alive(row: LivedSpan, at: int) -> bool:
    return row.began_at <= minute(at) and (row.ended_at is None or minute(at) < row.ended_at)


def is_missed(report: ReportedFailure, at: int, spans: Iterable[Failing]) -> bool:
    """Nothing that is real, and about some of the same data, lived then."""
    mine = [span for span in spans if span.lived.dataset == report.dataset and not span.lived.false_positive]
    covering = {span.lived.incident for span in mine if span.data.overlaps(report.data)}
    seen = any(is_alive(span.lived, at) for span in mine if span.lived.incident in covering)
    return report.is_alive(minute(at)) and not seen


def by_the_book(
    spans: list[Failing],
    reports: list[ReportedFailure],
    window: Interval,
    *,
    key: DatasetCategory,
    test: int | None = None,
) -> dict[str, set[int]]:
    minutes: dict[str, set[int]] = {"tp": set(), "fp": set(), "fn": set()}
    mine = [span.lived for span in spans if (span.lived.dataset, span.lived.category) == key]
    mine = [row for row in mine if test is None or row.test == test]
    for at in range(NOW):
        if not counts(key[0], at, window):
            continue
        alive = [row for row in mine if is_alive(row, at)]
        real = any(not row.false_positive for row in alive)
        sides = {
            "tp": real,
            "fp": bool(alive) and not real,
            "fn": any(is_missed(report, at, spans) for report in reports if (report.dataset, report.category) == key),
        }
        for kind, holds in sides.items():
            if holds:
                minutes[kind].add(at)
    return minutes


def minutes_of(pieces: Pieces) -> set[int]:
    return {at for at in range(NOW) for start, end in pieces if start <= minute(at) < end}


@given(detected(), user_reports(), windows)
def test_tallies_are_the_minutes_of_the_grid(
    spans: list[Failing], reports: list[ReportedFailure], window: Interval
) -> None:
    tallies = tallied(spans, reports, window)
    for key in KEYS:
        tally, book = tallies.get(key, Tally()), by_the_book(spans, reports, window, key=key)
        assert {"tp": minutes_of(tally.tp), "fp": minutes_of(tally.fp), "fn": minutes_of(tally.fn)} == book
        assert tally.durations.whole == timedelta(minutes=sum(map(len, book.values())))


TEAM_OF = {1: "flight-ops", 2: "weather-data"}
TIER_OF = {1: 0, 2: 0}
GROUPINGS: Mapping[str, Callable[[DatasetCategory], object]] = {
    "platform": lambda key: "",
    "team": lambda key: TEAM_OF[key[0]],
    "tier": lambda key: TIER_OF[key[0]],
    "category": lambda key: key[1],
    "dataset": lambda key: key[0],
}


@given(detected(), user_reports(), windows)
def test_each_grouping_is_the_sum_of_its_keys_on_the_grid(
    spans: list[Failing], reports: list[ReportedFailure], window: Interval
) -> None:
    tallies = tallied(spans, reports, window)
    books = {key: by_the_book(spans, reports, window, key=key) for key in KEYS}
    for grouping, of in GROUPINGS.items():
        for group in {of(key) for key in KEYS}:
            keys = [key for key in KEYS if of(key) == group]
            summed = sum((tallies[key].durations for key in keys if key in tallies), Durations())
            for kind in ("tp", "fp", "fn"):
                counted_there = sum(len(books[key][kind]) for key in keys)
                assert getattr(summed, kind) == timedelta(minutes=counted_there), (grouping, group, kind)


@given(detected(), user_reports(), windows)
def test_the_tally_of_a_test_is_the_minutes_of_its_own_units(
    spans: list[Failing], reports: list[ReportedFailure], window: Interval
) -> None:
    lasted = {key: [MonitoringPeriod(test, minute(3), minute(18)) for test in tests] for key, tests in TESTS.items()}
    tallies = tally_by_test([span.lived for span in spans], all_missed(spans, reports, window), lasted, counted(window))
    for key, tests in TESTS.items():
        for test in tests:
            tally, book = tallies.get(test, Tally()), by_the_book(spans, reports, window, key=key, test=test)
            assert minutes_of(tally.tp) == book["tp"]
            assert minutes_of(tally.fp) == book["fp"]
            assert minutes_of(tally.fn) == {at for at in book["fn"] if 3 <= at < 18}


@given(detected(), user_reports(), windows)
def test_the_incidents_behind_a_number_are_those_that_put_a_minute_into_it(
    spans: list[Failing], reports: list[ReportedFailure], window: Interval
) -> None:
    for key, tally in tallied(spans, reports, window).items():
        mine = [span.lived for span in spans if (span.lived.dataset, span.lived.category) == key]
        there = [row for row in mine if any(is_alive(row, at) and counts(key[0], at, window) for at in range(NOW))]
        assert tally.real == {row.incident for row in there if not row.false_positive}
        assert tally.false == {row.incident for row in there if row.false_positive}
        assert tally.missed == {
            report.id
            for report in reports
            if (report.dataset, report.category) == key
            and any(is_missed(report, at, spans) and counts(key[0], at, window) for at in range(NOW))
        }
        still = {row.incident for row in there if row.ended_at is None}
        assert tally.unsettled == still | {report.id for report in reports if report.fixed_at is None} & tally.missed


@given(detected(), user_reports(), windows, st.integers(1, NOW))
def test_windows_side_by_side_add_up(
    spans: list[Failing], reports: list[ReportedFailure], window: Interval, cut_after: int
) -> None:
    cut = window.start + timedelta(minutes=cut_after)
    if cut >= window.end:
        return
    monitored = minute(NOW // 3)
    parts = [tallied(spans, reports, Interval(*ends)) for ends in ((window.start, cut), (cut, window.end))]
    whole = tallied(spans, reports, window)
    summed = sum((tally.durations for part in parts for tally in part.values()), Durations())
    assert summed == sum((tally.durations for tally in whole.values()), Durations())
    left, right = Interval(window.start, cut), Interval(cut, window.end)
    levels = [
        data_level(part.values(), monitored_pieces(counted(half), 1, monitored))
        for part, half in zip(parts, (left, right), strict=True)
    ]
    of_whole = monitored_pieces(counted(window), 1, monitored)
    assert levels[0] + levels[1] == data_level(whole.values(), of_whole)


@given(detected(), user_reports(), windows, st.integers(0, NOW), st.sampled_from(DATASETS))
def test_the_incident_share_is_the_minutes_in_which_something_was_wrong(
    spans: list[Failing], reports: list[ReportedFailure], window: Interval, monitored: int, dataset: int
) -> None:
    """Of the minutes that count: grace is left out above and below the line."""
    mine = [tally for key, tally in tallied(spans, reports, window).items() if key[0] == dataset]
    level = data_level(mine, monitored_pieces(counted(window), dataset, minute(monitored)))
    books = [by_the_book(spans, reports, window, key=(dataset, category)) for category in CATEGORIES]
    wrong = {at for book in books for at in book["tp"] | book["fn"] if at >= monitored}
    counting = {at for at in range(monitored, NOW) if counts(dataset, at, window)}
    assert (level.incident, level.monitored) == (timedelta(minutes=len(wrong)), timedelta(minutes=len(counting)))


def test_grace_within_a_window_is_left_out_of_the_monitored_time() -> None:
    level = data_level([], monitored_pieces(counted(between(0, 12)), 2, minute(1)))
    assert level.monitored == timedelta(minutes=11 - (9 - 5))


def test_a_window_that_is_all_grace_has_no_score() -> None:
    window = counted(between(5, 9))
    assert data_level([], monitored_pieces(window, 2, minute(0))).quality is None
    assert data_level([], monitored_pieces(window, 1, minute(0))).quality == 1


@given(st.lists(starting(NOW, 9), max_size=5), st.lists(st.integers(0, NOW), min_size=2, max_size=6, unique=True))
def test_what_is_spread_over_steps_is_the_minutes_of_each(pieces: list[Interval], cuts: list[int]) -> None:
    disjoint, edges = union(pieces), sorted(cuts)
    lengths = length_by_step([(piece.start, piece.end) for piece in disjoint], [minute(at) for at in edges])
    for at, (start, end) in enumerate(pairwise(edges)):
        inside = [at for at in range(start, end) if any(piece.contains(minute(at)) for piece in disjoint)]
        assert lengths[at] == timedelta(minutes=len(inside))


def lived(start: int, end: int | None, *, incident: int = 1, false: bool = False) -> LivedSpan:
    return LivedSpan(incident, 1, "duplicates", 1, false, minute(start), None if end is None else minute(end))


def test_precision_and_recall_of_nothing_are_null() -> None:
    assert (Durations().precision, Durations().recall) == (None, None)
    assert DataLevel().quality is None
    assert QueryLevel().quality is None


def test_precision_and_recall_are_shares_of_time() -> None:
    durations = Durations(tp=timedelta(hours=3), fp=timedelta(hours=1), fn=timedelta(hours=2))
    assert (durations.precision, durations.recall) == (0.75, 0.6)


def test_the_share_and_the_quality_are_both_told() -> None:
    level = DataLevel(timedelta(hours=6), timedelta(hours=24))
    assert (level.incident_share, level.quality) == (0.25, 0.75)


def test_grace_periods_are_left_out() -> None:
    grace = Window(between(0, NOW), {1: [between(0, 14)]})
    (tally,) = tally_by_category([lived(0, None)], [], grace).values()
    assert total_length(tally.tp) == timedelta(minutes=10)


def test_a_false_positive_counts_only_where_nothing_real_lived() -> None:
    (tally,) = tally_by_category(
        [lived(0, 9), lived(5, 20, incident=2, false=True)], [], Window(between(0, NOW), {})
    ).values()
    assert (total_length(tally.tp), total_length(tally.fp)) == (timedelta(minutes=9), timedelta(minutes=11))


@pytest.mark.parametrize(("ended", "unsettled"), [(None, {1}), (9, set())])
def test_open_incidents_count_to_the_end_of_the_window_and_are_flagged(ended: int | None, unsettled: set[int]) -> None:
    (tally,) = tally_by_category([lived(0, ended)], [], Window(between(0, NOW), {})).values()
    assert tally.unsettled == unsettled
    assert total_length(tally.tp) == timedelta(minutes=ended or NOW)
