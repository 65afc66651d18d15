"""Narrower columns, another primary key and a table that is dropped: followed, or stopped, as the dataset wants it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.capture.binlog.events import Statement
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn
from ingestion.capture.tap.known_tables import KnownTable
from ingestion.capture.tap.narrowing import changing_columns, narrower_columns
from tests.unit.ingestion.capture.tapping import (
    SPECS,
    TRIPS,
    UTF8,
    Server,
    Tapping,
    inserted,
    keys,
    row,
    table,
    transaction,
)

_K = ColumnKind


def column(kind: ColumnKind, *metadata: int, unsigned: bool = False, labels: tuple[bytes, ...] = ()) -> MappedColumn:
    return MappedColumn("c", kind, metadata, unsigned, UTF8, labels)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (column(_K.LONGLONG), column(_K.LONG)),
        (column(_K.INT24), column(_K.SHORT)),
        (column(_K.LONG, unsigned=True), column(_K.INT24, unsigned=True)),
        (column(_K.DECIMAL, 10, 2), column(_K.DECIMAL, 8, 2)),
        (column(_K.DECIMAL, 10, 4), column(_K.DECIMAL, 8, 2)),
        (column(_K.DOUBLE), column(_K.FLOAT)),
        (column(_K.VARCHAR, 0x90, 1), column(_K.VARCHAR, 0xFF, 0)),
        (column(_K.VARCHAR, 160, 0), column(_K.VARCHAR, 40, 0)),
        (column(_K.BLOB, 2), column(_K.VARCHAR, 160, 0)),
        (column(_K.BLOB, 4), column(_K.BLOB, 1)),
        (column(_K.STRING, 0xEE, 100), column(_K.STRING, 0xFE, 100)),
        (column(_K.DATETIME, 6), column(_K.DATETIME, 0)),
        (column(_K.DATETIME, 0), column(_K.TIMESTAMP, 0)),
        (column(_K.BIT, 1, 1), column(_K.BIT, 7, 0)),
        (column(_K.ENUM, 247, 1, labels=(b"a", b"b")), column(_K.ENUM, 247, 1, labels=(b"b",))),
    ],
)
def test_what_is_narrower_is_told_and_what_is_wider_is_not(wide: MappedColumn, narrow: MappedColumn) -> None:
    assert narrower_columns([wide], [narrow]) == ["c"]
    assert narrower_columns([narrow], [wide]) == []
    assert narrower_columns([wide], [wide]) == []


@pytest.mark.parametrize("before", [_K.LONG, _K.DATE])
def test_a_sign_that_goes_is_narrower_and_another_kind_of_value_is_not_judged(before: ColumnKind) -> None:
    assert narrower_columns([column(_K.LONG)], [column(_K.LONG, unsigned=True)]) == ["c"]
    assert narrower_columns([column(before)], [column(_K.VARCHAR, 1, 0)]) == []
    assert narrower_columns([column(before)], []) == []


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        (column(_K.LONG), column(_K.LONGLONG), False),
        (column(_K.LONGLONG), column(_K.LONG), True),
        (column(_K.LONG), column(_K.LONG, unsigned=True), True),
        (column(_K.LONGLONG), column(_K.DECIMAL, 19, 0), False),
        (column(_K.LONGLONG), column(_K.DECIMAL, 20, 2), True),
        (column(_K.LONGLONG), column(_K.VARCHAR, 40, 0), True),
        (column(_K.VARCHAR, 40, 0), column(_K.VARCHAR, 160, 0), False),
        (column(_K.VARCHAR, 40, 0), column(_K.BLOB, 2), False),
        (column(_K.VARCHAR, 40, 0), column(_K.STRING, 0xFE, 100), True),
        (column(_K.STRING, 0xFE, 100), column(_K.STRING, 0xFE, 40), True),
        (column(_K.VARCHAR, 40, 0), column(_K.LONG), True),
        (column(_K.DATE), column(_K.DATETIME, 0), True),
    ],
)
def test_stored_values_of_a_key_may_be_others_by_a_narrower_type_or_another_kind(
    before: MappedColumn, now: MappedColumn, changes: bool
) -> None:
    assert changing_columns([before], [now]) == (["c"] if changes else [])
    assert changing_columns([before], []) == []


COLUMNS = st.builds(
    MappedColumn,
    st.sampled_from("ab"),
    st.sampled_from([_K.TINY, _K.LONGLONG, _K.YEAR]),
    st.just(()),
    st.booleans(),
    st.integers(0, 300),
    st.lists(st.binary(max_size=4), max_size=3).map(tuple),
)


@given(st.lists(COLUMNS, max_size=3).map(tuple), st.none() | st.just(("id",)))
def test_what_is_known_of_a_table_comes_back_as_it_was(
    columns: tuple[MappedColumn, ...], primary_key: tuple[str, ...] | None
) -> None:
    known = KnownTable(3, ("id", "n"), primary_key, columns)
    assert KnownTable.from_json(known.as_json()) == known
    assert KnownTable.from_json([3, ["id", "n"]]) == KnownTable(3, ("id", "n"))


WIDE = table("trips", MappedColumn("note", _K.VARCHAR, (160, 0), collation=UTF8))
NARROW = table("trips", MappedColumn("note", _K.VARCHAR, (40, 0), collation=UTF8))
NARROWED = [transaction(1, inserted(WIDE, row(1, note="x"))), transaction(2, inserted(NARROW, row(2, note="y")))]


def test_a_column_that_becomes_narrower_is_followed_or_stops_its_table() -> None:
    tapping = Tapping(Server(NARROWED))
    tapping.run()
    assert (keys(tapping.events()), tapping.stopped) == ([1, 2], {})
    tapping = Tapping(Server(NARROWED[:1]))
    spec = replace(SPECS[0], stops_at_narrowing=True)
    tapping.run([spec])
    tapping.server.transactions = NARROWED
    tapping.run([spec])
    assert keys(tapping.events()) == [1]
    assert tapping.stopped["trips"].startswith("`shop.trips` has narrower columns than before: `note`.")
    tapping.run([replace(spec, load=2)])
    tapping.server.transactions = [*NARROWED, transaction(3, inserted(NARROW, row(3, note="z")))]
    tapping.run([replace(spec, load=2)])
    assert keys(tapping.events()) == [1, 3]


@pytest.mark.parametrize("key", [("id", "city"), ("city",), ()])
def test_another_primary_key_stops_a_table_whose_record_key_it_made_unique(key: tuple[str, ...]) -> None:
    """The record key of a dataset is named, so the rows of two keys would be one row of the lake."""
    spec = replace(SPECS[0], record_key=("id",))
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1)))]))
    tapping.run([spec])
    changed = transaction(2, inserted(table("trips", key=key), row(1, "Bonn")))
    tapping.server.transactions = [*tapping.server.transactions, changed]
    tapping.run([spec])
    assert (keys(tapping.events()), list(tapping.stopped)) == ([1], ["trips"])
    assert tapping.stopped["trips"].startswith("The primary key of `shop.trips` was `id` and is ")


def test_a_record_key_that_no_primary_key_makes_unique_is_not_looked_at() -> None:
    spec = replace(SPECS[0], record_key=("city",))
    tapping = Tapping(
        Server([transaction(1, inserted(TRIPS, row(1))), transaction(2, inserted(table("trips", key=()), row(2)))])
    )
    tapping.run([spec])
    wider = replace(SPECS[0], record_key=("id", "city"))
    other = Tapping(
        Server(
            [
                transaction(1, inserted(TRIPS, row(1))),
                transaction(2, inserted(table("trips", key=("city", "id")), row(2))),
            ]
        )
    )
    other.run([wider])
    assert (tapping.stopped, other.stopped) == ({}, {})


@pytest.mark.parametrize("sql", ["DROP TABLE trips", "DROP DATABASE shop", "CREATE OR REPLACE TABLE trips (id int)"])
def test_a_table_that_is_dropped_empties_the_lake_where_that_is_followed(sql: str) -> None:
    spec = replace(SPECS[0], record_key=("id",), follows_drop=True)
    binlog = [
        transaction(1, inserted(TRIPS, row(1))),
        transaction(2, Statement("shop", sql)),
        transaction(3, Statement("shop", "CREATE TABLE trips (id int)")),
        transaction(4, inserted(TRIPS, row(2))),
        transaction(5, Statement("shop", "TRUNCATE trips")),
    ]
    tapping = Tapping(Server(binlog[:4]))
    tapping.run([spec])
    assert (keys(tapping.events()), tapping.stopped, tapping.versions.emptied) == ([1, 2], {}, {"trips": 2})
    assert set(tapping.altered) == {"trips"}, "it is looked at again whether it can be captured"
    tapping.server.transactions = binlog
    tapping.run([spec])
    assert "was truncated" in tapping.stopped["trips"], "another policy"
