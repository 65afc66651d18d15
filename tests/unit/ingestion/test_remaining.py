"""Time left is told where it can be known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.remaining import phase_time_left, time_left

MINUTE = timedelta(minutes=1)


def test_half_done_takes_as_long_again() -> None:
    assert time_left(MINUTE, 50, 100) == MINUTE


@pytest.mark.parametrize(
    ("elapsed", "done", "total"),
    [(MINUTE, 50, None), (MINUTE, 50, 0), (MINUTE, 0, 100), (MINUTE, 1, 100), (MINUTE, 100, 100), (MINUTE, 120, 100)],
)
def test_what_cannot_be_known_is_not_told(elapsed: timedelta, done: int, total: int | None) -> None:
    assert time_left(elapsed, done, total) is None


def test_the_first_seconds_tell_nothing() -> None:
    assert time_left(timedelta(seconds=4), 50, 100) is None


@given(st.integers(5, 10**6), st.integers(0, 10**9), st.integers(1, 10**9))
def test_it_is_never_negative_and_shrinks(seconds: int, done: int, total: int) -> None:
    elapsed = timedelta(seconds=seconds)
    left, later = time_left(elapsed, done, total), time_left(elapsed, done + 1, total)
    assert left is None or left > timedelta()
    assert left is None or later is None or later <= left


@pytest.mark.parametrize(
    ("progress", "left"),
    [
        (
            {"phase": "read", "phase_s": 60.0, "rows_read": 10, "rows_total": 30, "tasks_done": 9, "tasks_total": 10},
            120,
        ),
        ({"phase": "write", "phase_s": 60, "rows_read": 10, "rows_total": 30, "tasks_done": 30, "tasks_total": 40}, 20),
        ({"phase": "read", "phase_s": 60.0, "rows_read": 10, "rows_total": None}, None),
        ({"phase": "read", "phase_s": "long", "rows_read": 10, "rows_total": 30}, None),
        ({"phase": "read", "phase_s": 60.0, "rows_read": "many", "rows_total": 30}, None),
        ({"looks": 12, "read": 40}, None),
        ({}, None),
    ],
)
def test_each_phase_counts_its_own_parts(progress: dict[str, Any], left: int | None) -> None:
    assert phase_time_left(progress) == (None if left is None else timedelta(seconds=left))
