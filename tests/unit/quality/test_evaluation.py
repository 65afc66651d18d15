"""Post-order evaluation: a failed leaf is a value, and nothing is never a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain
from quality.checks import Check
from quality.checks.bloom_cross_dc import BLOOM_CROSS_DC
from quality.checks.completeness import COMPLETENESS
from quality.checks.row_count_cross_dc import ROW_COUNT_CROSS_DC
from quality.checks.sampling import SAMPLING
from quality.domain.evaluation.evaluate import Evaluation, asks_of_expression, evaluate
from quality.domain.generation.definitions import DatasetFacts, Definition
from quality.domain.language import Scope, parse
from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.measures import Answer, Ask, answer_without_rows
from quality.domain.language.tree.literals import display_amount
from quality.domain.language.values import EvaluationContext, Failed, error
from quality.domain.slas import TIERS
from quality.domain.timeliness.production_calendar import parse_calendar
from quality.domain.value_types import ValueType

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)


TODAY = Interval(datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 17, tzinfo=UTC))
NOT_DUE = EvaluationContext(NOW, Grain.DAY, partition=TODAY)


def result(text: str, measured: Mapping[str, Answer | Failed], moment: EvaluationContext | None = None) -> Evaluation:
    """Answers by `table:measure`, such as this:rows or this@dc1:rows; of a table as a whole, whose rows are expected."""
    expression = parse(text)
    answers = {}
    for ask in asks_of_expression(expression):
        center = f"@{ask.table.data_center}" if ask.table.data_center else ""
        answers[ask] = measured[f"{ask.table.dataset}{center}:{ask.measure.kind}"]
    return evaluate(expression, answers, moment or EvaluationContext(NOW))


CROSS_DC = "rows(this) / max(rows(this), rows(this@dc1)) > 99.9%"


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


@pytest.mark.parametrize("text", ["repeated(this, a) / rows(this) <= 0%", "null_keys(this.a) / rows(this) <= 0%"])
def test_rows_that_were_not_expected_are_judged_by_their_keys_like_others(text: str) -> None:
    measured: dict[str, Answer | Failed] = {"this:rows": 5, "this:repeated": 0, "this:nulls": 0}
    assert result(text, measured, NOT_DUE).outcome is Outcome.PASS
    assert result(text, {**measured, "this:rows": 0}, NOT_DUE).outcome is Outcome.NO_DATA


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
def test_a_partition_that_is_not_due_is_no_data_whatever_is_asked(text: str) -> None:
    evaluation = result(text, {"this:rows": 0, "upstream:rows": 0}, NOT_DUE)
    assert (evaluation.outcome, evaluation.cause) == (
        Outcome.NO_DATA,
        "rows(this): there are no rows, and none are due yet",
    )


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("rows(this) / rows(upstream) > 99.9%", {"upstream:rows": 5}),
        ("sampled(this, upstream, 9, a) > 99%", {"this:sampled": {"keys": 5, "matching": 0, "missing": []}}),
    ],
)
def test_rows_are_expected_where_upstream_holds_some_whatever_the_calendar_says(
    text: str, measured: dict[str, Answer | Failed]
) -> None:
    weekdays = parse_calendar("0 6 * * tue-fri", "", NOT_DUE.zone)  # TODAY is a Monday
    for moment in (NOT_DUE, replace(NOT_DUE, now=TODAY.end + DAY, production_calendar=weekdays)):
        evaluation = result(text, {"this:rows": 0, **measured}, moment)
        assert (evaluation.outcome, evaluation.observed_text) == (Outcome.FAIL, "0%")


def test_it_says_why_no_rows_are_expected() -> None:
    past = replace(NOT_DUE, now=TODAY.end + DAY)
    for moment, why in (
        (NOT_DUE, "none are due yet"),
        (
            replace(past, production_calendar=parse_calendar("0 6 * * tue-fri", "", past.zone)),
            "the calendar expects none",
        ),
        (replace(past, monitored_since=TODAY.end), "none are expected before monitoring began"),
    ):
        evaluation = result("rows(this) > 0", {"this:rows": 0}, moment)
        assert (evaluation.outcome, evaluation.cause) == (Outcome.NO_DATA, f"rows(this): there are no rows, and {why}")


@pytest.mark.parametrize(
    ("text", "outcome", "observed"),
    [
        ("rows(this) > 0", Outcome.FAIL, "0"),
        ("rows(this) > 900", Outcome.FAIL, "0"),
        ("rows(this) / rows(upstream) > 99.9%", Outcome.FAIL, "0%"),
        ("rows(this) / max(rows(this), rows(upstream)) > 99.9%", Outcome.FAIL, "0%"),
        ("1 - distinct(this, a) / rows(this) <= 0%", Outcome.SKIPPED, ""),
        ("repeated(this, a) / rows(this) <= 0%", Outcome.SKIPPED, ""),
        ("null_keys(this.a) / rows(this) <= 0%", Outcome.SKIPPED, ""),
        ("nulls(this.a) / rows(this) < 1%", Outcome.NO_DATA, ""),
        ("matching(this, upstream, 100%, a) > 99%", Outcome.FAIL, "0%"),
    ],
)
def test_where_rows_are_expected_none_is_a_value(text: str, outcome: Outcome, observed: str) -> None:
    measured: dict[str, Answer | Failed] = {"this:rows": 0, "upstream:rows": 5, "this:distinct": 0, "this:nulls": 0}
    measured["this:repeated"] = 0
    measured["this:matching"] = {"keys": 5, "matching": 0, "missing": []}
    for context in (
        EvaluationContext(NOW),
        replace(NOT_DUE, awaited=frozenset({TODAY})),
        replace(NOT_DUE, now=TODAY.end),
    ):
        evaluation = result(text, measured, context)
        assert (evaluation.outcome, evaluation.observed_text) == (outcome, observed)


@pytest.mark.parametrize(
    ("rows", "outcome"), [(998, "fail"), (999, "fail"), (1000, "pass"), (1001, "fail"), (1020, "fail")]
)
def test_more_than_all_rows_of_upstream_is_a_defect_like_fewer(rows: int, outcome: str) -> None:
    facts = DatasetFacts("flights", 2, TIERS[2], Scope({"upstream": None}), Grain.DAY, one_to_one=True)
    (definition,) = COMPLETENESS.definitions(facts)
    assert isinstance(definition, Definition)
    assert result(definition.expression, {"this:rows": rows, "upstream:rows": 1000}).outcome == outcome
    (whole,) = COMPLETENESS.definitions(replace(facts, slas=replace(TIERS[2], completeness=Fraction(1))))
    assert isinstance(whole, Definition)
    exact = result(whole.expression, {"this:rows": rows, "upstream:rows": 1000})
    assert exact.outcome == ("pass" if rows == 1000 else "fail")


def test_the_copy_that_lacks_rows_fails_and_the_other_does_not_where_all_are_gone() -> None:
    facts = DatasetFacts("flights", 2, TIERS[2], Scope(), Grain.DAY, data_centers=("dc1", "dc2"))
    definition = next(iter(ROW_COUNT_CROSS_DC.definitions(facts)))
    assert isinstance(definition, Definition)
    for ours, theirs, outcome in (
        (0, 1000, "fail"),
        (1000, 0, "pass"),
        (0, 0, "no_data"),
        (1020, 1000, "pass"),
        (980, 1000, "fail"),
    ):
        assert result(definition.expression, {"this:rows": ours, "this@dc1:rows": theirs}).outcome == outcome


@pytest.mark.parametrize(("present", "outcome"), [(1000, "pass"), (999, "fail")])
@pytest.mark.parametrize("check", [ROW_COUNT_CROSS_DC, BLOOM_CROSS_DC, SAMPLING, COMPLETENESS])
def test_a_share_of_all_rows_can_be_promised(check: Check, present: int, outcome: str) -> None:
    scope = Scope({"this": None, "upstream": None}, primary_key=("id",))
    slas = replace(TIERS[2], completeness=Fraction(1), consistency=Fraction(1))
    centers = ("dc1", "dc2")
    facts = DatasetFacts("f", 2, slas, scope, Grain.DAY, centers, one_to_one=True, upstream_is_external=True)
    definition = next(iter(check.definitions(facts)))
    assert isinstance(definition, Definition)
    exchanged = {"keys": 1000, "matching": present, "missing": []}
    measured = {"this:rows": present, "this@dc1:rows": 1000, "upstream:rows": 1000}
    evaluation = result(definition.expression, {**measured, "this:matching": exchanged, "this:sampled": exchanged})
    assert (evaluation.outcome, evaluation.threshold) == (outcome, "== 100%")


@pytest.mark.parametrize(("keys_here", "outcome"), [(5, "pass"), (0, "no_data")])
def test_of_no_keys_on_the_other_side_none_is_missing(keys_here: int, outcome: str) -> None:
    exchanged = {"keys": 0, "matching": 0, "missing": [], "report": {"keys_here": keys_here}}
    evaluation = result("matching(this, this@dc1, 100%, a) > 99%", {"this:rows": 5, "this:matching": exchanged})
    assert evaluation.outcome == outcome
    assert evaluation.behind == ("no keys on the other side" if keys_here else "")


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
    "repeated": "repeated(this, a)",
    "across_partitions": "across_partitions(this, a)",
    "unmatched": "unmatched(this.a, b.c)",
    "outside": "outside(this.a, 1, 2)",
    "mismatched": "mismatched(this.a, 'x+')",
    "unexpected": "unexpected(this.a, 'x')",
    "drift": "drift(this.a, this[-7d].a)",
    "query": "query(this, 'SELECT 1 FROM this')",
    "matching": "matching(this, this@dc2, 100%, a)",
    "difference": "difference(this, this@dc2, '', a)",
    "sampled": "sampled(this, upstream, 10, a)",
    "delay": "delay(this)",
}
LEAST = {ValueType.DURATION: "0s", ValueType.RATIO: "0%"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"findings"}))
def test_no_function_makes_something_of_nothing(name: str) -> None:
    """Every leaf over zero rows and null statistics fails where none are due; only findings may be none."""
    expression = parse(f"{WRITTEN.get(name, f'{name}(this.a)')} >= {LEAST.get(FUNCTIONS.get(name).value_type, '0')}")
    answers: dict[Ask, Answer | Failed] = {
        ask: answer_without_rows(ask.measure) for ask in asks_of_expression(expression)
    }
    assert evaluate(expression, answers, NOT_DUE).outcome is Outcome.NO_DATA


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
    evaluation = result("freshness(this.at) <= 1h", {"this:latest": NOW - timedelta(minutes=90)})
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
