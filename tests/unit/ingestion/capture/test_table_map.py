"""Descriptions of tables as MariaDB 10.11 has written them, byte by byte."""

from __future__ import annotations

import pytest

from ingestion.capture.binlog.table_map import ColumnKind, UnreadableTableMap, read_table_map, table_id, table_name

KINDS = ColumnKind
EVERY_TYPE = bytes.fromhex(
    "1e000000000001000473686f700001740017010df605080409030210fefefe0f0ffcfcfefefcfefe8d1d050208040300f701f801f7012c0128000202cefcfe0304fe10fe"
    "101500fedf7f0102e700030a082d2d3f2d3f2e3f3f2d043801610162016301640165016601670168016b016c0265310273310265320176017701740262"
    "6c02633102626e026a730275750269700276630a032d000805050201700171060902017801790102c3a909040d050000"
)
"""create table shop.t(a tinyint unsigned, b year, c decimal(5,2) unsigned, d double, e bigint, f float unsigned, g mediumint unsigned, h int unsigned,
k smallint, l bit(3), e1 enum('x','y') character set latin1, s1 set('p','q'), e2 enum('é'), v varchar(300) character set latin1, w varchar(10), t text,
bl blob, c1 char(255), bn binary(3), js json, uu uuid, ip inet6, vc varchar(5) compressed, primary key(v(5),a))"""
GEOMETRY = bytes.fromhex("1f000000000001000473686f70000167000303ff0301040601014002013f0701010406016101670162080100")
"""create table shop.g(a int primary key, g point, b int unsigned)"""


def test_the_kinds_of_columns() -> None:
    kinds = {column.name: column.kind.name for column in read_table_map(EVERY_TYPE).columns}
    assert kinds == {
        "a": "TINY", "b": "YEAR", "c": "DECIMAL", "d": "DOUBLE", "e": "LONGLONG", "f": "FLOAT", "g": "INT24", "h": "LONG", "k": "SHORT",
        "l": "BIT", "e1": "ENUM", "s1": "SET", "e2": "ENUM", "v": "VARCHAR", "w": "VARCHAR", "t": "BLOB", "bl": "BLOB", "c1": "STRING",
        "bn": "STRING", "js": "BLOB", "uu": "STRING", "ip": "STRING", "vc": "COMPRESSED_VARCHAR",
    }  # fmt: skip


def test_each_list_is_of_the_columns_that_it_is_about() -> None:
    columns = {column.name: column for column in read_table_map(EVERY_TYPE).columns}
    assert "".join(name for name, column in columns.items() if column.is_unsigned) == "abcfgh"
    assert columns["c"].metadata == (5, 2)
    assert {name: column.labels for name, column in columns.items() if column.labels} == {
        "e1": (b"x", b"y"), "s1": (b"p", b"q"), "e2": ("é".encode(),),
    }  # fmt: skip
    latin1, utf8mb4 = 8, 45
    assert {name for name, column in columns.items() if column.collation == latin1} == {"e1", "v"}
    assert {name for name, column in columns.items() if column.collation == utf8mb4} == {
        "s1",
        "e2",
        "w",
        "t",
        "c1",
        "vc",
    }
    assert {name for name in ("bl", "bn", "uu", "ip") if columns[name].is_binary} == {"bl", "bn", "uu", "ip"}


def test_the_primary_key_in_its_order_a_part_of_a_column_is_the_column() -> None:
    table = read_table_map(EVERY_TYPE)
    assert (table.database, table.table, table.primary_key) == ("shop", "t", ("v", "a"))


def test_a_geometry_has_a_character_set_too() -> None:
    table = read_table_map(GEOMETRY)
    assert [(column.name, column.kind, column.is_unsigned) for column in table.columns] == [
        ("a", KINDS.LONG, False), ("g", KINDS.GEOMETRY, False), ("b", KINDS.LONG, True),
    ]  # fmt: skip
    assert table.primary_key == ("a",)


def test_the_name_and_the_number_alone() -> None:
    assert (table_name(GEOMETRY), table_id(GEOMETRY)) == (("shop", "g"), 31)


def test_a_server_that_writes_no_names() -> None:
    names_at = GEOMETRY.index(b"\x04\x06\x01a\x01g")
    with pytest.raises(UnreadableTableMap, match=r"no column names for shop\.g\. Set binlog_row_metadata=FULL"):
        read_table_map(GEOMETRY[:names_at])


def test_a_type_that_nobody_knows() -> None:
    with pytest.raises(UnreadableTableMap, match=r"shop\.g has a column of the binlog's type 99"):
        read_table_map(GEOMETRY.replace(b"\x03\xff\x03", b"\x03\x63\x03"))


@pytest.mark.parametrize("length", range(8, len(EVERY_TYPE), 7))
def test_a_description_that_was_cut_is_unreadable(length: int) -> None:
    try:
        columns = read_table_map(EVERY_TYPE[:length]).columns
    except UnreadableTableMap:
        return
    assert len(columns) == 23, "cut between two lists, behind the names"
