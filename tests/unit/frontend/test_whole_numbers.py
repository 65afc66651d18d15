from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.ui.whole_numbers import parse_whole_number
from tests.text_strategies import text_of


@given(st.integers(min_value=0, max_value=999_999_999))
def test_plain_digits_are_their_number(number: int) -> None:
    assert parse_whole_number(str(number)) == number


@pytest.mark.parametrize("text", ["", "²", "９", "-1", "1.0", " 1", "1_0", "9" * 10, "9" * 5000])
def test_anything_else_is_none(text: str) -> None:
    assert parse_whole_number(text) is None


@given(text_of("0123456789²९-_. x", 12))
def test_no_text_is_an_error(text: str) -> None:
    assert parse_whole_number(text) is None or text.isdecimal()
