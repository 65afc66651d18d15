"""A source is read no faster than it may be, however large the pieces are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.pace import Pace, piece_rows


def test_a_piece_takes_as_long_as_its_rows_may() -> None:
    pace = Pace(100.0)
    assert pace.delay(50, now=10.0) == pytest.approx(0.5)
    assert pace.delay(100, now=10.5) == pytest.approx(1.0)
    assert pace.delay(100, now=11.1) == pytest.approx(1.4)  # it was too early by 0.4


@pytest.mark.parametrize(("rows_per_s", "rows"), [(None, 500), (100.0, 500), (2.5, 25), (0.01, 1)])
def test_a_slow_source_is_read_in_pieces_of_ten_seconds(rows_per_s: float | None, rows: int) -> None:
    assert piece_rows(500, rows_per_s) == rows


def test_a_pause_is_caught_up_for_one_second_only() -> None:
    pace = Pace(100.0)
    pace.delay(100, now=0.0)
    assert pace.delay(100, now=60.0) == 0.0
    assert pace.delay(100, now=60.0) == pytest.approx(1.0)


@given(
    st.lists(st.tuples(st.integers(0, 500), st.floats(0, 3)), min_size=1, max_size=20),
    st.sampled_from([1.0, 50.0, 1e6]),
)
def test_over_any_time_no_more_is_read_than_may_be(pieces: list[tuple[int, float]], rate: float) -> None:
    """Who waits as long as is asked has read at most what the time allows, and one second's rows that a pause left."""
    pace, now, rows = Pace(rate), 0.0, 0
    for size, work in pieces:
        rows += size
        now += pace.delay(size, now=now)
        assert rows <= rate * (now + 1) + 1e-6
        now += work
