"""Wherever a tap is killed and begun anew, the changelog has each change once and in order; a table that cannot be captured stops alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.capture.binlog.events import (
    Begin,
    BinlogError,
    BinlogEvent,
    End,
    Ending,
    Gtid,
    RolledBackTo,
    RowChange,
    RowsChanged,
    Savepoint,
    Statement,
    Unreadable,
)
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.tap import tap as module
from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.capture.tap.position import reference_key, reference_key_after
from ingestion.changelog import ChangelogError
from ingestion.domain.merging.events import Operation
from ingestion.domain.schema import Schema
from tests.unit.ingestion.capture.tapping import (
    NO_KEY,
    NOW,
    RIDERS,
    SPECS,
    TRIPS,
    Server,
    Tapping,
    Versions,
    inserted,
    keys,
    row,
    table,
    transaction,
)


@st.composite
def binlogs(draw: st.DrawFn) -> list[tuple[BinlogEvent, ...]]:
    """Rows of two tables, each with a number of its own as its key."""
    numbers = iter(range(1000))

    def rows_of(count: int, of: TableMap) -> RowsChanged:
        return inserted(of, *(row(next(numbers)) for _ in range(count)))

    events = st.tuples(st.integers(1, 4), st.sampled_from([TRIPS, RIDERS]))
    plans = draw(st.lists(st.lists(events, max_size=4), min_size=1, max_size=5))
    return [transaction(n, *(rows_of(*plan) for plan in plans_of)) for n, plans_of in enumerate(plans, 1)]


def keys_in(binlog: Sequence[tuple[BinlogEvent, ...]], of: TableMap) -> Iterator[int]:
    for events in binlog:
        for event in events:
            if isinstance(event, RowsChanged) and event.table == of:
                yield from (change.after["id"] for change in event.changes if change.after)


@settings(max_examples=200)
@given(st.data())
def test_a_tap_that_is_killed_anywhere_writes_each_change_once(data: st.DataObject) -> None:
    binlog = data.draw(binlogs())
    tapping = Tapping(Server(binlog, at_once=data.draw(st.integers(1, 5))))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MAX_PENDING", data.draw(st.integers(1, 4)))
        for steps in data.draw(st.lists(st.integers(0, 6), max_size=5)):
            killed = tapping.tap()
            for _ in range(steps):
                killed.step()
        tapping.run()
    for of in (TRIPS, RIDERS):
        assert keys(tapping.events(of.table)) == [*keys_in(binlog, of)]


def test_a_process_that_knows_another_table_goes_on_within_a_transaction() -> None:
    """What was taken is counted by table."""
    large = transaction(1, inserted(TRIPS, row(1), row(2)), inserted(RIDERS, row(3)), inserted(TRIPS, row(4)))
    tapping = Tapping(Server([large], at_once=2))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MAX_PENDING", 1)
        tapping.tap(SPECS[:1]).step()
    assert tapping.log.stored == {
        "gtid": "",
        "begun": "0-1-1",
        "taken": {"trips": 2},
        "stopped": {},
        "keys": {"trips": [1, ["id"], ["id"], [["id", 3, [], False, 63, []]]]},
        "before": "",
        "at": "",
        "places": {},
        "moved": {},
        "counts": {"2026-11-26T12": {"trips": 2}},
    }
    tapping.run()
    assert (keys(tapping.events()), keys(tapping.events("riders"))) == ([1, 2, 4], [3])


def test_a_row_whose_key_changes_is_deleted_and_inserted() -> None:
    change = RowsChanged(
        TRIPS, [RowChange(row(1), row(2, "Bonn")), RowChange(row(3), row(3, "Kiel")), RowChange(row(4), None)]
    )
    tapping = Tapping(Server([transaction(1, change)]))
    tapping.run()
    assert tapping.events() == [
        ("delete", {"id": 1}),
        ("update", row(2, "Bonn")),
        ("update", row(3, "Kiel")),
        ("delete", {"id": 4}),
    ]


def test_reference_keys_grow_along_the_log_and_a_read_row_lies_between_two_transactions() -> None:
    keys = [
        reference_key(7, 0),
        reference_key(7, 1),
        reference_key(7, 2**40),
        reference_key_after(7),
        reference_key(8, 0),
    ]
    assert keys == sorted(keys)
    assert reference_key(1, 0, epoch=1) > reference_key_after(2**60)


def test_a_table_that_changes_is_written_by_another_version_from_there_on() -> None:
    wider = table("trips", MappedColumn("seats", ColumnKind.TINY))
    binlog = [
        transaction(1, inserted(TRIPS, row(1))),
        transaction(2, Statement("shop", "ALTER TABLE trips ADD seats tinyint")),
        transaction(3, inserted(wider, row(2, seats=4)), inserted(wider, row(3, seats=None))),
    ]
    tapping = Tapping(Server(binlog))
    tapping.run()
    assert [values for _, values in tapping.events()] == [row(1), row(2, seats=4), row(3, seats=None)]
    assert [schema.version for schema, _ in tapping.versions.known] == [1, 2]


def test_a_column_that_is_gone_is_null_from_then_on() -> None:
    """In the lake it would keep the value that it had."""
    wider = table("trips", MappedColumn("seats", ColumnKind.TINY))
    tapping = Tapping(
        Server(
            [
                transaction(1, inserted(wider, row(1, seats=4))),
                transaction(2, RowsChanged(TRIPS, [RowChange(row(1), row(1))])),
            ]
        )
    )
    version_of = tapping.versions.version_of
    tapping.versions.version_of = lambda subject, columns: version_of(
        subject, Schema.of(columns.types | {"seats": "int"})
    )  # type: ignore[method-assign]
    tapping.run()
    assert [values["seats"] for _, values in tapping.events()] == [4, None]


def test_a_table_that_cannot_be_captured_stops_alone_and_is_told_once() -> None:
    wider = table("trips", MappedColumn("seats", ColumnKind.TINY))
    binlog = [
        transaction(1, inserted(NO_KEY, row(1)), inserted(NO_KEY, row(2)), inserted(TRIPS, row(3))),
        transaction(
            2, Unreadable("shop", "riders", "no idea"), inserted(wider, row(4, seats=1)), inserted(RIDERS, row(5))
        ),
    ]
    tapping = Tapping(Server(binlog), versions=Versions(refuses=("seats",)))
    tapping.run(SPECS)
    assert keys(tapping.events()) == [3]
    assert sorted(tapping.stops) == ["no_key", "riders", "trips"]
    assert "has no primary key. Give it one" in tapping.stopped["no_key"]
    assert tapping.stopped["riders"] == "The binlog's rows of `shop.riders` cannot be read: no idea"
    assert not [message for message in tapping.log.messages if message.topic in ("riders", "no_key")]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("TRUNCATE TABLE trips", r"`shop\.trips` was truncated: .*Load the dataset again, with `replace`"),
        ("DROP TABLE trips, other", r"`shop\.trips` was dropped"),
        ("DROP DATABASE shop", r"`shop\.trips` was dropped"),
        ("RENAME TABLE trips TO old_trips, new_trips TO trips", r"`shop\.trips` was renamed to `shop\.old_trips`"),
        ("ALTER TABLE trips DROP PARTITION p0", r"`shop\.trips` has lost rows with a partition"),
    ],
)
def test_a_table_whose_rows_go_without_a_word_stops(sql: str, reason: str) -> None:
    """What is captured after it would hide that they are still in the lake."""
    binlog = [
        transaction(1, inserted(TRIPS, row(1)), inserted(RIDERS, row(2))),
        transaction(2, Statement("shop", sql)),
        transaction(3, inserted(TRIPS, row(3)), inserted(RIDERS, row(4))),
    ]
    tapping = Tapping(Server(binlog))
    tapping.run()
    assert keys(tapping.events()) == [1]
    assert re.search(reason, tapping.stopped["trips"]), tapping.stopped
    assert ("riders" in tapping.stopped) == (sql == "DROP DATABASE shop")


def test_a_table_that_was_stopped_stays_so_until_it_is_loaded_again() -> None:
    """Whichever process goes on."""
    binlog = [transaction(1, Statement("shop", "TRUNCATE trips")), transaction(2, inserted(TRIPS, row(1)))]
    tapping = Tapping(Server(binlog))
    tapping.run()
    tapping.server.transactions = [*binlog, transaction(3, inserted(TRIPS, row(2)))]
    tapping.run()
    assert tapping.events() == []
    tapping.server.transactions = [*tapping.server.transactions, transaction(4, inserted(TRIPS, row(3)))]
    tapping.run([replace(SPECS[0], load=2)])
    assert keys(tapping.events()) == [3]


@st.composite
def rolled_back_binlogs(draw: st.DrawFn) -> tuple[list[tuple[BinlogEvent, ...]], list[int]]:
    """Some transactions are rolled back, whole, to a savepoint, or as the server died; and the keys that stand."""
    numbers, binlog, standing = iter(range(1000)), [], list[int]()
    for sequence in range(1, draw(st.integers(1, 6)) + 1):
        before, after = ([next(numbers) for _ in range(draw(st.integers(0, 3)))] for _ in range(2))
        to_savepoint, ending = draw(st.booleans()), draw(st.sampled_from([*Ending, None]))
        events: list[BinlogEvent] = [
            Begin(Gtid(0, 1, sequence), NOW),
            inserted(TRIPS, *map(row, before)),
            Savepoint("s"),
        ]
        events += [inserted(TRIPS, *map(row, after)), *([RolledBackTo("s")] if to_savepoint else [])]
        binlog.append((*events, *([] if ending is None else [End(ending)])))
        if ending is Ending.COMMITTED:
            standing += before + ([] if to_savepoint else after)
        if ending is Ending.PREPARED and before + after:
            break
    return [*binlog, transaction(900)], standing


@settings(max_examples=200)
@given(rolled_back_binlogs(), st.integers(1, 9), st.lists(st.integers(0, 6), max_size=4), st.sampled_from([0.0, 2.0]))
def test_what_was_rolled_back_never_was(
    drawn: tuple[list[tuple[BinlogEvent, ...]], list[int]], at_once: int, kills: list[int], look_s: float
) -> None:
    """Although what is whole is committed while the next is open."""
    binlog, standing = drawn
    tapping = Tapping(Server(binlog, at_once=at_once), look_s=look_s)
    for steps in kills:
        killed = tapping.tap()
        for _ in range(steps):
            killed.step()
    tapping.run()
    assert keys(tapping.events()) == standing


def test_a_large_transaction_that_is_rolled_back_after_a_part_of_it_was_committed_stops_its_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever reads the changelog may have applied it; and whichever process meets its end."""
    monkeypatch.setattr(module, "MAX_PENDING", 2)
    large = (
        Begin(Gtid(0, 1, 1), NOW),
        inserted(TRIPS, row(1), row(2)),
        inserted(RIDERS, row(3)),
        End(Ending.ROLLED_BACK),
    )
    for kills in (0, 1):
        tapping = Tapping(Server([large], at_once=2))
        for _ in range(kills):
            tapping.tap().step()
        tapping.run()
        assert list(tapping.stopped) == ["trips"]
        assert "0-1-1 was rolled back after a part of it was captured" in tapping.stopped["trips"]
        assert tapping.events("riders") == []


