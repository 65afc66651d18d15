"""What engines share before any of them is asked: bins, patterns, names of values."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quality.engines.scans.column_types import ColumnType, normalize_value, value_name
from quality.engines.sql.numeric_bins import LAST_BIN, MAX_BINS, NAN_BIN, bin_name, bin_of
from quality.engines.sql.portable_patterns import (
    JAVA,
    PCRE,
    POSTGRESQL,
    RE2,
    NotPortable,
    pattern_matches,
    write_pattern,
)

FLOATS = st.floats(allow_nan=False)


@given(FLOATS, FLOATS)
def test_bins_keep_the_order_of_numbers(first: float, other: float) -> None:
    low, high = sorted((first, other))
    assert bin_of(low) <= bin_of(high)


@given(st.floats(min_value=2.0**-31, max_value=2.0**63))
def test_a_number_lies_within_the_bounds_that_name_its_bin(number: float) -> None:
    low, high = (float(bound) for bound in bin_name(bin_of(number))[1:-1].split(", "))
    assert low * (1 - 1e-5) <= number <= high * (1 + 1e-5)
    assert high <= low * 1.2501
    assert bin_of(-number) == -bin_of(number)


def test_bins_are_numbered_as_documented() -> None:
    """Distributions that were stored are compared with later ones."""
    numbers = [bin_of(x) for x in (2.0**-32, 1.0, 1.25, 10.0, -10.0, 2.0**63 * 1.75)]
    assert numbers == [1, 129, 130, 142, -142, 384]


def test_there_are_fewer_bins_than_may_be() -> None:
    assert 2 * LAST_BIN + 2 < MAX_BINS
    assert [bin_name(bin_of(x)) for x in (0.0, -0.0, 1e-30, math.nan, math.inf, -math.inf, 10.0, -10.0)] == [
        "0",
        "0",
        "0",
        "NaN",
        "[1.84467e+19, )",
        "(, -1.84467e+19]",
        "[10, 12)",
        "(-12, -10]",
    ]
    assert len({bin_name(number) for number in range(-LAST_BIN, NAN_BIN + 1)}) == 2 * LAST_BIN + 2


@pytest.mark.parametrize(
    ("value", "kind", "expected", "name"),
    [
        (Decimal("12.00"), ColumnType.INTEGER, 12, "12"),
        ("99999999999999999999", ColumnType.INTEGER, 99999999999999999999, "99999999999999999999"),
        (Decimal("1.50"), ColumnType.DECIMAL, Decimal("1.5"), "1.5"),
        (0.1, ColumnType.DECIMAL, Decimal("0.1"), "0.1"),
        (Decimal("1E+3"), ColumnType.DECIMAL, Decimal(1000), "1000"),
        (4, ColumnType.FLOAT, 4.0, "4"),
        (1, ColumnType.BOOLEAN, True, "true"),
        (b"\xc3\xa6", ColumnType.TEXT, "æ", "æ"),
        (b"\x00\xff", ColumnType.BINARY, "00ff", "00ff"),
        ("2026-11-16", ColumnType.DATE, date(2026, 11, 16), "2026-11-16"),
        ("soon", ColumnType.DATE, "soon", "soon"),
        (None, ColumnType.TEXT, None, None),
        (
            datetime(2026, 11, 16, 9, tzinfo=timezone(timedelta(hours=2))),
            ColumnType.INSTANT,
            datetime(2026, 11, 16, 7, tzinfo=UTC),
            "2026-11-16T07:00:00+00:00",
        ),
        (datetime(2026, 11, 16, 9), ColumnType.LOCAL, datetime(2026, 11, 16, 9), "2026-11-16T09:00:00"),
    ],
)
def test_a_value_is_told_and_named_in_one_form(value: Any, kind: ColumnType, expected: Any, name: str | None) -> None:
    normalized = normalize_value(value, kind)
    assert (type(normalized), normalized, value_name(normalized)) == (type(expected), expected, name)


@pytest.mark.parametrize(
    ("pattern", "rewritten"),
    [
        (r"N\d+[A-Z]{0,2}", r"\A(?:N[0-9]+[A-Z]{0,2})\z"),
        (r"(?i)n.\x41", r"(?i)\A(?:n[^\n]A)\z"),
        (r"[]a&\d-]+|^b$", r"\A(?:[\]a\&0-9-]+|\Ab\z)\z"),
        (r"\W\.", r"\A(?:[^A-Za-z0-9_]\.)\z"),
    ],
)
def test_a_pattern_is_written_for_each_engine(pattern: str, rewritten: str) -> None:
    assert write_pattern(pattern, RE2) == write_pattern(pattern, PCRE) == rewritten
    assert write_pattern(pattern, JAVA) == rewritten.replace("(?i)", "(?iu)")
    assert write_pattern(pattern, POSTGRESQL) == rewritten.replace(r"\z", r"\Z")


@pytest.mark.parametrize("pattern", [r"a\b", r"(?=a)", r"[[:alpha:]]", "(a", r"(?P<x>a)", r"\p{L}", "a++", r"(a)\1"])
def test_what_the_engines_do_not_share_is_refused(pattern: str) -> None:
    with pytest.raises(NotPortable, match=re.escape("`")):
        write_pattern(pattern, RE2)


def test_the_whole_value_matches_in_time_that_grows_with_it() -> None:
    assert pattern_matches(write_pattern(r"a+", RE2), "aaa")
    assert not pattern_matches(write_pattern(r"a+", RE2), "aaab")
    assert not pattern_matches(write_pattern(r"a", RE2), "a\n")
    assert not pattern_matches(write_pattern(r"(a|aa)+", RE2), "a" * 5000 + "b")
