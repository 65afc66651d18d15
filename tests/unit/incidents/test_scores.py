"""Scores against a grid of minutes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.scores import (
    DataLevel,
    Detected,
    Durations,
    QueryLevel,
    Question,
    Reported,
    data_level,
    durations,
    query_level,
    tally,
)
from incidents.domain.spans import Span
from lakehub.kernel.interval import Interval

START = datetime(2026, 11, 16, tzinfo=UTC)
NOW = 40
CATEGORIES = ("duplicates", "freshness")


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def between(start: int, end: int) -> Interval:
    return Interval(minute(start), minute(end))


def starting(first: int, lasting: int) -> st.SearchStrategy[Interval]:
    return st.builds(
        lambda start, length: between(start, start + length), st.integers(0, first), st.integers(1, lasting)
    )


data_ranges = starting(10, 4)
lives = st.tuples(st.integers(0, NOW), st.none() | st.integers(0, 20))


@st.composite
def detected_incidents(draw: st.DrawFn) -> list[Detected]:
    found = []
    for number in range(draw(st.integers(0, 4))):
        spans = []
        for unit in range(draw(st.integers(1, 3))):
            began, lasted = draw(lives)
            ended = None if lasted is None else minute(min(began + lasted, NOW))
            spans.append(Span(unit, draw(st.integers(1, 2)), draw(data_ranges), minute(began), ended))
        category = draw(st.sampled_from(CATEGORIES))
        found.append(Detected(number, draw(st.integers(1, 2)), category, tuple(spans), draw(st.booleans())))
    return found


@st.composite
def user_reports(draw: st.DrawFn) -> list[Reported]:
    found = []
    for number in range(draw(st.integers(0, 2))):
        began, lasted = draw(lives)
        fixed = None if lasted is None else minute(began + lasted)
        category = draw(st.sampled_from(CATEGORIES))
        found.append(Reported(number, draw(st.integers(1, 2)), category, draw(data_ranges), minute(began), fixed))
    return found


windows = starting(NOW - 1, NOW).map(lambda window: Interval(window.start, min(window.end, minute(NOW))))


def lived(incident: Detected, at: int) -> bool:
    return at < NOW and any(
        span.began_at <= minute(at) and (span.ended_at is None or minute(at) < span.ended_at) for span in incident.spans
    )


def missed(report: Reported, at: int, detected: Iterable[Detected]) -> bool:
    seen = any(
        not incident.false_positive
        and incident.dataset == report.dataset
        and any(span.data.meets(report.data) for span in incident.spans)
        and lived(incident, at)
        for incident in detected
    )
    return at < NOW and report.is_alive(minute(at)) and not seen


def minutes_by_the_book(
    kind: str, key: tuple[int, str], detected: list[Detected], reported: list[Reported], window: Interval
) -> set[int]:
    mine = [incident for incident in detected if (incident.dataset, incident.category) == key]
    found = set()
    for at in range(NOW):
        tp = any(lived(incident, at) for incident in mine if not incident.false_positive)
        fp = any(lived(incident, at) for incident in mine if incident.false_positive) and not tp
        fn = any(missed(report, at, detected) for report in reported if (report.dataset, report.category) == key)
        if {"tp": tp, "fp": fp, "fn": fn}[kind] and window.contains(minute(at)):
            found.add(at)
    return found


KEYS = [(dataset, category) for dataset in (1, 2) for category in CATEGORIES]


@given(detected_incidents(), user_reports(), windows)
def test_durations_are_the_minutes_of_the_grid(
    detected: list[Detected], reported: list[Reported], window: Interval
) -> None:
    told = durations(tally(detected, reported, now=minute(NOW)).values(), window)
    for kind in ("tp", "fp", "fn"):
        counted = sum(len(minutes_by_the_book(kind, key, detected, reported, window)) for key in KEYS)
        assert getattr(told, kind) == timedelta(minutes=counted), kind


@given(detected_incidents(), user_reports(), windows, st.integers(1, NOW))
def test_windows_side_by_side_add_up(
    detected: list[Detected], reported: list[Reported], window: Interval, cut_after: int
) -> None:
    cut = window.start + timedelta(minutes=cut_after)
    if cut >= window.end:
        return
    left, right = Interval(window.start, cut), Interval(cut, window.end)
    tallies = tally(detected, reported, now=minute(NOW)).values()
    assert durations(tallies, left) + durations(tallies, right) == durations(tallies, window)
    monitored = minute(NOW // 3)
    parts = [data_level(tallies, one, monitored_from=monitored) for one in (left, right)]
    assert parts[0] + parts[1] == data_level(tallies, window, monitored_from=monitored)


@given(detected_incidents(), user_reports(), windows, st.integers(0, NOW))
def test_the_incident_share_is_the_minutes_in_which_something_was_wrong(
    detected: list[Detected], reported: list[Reported], window: Interval, monitored: int
) -> None:
    mine = {key: one for key, one in tally(detected, reported, now=minute(NOW)).items() if key[0] == 1}
    told = data_level(mine.values(), window, monitored_from=minute(monitored))
    wrong: set[int] = set()
    for category in CATEGORIES:
        for kind in ("tp", "fn"):
            wrong |= minutes_by_the_book(kind, (1, category), detected, reported, window)
    assert told.incident == timedelta(minutes=len([at for at in wrong if at >= monitored]))


@given(
    detected_incidents(), user_reports(), st.lists(st.tuples(st.integers(0, NOW - 1), data_ranges), max_size=6), windows
)
def test_a_question_failed_where_a_real_incident_was_alive_and_met_it(
    detected: list[Detected], reported: list[Reported], times: list[tuple[int, Interval]], window: Interval
) -> None:
    questions = [Question(minute(at), "jobs", str(number), 1, 1, data) for number, (at, data) in enumerate(times)]
    told = query_level(questions, detected, reported, window)
    counted = [question for question in questions if window.contains(question.at)]
    failed = [question for question in counted if was_wrong(question, detected, reported)]
    assert told == QueryLevel(len(failed), len(counted))


def was_wrong(question: Question, detected: list[Detected], reported: list[Reported]) -> bool:
    by_tests = any(
        span.began_at <= question.at
        and (span.ended_at is None or question.at < span.ended_at)
        and span.copy == question.copy
        and span.data.meets(question.data)
        for incident in detected
        if incident.dataset == question.dataset and not incident.false_positive
        for span in incident.spans
    )
    by_users = any(
        report.dataset == question.dataset and report.is_alive(question.at) and report.data.meets(question.data)
        for report in reported
    )
    return by_tests or by_users


def test_a_question_is_counted_once_at_its_first_time_in_the_window() -> None:
    asked = [Question(minute(at), "jobs", "run 1", 1, 1, between(0, 5)) for at in (9, 2, 5)]
    bad = [Detected(1, 1, "duplicates", (Span(1, 1, between(0, 5), minute(4), minute(8)),))]
    assert query_level(asked, bad, [], between(0, 40)) == QueryLevel(failed=0, asked=1)
    assert query_level(asked, bad, [], between(3, 40)) == QueryLevel(failed=1, asked=1)


def test_precision_and_recall_of_nothing_are_null() -> None:
    assert (Durations().precision, Durations().recall) == (None, None)
    assert DataLevel(timedelta(), timedelta()).quality is None
    assert QueryLevel(0, 0).quality is None


def test_precision_and_recall_are_shares_of_time() -> None:
    told = Durations(tp=timedelta(hours=3), fp=timedelta(hours=1), fn=timedelta(hours=2))
    assert (told.precision, told.recall) == (0.75, 0.6)


def test_the_share_and_the_quality_are_both_told() -> None:
    told = DataLevel(timedelta(hours=6), timedelta(hours=24))
    assert (told.incident_share, told.quality) == (0.25, 0.75)


def test_grace_periods_are_left_out() -> None:
    incident = Detected(1, 1, "duplicates", (Span(1, 1, between(0, 5), minute(0)),))
    left_out = tally([incident], [], now=minute(NOW), excluded={1: [between(0, 30)]})
    assert durations(left_out.values(), between(0, NOW)).tp == timedelta(minutes=10)


@pytest.mark.parametrize(("ended", "unsettled"), [(None, (1,)), (minute(9), ())])
def test_open_incidents_count_to_now_and_are_flagged(ended: datetime | None, unsettled: tuple[int, ...]) -> None:
    incident = Detected(1, 1, "duplicates", (Span(1, 1, between(0, 5), minute(0), ended),))
    (told,) = tally([incident], [], now=minute(NOW)).values()
    assert told.unsettled == unsettled
