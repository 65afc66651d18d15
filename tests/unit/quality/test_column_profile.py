"""What is proposed of a column, and that the rows it was proposed from keep it."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quality.domain.generation.column_profile import ColumnProfile, suggestions_for
from tests.text_strategies import text_of


def proposed(**profile: Any) -> dict[str, tuple[dict[str, Any], str]]:
    column = ColumnProfile(**{"name": "c", "rows": 1000, "nulls": 0, **profile})
    return {
        suggestion.rule.kind: (dict(suggestion.rule.parameters), suggestion.evidence)
        for suggestion in suggestions_for(column)
    }


def test_a_column_that_is_always_filled_must_be() -> None:
    assert proposed()["nulls"] == ({"share": "0%"}, "1,000 of 1,000")


def test_few_nulls_may_double_and_many_are_no_rule() -> None:
    assert proposed(nulls=3)["nulls"] == ({"share": "1%"}, "997 of 1,000")
    assert "nulls" not in proposed(nulls=300)


def test_numbers_have_a_range_with_room_to_both_sides() -> None:
    assert proposed(low=-25, high=175, distinct=90)["range"][0] == {"low": -80, "high": 230}
    assert proposed(low=0, high=24, distinct=24)["range"][0] == {"low": 0, "high": 30}
    assert "range" not in proposed(low=1, high=1000, distinct=1000)


def test_texts_with_few_values_have_accepted_ones() -> None:
    airports = {"EWR": 400, "JFK": 350, "LGA": 250}
    assert proposed(values=airports, is_text=True)["accepted"] == ({"values": ["EWR", "JFK", "LGA"]}, "1,000 of 1,000")
    assert "accepted" not in proposed(values={str(number): 40 for number in range(25)}, is_text=True)


def test_one_value_only_may_be_a_part_of_the_date() -> None:
    assert set(proposed(values={"2026-11-16": 1000}, is_text=True)) == {"nulls"}
    assert set(proposed(low=11, high=11, distinct=1)) == {"nulls"}


def test_texts_that_look_alike_have_a_pattern() -> None:
    tails = {f"N{number}AA": 10 for number in range(100, 300)} | {"unknown": 1}
    parameters, evidence = proposed(values=tails, is_text=True, rows=2001)["pattern"]
    assert (parameters, evidence) == ({"pattern": "[A-Z][0-9]{3}[A-Z]{2}", "share": "0.1%"}, "2,000 of 2,001")


def test_a_column_named_as_another_dataset_is_keyed_names_it() -> None:
    assert proposed(references={"planes": 130})["referential"] == (
        {"dataset": "planes", "share": "50%"},
        "870 of 1,000",
    )
    assert "referential" not in proposed(references={"planes": 300})


def test_of_a_handful_of_rows_nothing_is_proposed() -> None:
    assert proposed(rows=20) == {}


@given(st.lists(text_of("ABab09-._é", 6, min_size=1), min_size=21, max_size=60, unique=True))
def test_a_pattern_matches_the_values_that_speak_for_it(values: list[str]) -> None:
    rules = proposed(values=dict.fromkeys(values, 20), is_text=True, rows=20 * len(values))
    if "pattern" in rules:
        assert all(re.fullmatch(rules["pattern"][0]["pattern"], value) for value in values)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_a_range_holds_what_was_seen(low: float, width: float) -> None:
    parameters = proposed(low=low, high=low + width, distinct=5)["range"][0]
    assert parameters["low"] <= low <= low + width <= parameters["high"]