def test_a_distributed_transaction_stops_the_tables_that_it_changes_and_no_other() -> None:
    prepared = (Begin(Gtid(0, 1, 1), NOW), inserted(TRIPS, row(1)), End(Ending.PREPARED))
    tapping = Tapping(Server([prepared, transaction(2, inserted(RIDERS, row(2)))]))
    tapping.run()
    assert (list(tapping.stopped), tapping.events()) == (["trips"], [])
    assert keys(tapping.events("riders")) == [2]


def test_a_transaction_of_another_domain_is_refused() -> None:
    """The position names one transaction, and of the other domain everything would come again."""
    other = (Begin(Gtid(7, 1, 1), NOW), End())
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1))), other]))
    with pytest.raises(
        BinlogError, match=r"7-1-1 is in another GTID domain than 0-1-1, .*Write with one `gtid_domain_id`"
    ):
        tapping.run()


def test_what_is_whole_is_committed_while_more_keeps_coming() -> None:
    tapping = Tapping(Server([transaction(n, inserted(TRIPS, row(n))) for n in range(1, 40)], at_once=3))
    tap = tapping.tap()
    for _ in range(20):
        tap.step()
        tapping.at += 0.4
    assert tapping.log.commits > 3
    assert len(keys(tapping.events())) > 5


