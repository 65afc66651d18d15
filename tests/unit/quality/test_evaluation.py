"""Post-order evaluation: a failed leaf is a value, and nothing is never a pass."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from lakehub.kernel.outcome import Outcome
from quality.domain.evaluation.evaluate import Evaluation, asks_of_expression, evaluate
from quality.domain.language import parse
from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.measures import Answer, Ask, answer_without_rows
from quality.domain.language.tree.literals import display_amount
from quality.domain.language.values import EvaluationContext, Failed, error
from quality.domain.value_types import ValueType

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def result(text: str, measured: Mapping[str, Answer | Failed]) -> Evaluation:
    """Answers by `table:measure`, such as this:rows or this@dc1:rows."""
    expression = parse(text)
    answers = {}
    for ask in asks_of_expression(expression):
        center = f"@{ask.table.data_center}" if ask.table.data_center else ""
        answers[ask] = measured[f"{ask.table.dataset}{center}:{ask.measure.kind}"]
    return evaluate(expression, answers, EvaluationContext(NOW))


CROSS_DC = "min(rows(this), rows(this@dc1)) / rows(this@dc1) > 99.9%"


def test_it_says_what_was_observed_and_the_counts_behind() -> None:
    evaluation = result(CROSS_DC, {"this:rows": 975, "this@dc1:rows": 985})
    assert (evaluation.outcome, evaluation.observed_text, evaluation.threshold, evaluation.behind) == (
        Outcome.FAIL,
        "98.98%",
        "> 99.9%",
        "975 of 985",
    )
    assert evaluation.facts == {"rows(this)": "975", "rows(this@dc1)": "985"}


def test_the_side_that_has_more_rows_passes() -> None:
    assert result(CROSS_DC, {"this:rows": 985, "this@dc1:rows": 975}).outcome is Outcome.PASS


def test_shares_are_exact() -> None:
    assert (
        result("rows(this) / rows(upstream) > 99.9%", {"this:rows": 999, "upstream:rows": 1000}).outcome is Outcome.FAIL
    )
    assert (
        result("rows(this) / rows(upstream) >= 99.9%", {"this:rows": 999, "upstream:rows": 1000}).outcome
        is Outcome.PASS
    )


def test_what_is_missing_from_a_share_is_counted() -> None:
    evaluation = result("1 - distinct(this, a) / rows(this) <= 0%", {"this:distinct": 26112, "this:rows": 26115})
    assert (evaluation.outcome, evaluation.behind) == (Outcome.FAIL, "3 of 26,115")
    assert evaluation.observed == Fraction(3, 26115)


@pytest.mark.parametrize(
    "text",
    [
        "rows(this) > 0",
        "rows(this) >= 0",
        "rows(this) / rows(upstream) > 99.9%",
        "not rows(this) > 5",
        "rows(this) < 9 or rows(upstream) > 1",
    ],
)
def test_an_empty_partition_is_no_data_whatever_is_asked(text: str) -> None:
    evaluation = result(text, {"this:rows": 0, "upstream:rows": 5})
    assert (evaluation.outcome, evaluation.cause) == (Outcome.NO_DATA, "rows(this): there are no rows")


def test_an_empty_denominator_is_no_data() -> None:
    assert (
        result("rows(this) / rows(upstream) > 99.9%", {"this:rows": 5, "upstream:rows": 0}).outcome is Outcome.NO_DATA
    )
    evaluation = result("rows(this) / (rows(this) - rows(upstream)) > 1%", {"this:rows": 5, "upstream:rows": 5})
    assert (evaluation.outcome, evaluation.cause) == (
        Outcome.NO_DATA,
        "rows(this) - rows(upstream) is 0, so there is nothing to compare with",
    )


def test_an_error_says_more_than_missing_data() -> None:
    evaluation = result(
        "rows(this) / rows(upstream) > 99.9%", {"this:rows": 0, "upstream:rows": error("the source cannot be reached")}
    )
    assert (evaluation.outcome, evaluation.cause) == (Outcome.ERROR, "rows(upstream): the source cannot be reached")


WRITTEN = {
    "rows": "rows(this)",
    "distinct": "distinct(this, a)",
    "unmatched": "unmatched(this.a, b.c)",
    "outside": "outside(this.a, 1, 2)",
    "mismatched": "mismatched(this.a, 'x+')",
    "unexpected": "unexpected(this.a, 'x')",
    "drift": "drift(this.a, this[-7d].a)",
    "query": "query(this, 'SELECT 1 FROM this')",
    "matching": "matching(this, this@dc2, 100%, a)",
    "sampled": "sampled(this, upstream, 10, a)",
    "delay": "delay(this)",
}
LEAST = {ValueType.DURATION: "0s", ValueType.RATIO: "0%"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"findings"}))
def test_no_function_makes_something_of_nothing(name: str) -> None:
    """Every leaf over zero rows and null statistics fails; only findings may be none."""
    expression = parse(f"{WRITTEN.get(name, f'{name}(this.a)')} >= {LEAST.get(FUNCTIONS.get(name).value_type, '0')}")
    answers: dict[Ask, Answer | Failed] = {
        ask: answer_without_rows(ask.measure) for ask in asks_of_expression(expression)
    }
    assert evaluate(expression, answers, EvaluationContext(NOW)).outcome is Outcome.NO_DATA


def test_a_threshold_may_be_measured_too() -> None:
    evaluation = result("rows(this) >= rows(upstream)", {"this:rows": 5, "upstream:rows": 1200})
    assert (evaluation.outcome, evaluation.observed_text, evaluation.threshold) == (Outcome.FAIL, "5", ">= 1,200")


def test_a_threshold_on_the_left_is_turned() -> None:
    evaluation = result("99.9% < rows(this) / rows(upstream)", {"this:rows": 5, "upstream:rows": 10})
    assert (evaluation.observed_text, evaluation.threshold) == ("50%", "> 99.9%")


def test_of_several_comparisons_the_one_that_failed_is_shown() -> None:
    evaluation = result("rows(this) > 5 and sum(this.x) < 10", {"this:rows": 50, "this:sum": 11.5})
    assert (evaluation.outcome, evaluation.observed_text, evaluation.threshold) == (Outcome.FAIL, "11.50", "< 10")


def test_a_mean_is_the_sum_over_the_filled_rows() -> None:
    assert result("mean(this.x) == 2.5", {"this:sum": 10, "this:filled": 4}).outcome is Outcome.PASS


def test_what_is_not_a_number_is_an_error() -> None:
    assert result("sum(this.x) < 10", {"this:sum": float("nan")}).outcome is Outcome.ERROR
    assert result("maximum(this.x) < 10", {"this:maximum": "zebra"}).outcome is Outcome.ERROR


def test_the_event_time_rule_counts_from_the_latest_event() -> None:
    evaluation = result("freshness(this.at) <= 1h", {"this:maximum": NOW - timedelta(minutes=90)})
    assert (evaluation.outcome, evaluation.observed_text, evaluation.complete_until) == (
        Outcome.FAIL,
        "1 h 30 min",
        NOW - timedelta(minutes=90),
    )


def test_the_same_measure_is_asked_for_once() -> None:
    assert len(asks_of_expression(parse(CROSS_DC))) == 2
    assert {
        ask.measure.kind
        for ask in asks_of_expression(
            parse("null_share(this.a) < 1%".replace("null_share(this.a)", "nulls(this.a) / rows(this)"))
        )
    } == {"nulls", "rows"}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_each_function_says_how_it_is_written(name: str) -> None:
    assert FUNCTIONS.get(name).signature.startswith(f"{name}(")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Fraction(975, 985), "98.98%"),
        (Fraction(999899, 1000000), "99.9899%"),
        (Fraction(3, 26115), "0.0115%"),
        (Fraction(1, 2), "50%"),
        (Fraction(92, 714), "12.89%"),
        (Fraction(-1, 3), "-33.33%"),
        (Fraction(1), "100%"),
    ],
)
def test_a_share_never_looks_like_what_it_is_not(value: Fraction, says: str) -> None:
    assert display_amount(value, ValueType.RATIO) == says


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (timedelta(hours=3, minutes=20, seconds=5), "3 h 20 min"),
        (timedelta(days=9), "9 d"),
        (timedelta(), "0 s"),
        (timedelta(minutes=-90), "-1 h 30 min"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(value: timedelta, says: str) -> None:
    assert display_amount(value, ValueType.DURATION) == says


@pytest.mark.parametrize(
    ("greatest", "outcome", "cause"),
    [
        ({"x": 0.5, "y": 0.7}, Outcome.PASS, ""),
        ({"x": 0.5, "y": None}, Outcome.NO_DATA, "y: maximum(this.a): there are no values"),
        ({"x": 0.5, "y": None, "z": error("gone")}, Outcome.ERROR, "z: maximum(this.a): gone"),
        ({"x": 50, "y": None, "z": error("gone")}, Outcome.FAIL, ""),
    ],
)
def test_a_group_that_cannot_be_judged_is_never_a_pass(
    greatest: Mapping[str | None, Any], outcome: Outcome, cause: str
) -> None:
    expression = parse("maximum(this.a) < 10 with by=b")
    answers: dict[Ask, Any] = {
        ask: greatest if ask.measure.kind == "maximum" else dict.fromkeys(greatest, 100)
        for ask in asks_of_expression(expression)
    }
    evaluation = evaluate(expression, answers, EvaluationContext(NOW))
    assert (evaluation.outcome, evaluation.cause) == (outcome, cause)
