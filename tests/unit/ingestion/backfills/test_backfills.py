"""Which partitions a backfill names, how they are cut, what may become of it, and the time that it still takes."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.backfills import chunks
from ingestion.domain.backfills.chunks import cut, partitions_between, partitions_named
from ingestion.domain.backfills.remaining import backfill_time_left
from ingestion.domain.backfills.states import ACTIONS, TRANSITIONS, states_for
from lakehub.kernel.partitions import Grain

UTC, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")


def test_a_range_has_all_partitions_of_the_calendar_with_both_ends() -> None:
    assert partitions_between("2013-02-27", "2013-03-01", Grain.DAY, UTC) == ["2013-02-27", "2013-02-28", "2013-03-01"]
    assert partitions_between("2013-01-01", "2013-01-01", Grain.DAY, UTC) == ["2013-01-01"]
    assert partitions_between("2012-12", "2013-01", Grain.MONTH, UTC) == ["2012-12", "2013-01"]


def test_hours_of_a_day_on_which_clocks_go_back_are_all_there() -> None:
    names = partitions_between("2026-10-25T01", "2026-10-25T03", Grain.HOUR, BERLIN)
    assert names == ["2026-10-25T01", "2026-10-25T02", "2026-10-25T02+0100", "2026-10-25T03"]


@pytest.mark.parametrize(
    ("first", "last", "grain", "expected"),
    [
        ("2013-01-02", "2013-01-01", Grain.DAY, "`first` 2013-01-02 lies after `last` 2013-01-01"),
        ("2013-01", "2013-01-02", Grain.DAY, "'2013-01' is not the name of a partition by day"),
        ("2013-01-01", "tomorrow", Grain.DAY, "'tomorrow' is not the name of a partition by day"),
        ("2013-02-30", "2013-03-01", Grain.DAY, "2013-02-30"),
        ("a", "b", Grain.NONE, "its partitions are no times"),
        ("1950-01-01T00", "2013-01-01T00", Grain.HOUR, "20,000 partitions at most"),
        ("9999-12-31", "9999-12-31", Grain.DAY, "outside the years"),
    ],
)
def test_what_is_no_range_is_refused_by_name(first: str, last: str, grain: Grain, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        partitions_between(first, last, grain, UTC)


def test_a_list_is_ordered_by_time_and_has_each_once() -> None:
    names = ["2013-01-03", "2013-01-01", "2013-01-03"]
    assert partitions_named(names, Grain.DAY, UTC) == ["2013-01-01", "2013-01-03"]
    assert partitions_named(["UA", "AA", "UA"], Grain.NONE, UTC) == ["UA", "AA"]


def test_an_empty_list_and_an_unknown_name_are_refused() -> None:
    with pytest.raises(ValueError, match="no partition is named"):
        partitions_named([], Grain.DAY, UTC)
    with pytest.raises(ValueError, match="'2013-13-01' is not the name of a partition"):
        partitions_named(["2013-01-01", "2013-13-01"], Grain.DAY, UTC)


def test_too_many_name_where_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MAX_PARTITIONS", 2)
    with pytest.raises(ValueError, match=r"2 partitions at most.*end it before `2013-01-03`"):
        partitions_between("2013-01-01", "2013-01-09", Grain.DAY, UTC)


def test_the_last_chunk_has_what_is_left() -> None:
    assert cut(["a", "b", "c", "d", "e"], 2) == [["a", "b"], ["c", "d"], ["e"]]


@given(st.lists(st.text(max_size=3), max_size=50), st.integers(1, 12))
def test_chunks_have_all_partitions_in_order_and_no_more_than_their_size(names: list[str], size: int) -> None:
    parts = cut(names, size)
    assert [name for part in parts for name in part] == names
    assert all(len(part) == size for part in parts[:-1])
    assert all(1 <= len(part) <= size for part in parts)


def test_the_time_left_goes_by_the_partitions_that_are_done() -> None:
    assert backfill_time_left(took=timedelta(minutes=4), done=20, left=5) == timedelta(minutes=1)
    assert backfill_time_left(took=timedelta(minutes=4), done=20, left=0) == timedelta()


def test_there_is_no_time_left_before_the_first_chunk_is_done() -> None:
    assert backfill_time_left(took=timedelta(), done=0, left=25) is None


def test_only_what_has_failed_is_tried_again_and_what_is_over_stays_so() -> None:
    assert states_for("retry") == ["failed"]
    assert {TRANSITIONS.get((state, action)) for state in ("succeeded", "cancelled") for action in ACTIONS} == {None}