def test_a_tap_that_has_failed_goes_on_no_more() -> None:
    """What it had taken is gone; another goes on from what is committed."""
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1)))], at_once=9))
    tap = tapping.tap()
    tapping.log.fails = True
    with pytest.raises(OSError, match="full"):
        tap.step()
    tapping.log.fails = False
    with pytest.raises(ChangelogError, match="Begin another"):
        tap.step()
    tapping.run()
    assert keys(tapping.events()) == [1]


def test_a_table_that_another_process_does_not_know_is_stopped_still_when_it_is_known_again() -> None:
    binlog = [transaction(1, Statement("shop", "TRUNCATE trips")), transaction(2, inserted(RIDERS, row(1)))]
    tapping = Tapping(Server(binlog))
    tapping.run()
    tapping.server.transactions = [*binlog, transaction(3, inserted(RIDERS, row(2)))]
    tapping.run(SPECS[1:2])
    tapping.server.transactions = [*tapping.server.transactions, transaction(4, inserted(TRIPS, row(3)))]
    tapping.run()
    assert tapping.events() == []


def test_a_table_whose_key_changes_stops_whichever_process_sees_it() -> None:
    """Its events would be those of other rows."""
    other = table("trips", key=("city",))
    for processes in (1, 2):
        binlog = [transaction(1, inserted(TRIPS, row(1)))]
        tapping = Tapping(Server(binlog))
        if processes == 2:
            tapping.run()
        tapping.server.transactions = [*binlog, transaction(2, inserted(other, row(2)))]
        tapping.run()
        assert tapping.stopped["trips"].startswith("The record key of `shop.trips` was `id` and is `city`.")
        assert keys(tapping.events()) == [1]


