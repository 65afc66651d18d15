"""Where a copy may be put in its changelog: never behind its load or out of the log, and what that leaves out or reads again is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.log_moves import LOG, LogMove, UnfitMove, least_offsets, offsets_of, plan_move

KEPT = {"trips": {"0": (10, 90), "1": (0, 40)}, "trips.errors": {"0": (0, 3)}}
POSITION = {
    "log": {"trips": {"0": 50, "1": 40}, "trips.errors": {"0": 3}},
    "load": 2,
    "loaded_from": {"trips": {"0": 5, "1": 20}},
}


def move(**offsets: int) -> LogMove:
    return plan_move(POSITION, {"trips": {name[1:]: offset for name, offset in offsets.items()}}, KEPT)


def test_back_is_read_again_and_forward_is_left_out() -> None:
    assert (move(p0=50).skipped, move(p0=50).read_again) == (0, 0)
    assert (move(p0=10).skipped, move(p0=10).read_again) == (0, 40)
    assert (move(p0=90).skipped, move(p0=90).read_again) == (40, 0)
    both = move(p0=90, p1=39)
    assert (both.skipped, both.read_again) == (40, 1)


def test_what_is_not_named_stays_where_it_is() -> None:
    position = move(p1=30).position(POSITION)
    assert position == {**POSITION, LOG: {"trips": {"0": 50, "1": 30}, "trips.errors": {"0": 3}}}


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        ({"p0": 91}, "ends at 90, and 91 was asked for. Name an offset from 10 to 90"),
        ({"p0": 9}, "keeps messages from 10 on, and 9 was asked for. Go back to 10, or bootstrap"),
        ({"p1": 19}, "was loaded from 20 on, and 19 was asked for. .* could bring deleted rows back. Go back to 20"),
        ({"p7": 1}, "no partition `7`. It has `0`, `1`"),
    ],
)
def test_a_place_that_makes_no_sense_is_refused_with_the_remedy(offsets: dict[str, int], why: str) -> None:
    with pytest.raises(UnfitMove, match=why):
        move(**offsets)


def test_a_topic_that_is_not_there_has_no_partition() -> None:
    with pytest.raises(UnfitMove, match="It has none"):
        plan_move(POSITION, {"others": {"0": 1}}, KEPT)


def test_of_a_load_whose_beginning_is_not_known_the_first_may_go_back_only() -> None:
    """Between two loads nobody may have captured."""
    old = {"log": POSITION["log"], "load": 1}
    assert least_offsets(old, KEPT) == {"trips": {"0": 10, "1": 0}, "trips.errors": {"0": 0}}
    assert least_offsets({**old, "load": 2}, KEPT) == POSITION["log"]


def test_a_topic_that_the_copy_has_not_seen_is_read_from_its_first_message_on() -> None:
    assert offsets_of({"log": {}}, KEPT)["trips"] == {"0": 10, "1": 0}


OFFSETS = st.fixed_dictionaries({"0": st.integers(10, 90), "1": st.integers(20, 40)})


@given(OFFSETS, OFFSETS)
def test_there_and_back_is_where_it_was(there: dict[str, int], back: dict[str, int]) -> None:
    position: dict[str, Any] = {**POSITION, "log": {"trips": back, "trips.errors": {"0": 3}}}
    away = plan_move(position, {"trips": there}, KEPT)
    returned = plan_move(away.position(position), {"trips": back}, KEPT)
    assert returned.position(away.position(position)) == position
    assert (away.skipped, away.read_again) == (returned.read_again, returned.skipped)
