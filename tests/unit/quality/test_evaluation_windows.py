"""Window functions, groups and two places: what evaluation makes of more than one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lakehub.kernel.interval import BEGINNING, EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, partition_at, shifted_partition
from quality.domain.evaluation.evaluate import Evaluation, asks_of_expression, evaluate
from quality.domain.evaluation.groups import DEFAULT_MAX_GROUPS, select_groups
from quality.domain.evaluation.lookback_window import first_answerable_start, required_history
from quality.domain.generation.definitions import runs_in
from quality.domain.language import parse
from quality.domain.language.measures import Answer, Ask
from quality.domain.language.tree.nodes import Parameters
from quality.domain.language.values import EvaluationContext, Failed, no_data

NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 17, 15, tzinfo=UTC)
TESTED = partition_at(
    datetime(2026, 11, 16, 15, tzinfo=UTC), Grain.DAY, NEW_YORK
)  # a Monday; the clocks changed on the 1st


def judged(text: str, rows: Callable[[date], Any], excluded: tuple[Interval, ...] = ()) -> Evaluation:
    """`rows` says what was measured by local date."""
    expression = parse(text)
    answers = {ask: rows(day_of(ask)) for ask in asks_of_expression(expression)}
    moment = EvaluationContext(NOW, Grain.DAY, NEW_YORK, partition=TESTED, excluded_ranges=excluded)
    return evaluate(expression, answers, moment)


def day_of(ask: Ask) -> date:
    return shifted_partition(TESTED, ask.table.shift, Grain.DAY, NEW_YORK).start.astimezone(NEW_YORK).date()


def usual(day: date) -> int:
    """1000 on Mondays, fewer at the weekend."""
    return 400 + day.day % 3 if day.weekday() > 4 else 1000 + day.day % 3


USUAL = "deviation(rows(this), 8w) < 4"


def test_a_day_as_usual_passes_and_tells_the_band() -> None:
    evaluation = judged(USUAL, usual)
    assert (evaluation.outcome, evaluation.threshold) == (Outcome.PASS, "< 4")
    assert evaluation.facts is not None
    assert evaluation.facts["compared with"] == "the last 8 Mondays"
    assert evaluation.facts["rows(this)"] == "1,001"
    assert "usual" in evaluation.facts


def test_a_monday_like_a_sunday_is_unusual() -> None:
    evaluation = judged(USUAL, lambda day: 400 if day == date(2026, 11, 16) else usual(day))
    assert evaluation.outcome is Outcome.FAIL


def test_what_was_part_of_an_incident_is_left_out() -> None:
    wrong = {date(2026, 11, 9), date(2026, 11, 2), date(2026, 10, 26), date(2026, 10, 19), date(2026, 10, 12)}
    spans = tuple(
        partition_at(datetime(day.year, day.month, day.day, 17, tzinfo=UTC), Grain.DAY, NEW_YORK) for day in wrong
    )
    broken = {True: 10, False: 1000}
    assert judged(USUAL, lambda day: broken[day in wrong]).outcome is Outcome.FAIL
    evaluation = judged(USUAL, lambda day: broken[day in wrong], excluded=spans)
    assert evaluation.outcome is Outcome.PASS
    assert evaluation.facts is not None
    assert evaluation.facts["left out"].count("part of an incident") >= 1


def test_too_little_history_is_no_data() -> None:
    known: Mapping[bool, int | Failed] = {True: 1000, False: no_data("there are no rows")}
    evaluation = judged(USUAL, lambda day: known[day >= date(2026, 11, 14)])
    assert evaluation.outcome is Outcome.NO_DATA
    assert "4 are needed" in evaluation.cause


def test_a_day_that_vanished_is_an_anomaly() -> None:
    evaluation = judged(USUAL, lambda day: 0 if day == date(2026, 11, 16) else usual(day))
    assert (evaluation.outcome, evaluation.facts and evaluation.facts["rows(this)"]) == (Outcome.FAIL, "0")


def test_each_measure_of_a_window_function_is_asked_for_once() -> None:
    assert len(asks_of_expression(parse("deviation(rows(this) / rows(this), 1w) < 4"))) == 8


def test_a_table_looked_into_as_a_whole_has_no_past() -> None:
    asked = asks_of_expression(parse("deviation(unmatched(this.a, planes.a), 1w) < 4"))
    assert {ask.table.shift for ask in asked if ask.table.dataset == "planes"} == {timedelta()}
    assert len({ask.table.shift for ask in asked if ask.table.dataset == "this"}) == 8


def test_a_window_function_of_the_whole_has_no_past() -> None:
    expression = parse(USUAL)
    answers = dict.fromkeys(asks_of_expression(expression), 5)
    assert evaluate(expression, answers, EvaluationContext(NOW, partition=EVERYTHING)).outcome is Outcome.NO_DATA


def test_a_share_of_matching_keys_has_its_counts_and_names_what_is_missing() -> None:
    answer: dict[str | None, Any] = {
        "matching": 997,
        "keys": 1000,
        "missing": [{"id": "7"}],
        "report": {"bytes_moved": 9},
    }
    evaluation = judged("matching(this, this@dc2, 100%, id) > 99.9%", lambda day: 1000)
    assert evaluation.outcome is Outcome.ERROR
    expression = parse("matching(this, this@dc2, 100%, id) > 99.9%")
    answers: dict[Ask, Answer | Failed] = {
        ask: answer if ask.measure.kind == "matching" else 1000 for ask in asks_of_expression(expression)
    }
    evaluation = evaluate(expression, answers, EvaluationContext(NOW))
    assert (evaluation.outcome, evaluation.observed_text, evaluation.behind) == (Outcome.FAIL, "99.70%", "997 of 1,000")
    assert evaluation.naming_answer == answer


def test_a_number_held_against_a_percentage_is_shown_as_one() -> None:
    evaluation = judged(
        "abs(sum(this.a) - sum(this[-7d].a)) / sum(this[-7d].a) < 1%", lambda day: 1000 + 15 * (day.day == 16)
    )
    assert (evaluation.outcome, evaluation.observed_text, evaluation.threshold) == (Outcome.FAIL, "1.50%", "< 1%")


def test_the_worst_group_speaks() -> None:
    expression = parse("nulls(this.a) / rows(this) < 5% with by=origin, least=10")
    counts = {"nulls": {"EWR": 9, "JFK": 50, None: 8, "XXX": 3}, "rows": {"EWR": 100, "JFK": 90, None: 10, "XXX": 9}}
    evaluation = evaluate(
        expression, {ask: counts[ask.measure.kind] for ask in asks_of_expression(expression)}, EvaluationContext(NOW)
    )
    assert (evaluation.outcome, evaluation.observed_text, evaluation.behind) == (
        Outcome.FAIL,
        "80%",
        "no value: 8 of 10",
    )
    assert evaluation.groups is not None
    assert [group.name for group in evaluation.groups.failing] == [None, "JFK", "EWR"]
    assert (evaluation.groups.tested, evaluation.groups.too_small, evaluation.groups.over_cap) == (3, 1, 0)


@pytest.mark.parametrize(
    ("rows", "groups", "expected"),
    [
        ({"a": 50, "b": 40, "c": 30}, 3, (2, 0, 1)),
        ({"a": 50, "b": 40, "c": 30}, 9, (2, 0, 7)),  # those that were not measured are no larger than c
        ({"a": 50, "b": 40, "c": 29}, 9, (2, 7, 0)),
        ({"a": 0}, 1, (0, 1, 0)),
    ],
)
def test_the_largest_groups_are_chosen(
    rows: dict[str | None, int], groups: int, expected: tuple[int, int, int]
) -> None:
    choice = select_groups(rows, Parameters(by="origin", most=2), groups)
    assert (len(choice.sizes), choice.too_small, choice.over_cap) == expected
    assert select_groups({"x": 1}, Parameters(by="origin", least=0)).sizes == {"x": 1}
    assert DEFAULT_MAX_GROUPS == 100


def test_a_group_that_a_side_with_too_many_groups_does_not_list_is_not_zero_there() -> None:
    """Each side answers its 1,000 largest groups and one more, which shows that there are others."""
    expression = parse("rows(this) / rows(upstream) > 95% with by=shop, most=1000")
    upstream = {f"s{number:04}": 50 for number in range(1_001)}
    here = {f"s{number:04}": 50 for number in range(1, 1_002)}

    def outcome_of(here: dict[str, int]) -> tuple[str, str, int]:
        sides = {ask: here if ask.table.dataset == "this" else upstream for ask in asks_of_expression(expression)}
        evaluation = evaluate(expression, sides, EvaluationContext(NOW), groups=1_100)
        assert evaluation.groups is not None
        return evaluation.outcome, evaluation.cause, evaluation.groups.over_cap

    # s0000 has 50 rows at most here, like all the others: it is not among the largest, and not tested.
    assert outcome_of(here) == ("pass", "", 100)
    # With 900 rows upstream it is, but how few it has here is not known.
    upstream["s0000"] = 900
    unlisted = "s0000: rows(this): it is not among the 1,000 largest groups, and there are more"
    assert outcome_of(here) == ("no_data", unlisted, 100)
    del here["s1001"]
    assert outcome_of(here)[0] == "fail", "all groups are listed now: it has no rows here"


def test_a_test_runs_where_it_may() -> None:
    assert runs_in(parse("rows(this) > 1 with dc=dc1"), "dc1")
    assert not runs_in(parse("rows(this) > 1 with dc=dc1"), "dc2")
    assert not runs_in(parse("deviation(rows(this@dc2[-1d]), 8w) < 4"), "dc2")


@pytest.mark.parametrize(
    ("text", "grain", "days"),
    [
        ("rows(this) > 0", Grain.DAY, 0),
        ("rows(this) - rows(this[-7d]) > 0", Grain.DAY, 7),
        ("average(rows(this[-7d]), rows(this[-28d])) > rows(this[-1d])", Grain.DAY, 28),
        ("drift(this.a, this[-7d].a) < 10%", Grain.DAY, 7),
        ("deviation(rows(this), 8w) < 4", Grain.DAY, 4),
        ("deviation(rows(this), 8w) < 4", Grain.HOUR, 4),
        ("deviation(rows(this), 80w) < 4", Grain.MONTH, 107),
        ("deviation(rows(this[-7d]), 8w) < 4 and rows(this[-9d]) > 0", Grain.DAY, 11),
        # How far the past of other tables goes back is not known.
        ("rows(this) > rows(flights[-7d]) and rows(this) > rows(this@dc2[-7d])", Grain.DAY, 0),
        ("deviation(rows(flights), 8w) < 4", Grain.DAY, 0),
    ],
)
def test_how_much_past_a_test_needs(text: str, grain: Grain, days: int) -> None:
    assert required_history(parse(text), grain) == timedelta(days=days)


@pytest.mark.parametrize("grain", [Grain.HOUR, Grain.DAY, Grain.MONTH])
@pytest.mark.parametrize("back", [timedelta(days=4), timedelta(days=7, hours=5), timedelta(days=107)])
def test_the_first_answer_is_the_first_partition_that_has_its_past(grain: Grain, back: timedelta) -> None:
    for since in (datetime(2026, 10, 30, 4, tzinfo=UTC), datetime(2026, 1, 1, 5, tzinfo=UTC), NOW):
        oldest = partition_at(since, grain, NEW_YORK)
        first = partition_at(first_answerable_start(since, back, grain, NEW_YORK), grain, NEW_YORK)
        assert shifted_partition(first, -back, grain, NEW_YORK).start >= oldest.start
        before = partition_at(first.start - timedelta(seconds=1), grain, NEW_YORK)
        assert shifted_partition(before, -back, grain, NEW_YORK).start < oldest.start
    assert first_answerable_start(BEGINNING, back, Grain.NONE, NEW_YORK) == BEGINNING


def test_with_its_least_past_a_deviation_has_an_answer() -> None:
    known: Mapping[bool, int | Failed] = {True: 1000, False: no_data("there are no rows")}
    for days, outcome in ((4, Outcome.PASS), (3, Outcome.NO_DATA)):
        since = date(2026, 11, 16 - days)
        assert judged(USUAL, lambda day, since=since: known[day >= since]).outcome is outcome  # type: ignore[misc]