def test_a_trickle_is_committed_once_for_all_that_has_come() -> None:
    tapping = Tapping(Server([transaction(n, inserted(TRIPS, row(n))) for n in range(1, 30)], at_once=100))
    tapping.run()
    assert tapping.log.commits == 1
    assert Operation.INSERT.value not in {operation for operation, _ in tapping.events()}


def test_an_alter_of_a_captured_table_is_told_before_any_row_comes() -> None:
    tapping = Tapping(Server([transaction(1, Statement("shop", "ALTER TABLE trips ADD seats int"))]))
    tapping.run()
    assert (tapping.altered, tapping.stopped) == (["trips"], {})


def test_two_datasets_of_one_table_have_its_rows_each() -> None:
    both = [*SPECS[:2], replace(SPECS[0], topic="trips-masked", hidden=HiddenColumns(masked=frozenset({"city"})))]
    tapping = Tapping(
        Server([transaction(1, inserted(TRIPS, row(1))), transaction(2, Statement("shop", "TRUNCATE trips"))])
    )
    tapping.run(both)
    assert tapping.events("trips") == [("update", {"id": 1, "city": "Ulm"})]
    assert tapping.events("trips-masked") == [("update", {"id": 1, "city": None})]
    assert tapping.stops == ["trips", "trips-masked"]


def test_when_the_last_transaction_was_committed_is_known() -> None:
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1)))]))
    tap = tapping.tap()
    assert tap.event_at is None
    tap.step()
    assert tap.event_at == NOW
