"""Wherever a tap is killed, what it has counted of the source's rows is what the changelog has, hour by hour; a message that goes astray is missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.capture.binlog.events import (
    Begin,
    BinlogEvent,
    End,
    Ending,
    Gtid,
    RolledBackTo,
    RowChange,
    RowsChanged,
    Savepoint,
    Statement,
)
from ingestion.capture.source_counts import HourCounts, SourceCounts, news_in
from ingestion.capture.tap import tap as module
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.tap.encoded_table import EncodedTable
from ingestion.capture.tap.tap import Tap
from ingestion.heatpipe.reading import ERRORS_SUFFIX, hour_of
from lakehub.kernel.cells.cell_tables import CellOptions
from tests.unit.ingestion.capture.cells import cell_row, cell_table
from tests.unit.ingestion.capture.tapping import (
    NOW,
    RIDERS,
    TRIPS,
    Log,
    Server,
    Tapping,
    Versions,
    inserted,
    row,
    transaction,
)
from tests.unit.ingestion.capture.topic_tapping import ORDERS, TopicTapping

BROKEN = b"\xff"
"""No text of a city."""


def changes() -> st.SearchStrategy[RowChange]:
    keys, cities = st.integers(1, 3), st.sampled_from(["Ulm", "Bonn", BROKEN])
    rows: st.SearchStrategy[dict[str, Any]] = st.builds(row, keys, cities)
    either = st.one_of(st.tuples(st.none(), rows), st.tuples(rows, st.none()), st.tuples(rows, rows))
    return either.map(lambda pair: RowChange(*pair))


@st.composite
def binlogs(draw: st.DrawFn) -> list[tuple[BinlogEvent, ...]]:
    """Inserts, updates, some with another key or a value that cannot be read, and deletes; whole, rolled back to a savepoint, or altogether."""
    table_rows = st.builds(RowsChanged, st.sampled_from([TRIPS, RIDERS]), st.lists(changes(), min_size=1, max_size=4))
    undone = st.lists(table_rows, max_size=2).map(lambda rows: [Savepoint("s"), *rows, RolledBackTo("s")])
    kept = st.lists(table_rows, max_size=2).map(lambda rows: [Savepoint("s"), *rows])
    event = st.one_of(table_rows.map(lambda rows: [rows]), undone, kept)
    endings = st.sampled_from([Ending.COMMITTED, Ending.COMMITTED, Ending.ROLLED_BACK, None])
    made = []
    for sequence, events in enumerate(draw(st.lists(st.lists(event, max_size=3), min_size=1, max_size=5)), 1):
        ending = draw(endings)
        made.append(
            (Begin(Gtid(0, 1, sequence), NOW), *chain.from_iterable(events), *([] if ending is None else [End(ending)]))
        )
    return [*made, transaction(900)]


def logged(log: Log) -> dict[str, Counter[str]]:
    """By hour and topic."""
    counts = defaultdict[str, Counter[str]](Counter)
    for message, at in zip(log.messages, log.logged_at, strict=True):
        counts[hour_of(at)][message.topic.removesuffix(ERRORS_SUFFIX)] += 1
    return counts


class Keeper:
    """Keeps what a tap has counted, as a database does: hours that a tap has forgotten stay as they were told."""

    def __init__(self) -> None:
        self.hours = defaultdict[str, dict[str, int | None]](dict)

    def keep(self, counts: HourCounts) -> None:
        for hour, of in counts.items():
            self.hours[hour] |= of

    def take(self, tap: Tap) -> None:
        self.keep(tap.counts)
        tap.forget_counts_before(max(tap.counts, default=""))

    def known(self, *, stopped: Mapping[str, Any]) -> dict[tuple[str, str], int | None]:
        return {(hour, topic): n for hour, of in self.hours.items() for topic, n in of.items() if topic not in stopped}


@settings(max_examples=300)
@given(st.data())
def test_what_is_counted_is_what_the_log_has_wherever_the_tap_is_killed(data: st.DataObject) -> None:
    """Also within a transaction, over the end of an hour, and where nobody has kept the counts before the kill."""
    tapping = Tapping(Server(data.draw(binlogs()), at_once=data.draw(st.integers(1, 5))))
    tapping.wall_s, tapping.look_s = data.draw(st.sampled_from([0.0, 1700.0])), data.draw(st.sampled_from([2.0, 0.0]))
    keeper = Keeper()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MAX_PENDING", data.draw(st.sampled_from([1, 4, 100])))
        for steps in data.draw(st.lists(st.integers(0, 6), max_size=5)):
            killed = tapping.tap()
            keeper.keep(killed.counts)
            for _ in range(steps):
                killed.step()
                if data.draw(st.booleans()):
                    keeper.take(killed)
        tapping.run()
    keeper.keep((tapping.log.stored or {})["counts"])
    log = logged(tapping.log)
    expected = {(hour, topic): n for hour, of in log.items() for topic, n in of.items() if topic not in tapping.stopped}
    assert {place: n for place, n in keeper.known(stopped=tapping.stopped).items() if n} == expected


def test_rows_of_an_open_transaction_are_counted_with_their_commit_only() -> None:
    """While what is whole is committed, the next one is under way, and then rolled back."""
    rolled_back = (Begin(Gtid(0, 1, 2), NOW), inserted(TRIPS, row(2)), End(Ending.ROLLED_BACK))
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1))), rolled_back], at_once=5), look_s=2.0)
    tapping.run()
    assert tapping.log.commits == 2
    assert (tapping.log.stored or {})["counts"] == {hour_of(NOW): {"trips": 1}}


def test_a_savepoint_behind_which_all_is_committed_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 2)
    large = (
        Begin(Gtid(0, 1, 1), NOW),
        inserted(TRIPS, row(1), row(2)),
        inserted(TRIPS, row(3)),
        Statement("shop", "DROP TABLE riders"),
        Savepoint("s"),
        inserted(TRIPS, row(4)),
        RolledBackTo("s"),
        End(),
    )
    tapping = Tapping(Server([large], at_once=5), look_s=2.0)
    tapping.run()
    assert list(tapping.stopped) == ["riders"]
    assert (tapping.log.stored or {})["counts"] == {hour_of(NOW): {"trips": 3, "riders": None}}


@pytest.mark.parametrize("lost", [1, 2])
def test_a_message_that_is_dropped_between_the_row_and_the_log_is_counted(
    lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken on purpose: the encoding loses one, and the tap takes the row for captured."""
    encoded = EncodedTable.messages

    def dropping(*args: Any) -> Iterator[Any]:
        messages = [*encoded(*args)]
        return iter(messages if args[-1].after["id"] != 2 else messages[lost:])

    monkeypatch.setattr(EncodedTable, "messages", dropping)
    update = RowsChanged(TRIPS, [RowChange(row(5), row(2)), RowChange(row(6), row(6, "Kiel"))])
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1))), transaction(2, update)]))
    tapping.run()
    counted = (tapping.log.stored or {})["counts"][hour_of(NOW)]["trips"]
    assert (counted, logged(tapping.log)[hour_of(NOW)]["trips"]) == (4, 4 - lost)


