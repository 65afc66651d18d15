"""From where a server is tapped: what is captured must not lose a change, and what has lost some stops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingestion.capture.binlog_files import BinlogFiles
from ingestion.capture.tap.position import TapPosition, TapState
from ingestion.tapping.beginning import PURGE_WARNING, Beginning, Untappable, beginning

FILES = BinlogFiles("0-1-10", "0-1-30", "0-1-20")
NEWEST = TapPosition("0-1-30")


def stored(gtid: str) -> TapState:
    return TapState(TapPosition(gtid, f"{gtid}0", {"trips.1": 5}))


def begun(state: TapState | None, *live: str) -> Beginning:
    return beginning("db:3306", state, FILES, live)


def test_a_server_that_nobody_has_tapped_begins_at_its_newest_transaction() -> None:
    assert begun(None) == Beginning(NEWEST)


def test_a_tap_goes_on_where_the_last_one_was_also_within_a_transaction() -> None:
    state = stored("0-1-25")
    assert begun(state, "trips.1") == Beginning(state.position)


def test_what_nobody_needs_is_not_read() -> None:
    assert begun(stored("0-1-25")) == begun(stored("0-1-2")) == begun(stored("9-1-99")) == Beginning(NEWEST)


def test_who_is_in_the_oldest_file_is_warned() -> None:
    state = stored("0-1-15")
    assert begun(state, "trips.1") == Beginning(state.position, warning=PURGE_WARNING)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (stored("0-1-9"), "removed changes from its binlog before they were captured, after 0-1-9"),
        (stored(""), "after its beginning"),
        (None, "The changelog has no place of the tap of db:3306"),
    ],
)
def test_what_has_lost_changes_stops_and_all_else_goes_on(state: TapState | None, why: str) -> None:
    begins = begun(state, "trips.1", "riders.2")
    assert begins.position == NEWEST
    assert list(begins.stops) == ["trips.1", "riders.2"]
    assert all(why in reason and "Load the dataset again" in reason for reason in begins.stops.values())


@pytest.mark.parametrize("gtid", ["0-1-31", "1-1-15"])
def test_a_server_that_does_not_know_the_place_is_not_tapped(gtid: str) -> None:
    with pytest.raises(Untappable, match=rf"db:3306 does not know the transaction {gtid}.*load all of its datasets"):
        begun(stored(gtid), "trips.1")


def test_captures_that_arrive_are_read_from_the_earliest_place_and_others_wait_for_it() -> None:
    state = TapState(TapPosition("0-1-25", "0-1-26", {"trips.1": 5}))
    arrived = {"fares.3": TapPosition("0-1-22", "0-1-23", {"fares.3": 2}), "cars.4": TapPosition("0-1-22")}
    begins = beginning("db:3306", state, FILES, ["trips.1", "riders.2"], arrived)
    assert (begins.position, begins.stops) == (TapPosition("0-1-22"), {})
    assert begins.places == {
        "trips.1": TapPosition("0-1-25", "0-1-26", {"trips.1": 5}),
        "riders.2": TapPosition("0-1-25"),
        "fares.3": arrived["fares.3"],
    }


def test_captures_that_arrive_at_a_server_that_nobody_has_tapped_are_its_first() -> None:
    arrived = {"fares.3": TapPosition("0-1-22")}
    assert beginning("db:3306", None, FILES, [], arrived) == Beginning(TapPosition("0-1-22"))


def test_one_that_had_left_and_has_lost_changes_meanwhile_stops_alone() -> None:
    state = replace(stored("0-1-25"), places={"riders.2": TapPosition("0-1-9")})
    begins = begun(state, "trips.1", "riders.2")
    assert (begins.position, [*begins.stops]) == (state.position, ["riders.2"])
