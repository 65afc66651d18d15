"""Captures that go on at another server: from whatever place each of them comes, and however that server cuts rows into events, each change is there once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.capture.binlog.events import Begin, BinlogEvent, End, Gtid, RowsChanged, Statement
from ingestion.capture.tap import tap as module
from ingestion.capture.tap.position import TapPosition, TapState, joined
from ingestion.capture.tap.tap import Tap
from tests.unit.ingestion.capture.tapping import (
    NOW,
    RIDERS,
    SPECS,
    TRIPS,
    Server,
    Tapping,
    inserted,
    keys,
    row,
    transaction,
)
from tests.unit.ingestion.capture.test_tap import binlogs, keys_in


def cut_anew(binlog: list[tuple[BinlogEvent, ...]], rows: int) -> list[tuple[BinlogEvent, ...]]:
    """As a replica writes it: so many rows in an event."""

    def cut(event: BinlogEvent) -> Iterator[BinlogEvent]:
        if not isinstance(event, RowsChanged):
            yield event
            return
        for start in range(0, len(event.changes), rows):
            yield RowsChanged(event.table, event.changes[start : start + rows])

    return [tuple(piece for event in events for piece in cut(event)) for events in binlog]


def state_of(tapping: Tapping) -> TapState:
    return TapState(TapPosition("")) if tapping.log.stored is None else TapState.from_json(tapping.log.stored)


def lead_on(tapping: Tapping, state: TapState) -> None:
    """What the tap of the new server begins with."""
    position, places = joined({spec.topic: state.place_of(spec.topic) for spec in SPECS[:2]})
    tapping.log.stored = TapState(position, state.stopped, state.known, places).as_json()


def take_steps(tap: Tap, steps: int) -> None:
    for _ in range(steps):
        tap.step()


@settings(max_examples=200)
@given(st.data())
def test_captures_that_leave_and_arrive_one_by_one_have_each_change_once(data: st.DataObject) -> None:
    binlog = data.draw(binlogs())
    steps = st.integers(0, 12)
    tapping = Tapping(Server(binlog, at_once=data.draw(st.integers(1, 3))))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MAX_PENDING", data.draw(st.integers(1, 4)))
        stays = data.draw(st.sampled_from(SPECS[:2]))
        take_steps(tapping.tap(), data.draw(steps))
        state = state_of(tapping)
        left = {spec.topic: state.place_of(spec.topic) for spec in SPECS[:2] if spec != stays}
        tapping.log.stored = TapState(state.position, state.stopped, state.known, left).as_json()
        take_steps(tapping.tap([stays]), data.draw(steps))
        tapping.server = Server(cut_anew(binlog, data.draw(st.integers(1, 4))), at_once=3)
        lead_on(tapping, state_of(tapping))
        for killed_after in data.draw(st.lists(steps, max_size=3)):
            take_steps(tapping.tap(), killed_after)
        tapping.run()
    assert tapping.stopped == {}
    assert state_of(tapping).places == {}
    for of in (TRIPS, RIDERS):
        assert keys(tapping.events(of.table)) == [*keys_in(binlog, of)]


def test_what_one_has_taken_already_stops_it_no_more() -> None:
    """The statement is in what is read again for the other."""
    truncated = (Begin(Gtid(0, 1, 2), NOW), Statement("shop", "TRUNCATE trips"), End())
    tapping = Tapping(
        Server([transaction(1, inserted(RIDERS, row(1))), truncated, transaction(3, inserted(TRIPS, row(2)))])
    )
    lead_on(tapping, TapState(TapPosition(""), places={"trips": TapPosition("0-1-2")}))
    tapping.run()
    assert tapping.stopped == {}
    assert (keys(tapping.events("riders")), keys(tapping.events("trips"))) == ([1], [2])


@pytest.mark.parametrize("has_place_of_its_own", [True, False])
def test_a_transaction_that_was_taken_in_part_and_is_not_there_stops_its_tables_alone(
    *, has_place_of_its_own: bool
) -> None:
    """The server was promoted before it had got it."""
    tapping = Tapping(
        Server([transaction(1), (Begin(Gtid(0, 2, 2), NOW), inserted(TRIPS, row(2)), inserted(RIDERS, row(3)), End())])
    )
    place = TapPosition("0-1-1", "0-1-2", {"trips": 5})
    state = TapState(TapPosition("0-1-1"), places={"trips": place}) if has_place_of_its_own else TapState(place)
    tapping.log.stored = state.as_json()
    tapping.run()
    assert [*tapping.stopped] == ["trips"]
    assert (
        "0-1-2 was captured in part, and the server does not have it: 0-2-2 comes after 0-1-1"
        in tapping.stopped["trips"]
    )
    assert (keys(tapping.events("trips")), keys(tapping.events("riders"))) == ([], [3])


def test_the_place_says_by_what_another_server_shows_that_it_has_it() -> None:
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1))), transaction(2, inserted(TRIPS, row(2)))]))
    tapping.run()
    position = state_of(tapping).position
    assert (position.gtid, position.before, position.at) == ("0-1-2", "0-1-1", NOW.isoformat())


def test_a_state_of_an_earlier_version_is_read() -> None:
    stored = {"gtid": "0-1-5", "begun": "0-1-6", "taken": {"trips": 2}, "stopped": {}, "keys": {}}
    state = TapState.from_json(stored)
    assert state.place_of("trips") == state.position == TapPosition("0-1-5", "0-1-6", {"trips": 2})
    assert state.place_of("riders") == TapPosition("0-1-5")
    assert TapState.from_json(state.as_json()) == state