@pytest.mark.parametrize("skips", [-1, 1])
def test_a_tap_that_goes_on_at_a_wrong_row_is_found_out(skips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows within a transaction that a kill has cut: one is skipped, or comes again."""
    large = transaction(1, inserted(TRIPS, *map(row, range(6))))
    tapping = Tapping(Server([large[:1] + tuple(inserted(TRIPS, row(n)) for n in range(6)) + large[2:]], at_once=3))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MAX_PENDING", 1)
        tapping.tap().step()
    taken = Tap._take_row

    def wrong(tap: Tap, table: Any, transaction: Any, number: int, change: RowChange) -> None:
        for _ in range(2 if skips < 0 and number == 2 else 0 if skips > 0 and number == 2 else 1):
            taken(tap, table, transaction, number, change)

    monkeypatch.setattr(Tap, "_take_row", wrong)
    tapping.run()
    assert (tapping.log.stored or {})["counts"][hour_of(NOW)] == {"trips": 6}
    assert logged(tapping.log)[hour_of(NOW)]["trips"] == 6 - skips


def test_of_a_table_that_is_stopped_nobody_knows_what_ought_to_have_come() -> None:
    binlog = [
        transaction(1, inserted(TRIPS, row(1)), inserted(RIDERS, row(2))),
        transaction(2, Statement("shop", "DROP TABLE trips")),
        transaction(3, inserted(RIDERS, row(3))),
    ]
    tapping = Tapping(Server(binlog))
    tapping.run()
    assert (tapping.log.stored or {})["counts"] == {hour_of(NOW): {"trips": None, "riders": 2}}


def test_cells_are_counted_by_what_becomes_of_them() -> None:
    """A new one is a message, one that was changed is put aside, and one that was purged or written as it was is none."""
    first, other = cell_row("a", "base", 1, '{"x": 1}'), cell_row("a", "base", 1, '{"x": 2}')
    events = RowsChanged(
        cell_table(),
        [RowChange(None, first), RowChange(first, other), RowChange(first, dict(first)), RowChange(first, None)],
    )
    tapping = Tapping(Server([transaction(1, events)]), versions=Versions(keeps=True))
    tapping.run([CaptureSpec("cells", "shop", "cells", record_key=("row_key",), cells=CellOptions())])
    assert (tapping.log.stored or {})["counts"][hour_of(NOW)] == {"cells": 2}
    assert sum(logged(tapping.log)[hour_of(NOW)].values()) == 2


def test_messages_of_a_topic_are_counted_as_they_come() -> None:
    tapping = TopicTapping()
    for value in ({"id": 1}, b"no JSON", {"id": 2}):
        tapping.topic.send(None, value)
        tapping.take()
    stored = tapping.log.position() or {}
    assert [*stored["counts"].values()] == [{ORDERS: 3}]


def test_an_hour_to_which_the_clock_was_set_back_is_not_known() -> None:
    """It may be told and forgotten; the next hour is known again."""
    counts = SourceCounts({hour_of(NOW): {"trips": 3}})
    for hours in (-1, -1, 0, 1):
        counts.add("trips", 1)
        counts.end_transaction()
        counts.note_committed(counts.after_commit(NOW + timedelta(hours=hours), with_open=False), with_open=False)
    assert [of["trips"] for _, of in sorted(counts.hours.items())] == [None, 4, 1]


def test_what_is_told_is_what_has_changed() -> None:
    known = {"2026-11-26T11": {"a": 1, "b": 2}}
    assert news_in({"2026-11-26T11": {"a": 1, "b": None}, "2026-11-26T12": {}}, known) == {"2026-11-26T11": {"b": None}}
