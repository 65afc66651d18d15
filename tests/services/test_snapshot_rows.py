"""A row that is read from a table and the same row in the binlog are one: in the types of its columns, and in each of its values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.capture.binlog.events import RowChange
from ingestion.capture.binlog.table_map import ColumnKind
from ingestion.capture.snapshot.definitions import NoSuchTable, read_definition
from ingestion.capture.snapshot.select_list import quoted, row_of, select_list
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec, NotCaptured, Transaction
from ingestion.capture.tap.known_tables import KnownTable, why_not_followed
from ingestion.capture.tap.narrowing import narrower_columns
from tests.services.tapped_server import TappedServer, tapped_server
from tests.services.test_tap import EVERY_TYPE, ROWS
from tests.unit.ingestion.heatpipe.messages import NOW

DATABASE = "lakehub_snapshot"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


@pytest.fixture
def changed_server(changed_mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(changed_mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def read_rows(server: TappedServer, table: str, **options: Any) -> tuple[CapturedTable, list[dict[str, Any]]]:
    """As change events would have them; in a session of another zone."""
    spec = CaptureSpec(table, DATABASE, table, **options)
    with server.engine.connect() as connection:
        connection.exec_driver_sql("SET time_zone = '-05:00'")
        definition = read_definition(connection, DATABASE, table)
        captured = CapturedTable.of(spec, definition, server.versions, server.charsets)
        columns = [column for column in definition.columns if column.name not in spec.hidden.left_out]
        rows = connection.exec_driver_sql(f"SELECT {select_list(columns)} FROM {DATABASE}.{quoted(table)}")
        changes = [RowChange(None, row_of(columns, row)) for row in rows]
    events = [event for change in changes for event in captured.events(Transaction(1, NOW), 0, change)]
    return captured, [dict(event.values) for event in events]


def by_key(rows: list[dict[str, Any]], *key: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in key): row for row in rows}


def test_every_type(server: TappedServer) -> None:
    server.execute(
        "SET SESSION time_zone = '+00:00'", EVERY_TYPE.format(t="t"), f"INSERT INTO t VALUES {', '.join(ROWS)}"
    )
    server.take("t")
    captured, rows = read_rows(server, "t")
    assert by_key(rows, "id", "k") == server.replayed("t", key=("id", "k"))
    assert [schema.version for schema, _ in server.versions.known] == [1], "one schema for both"
    assert captured.record_key == ("id", "k")


def test_the_catalog_defines_a_table_as_the_binlog_does(server: TappedServer) -> None:
    """Otherwise the first row after a load began would seem to be one of an altered table."""
    server.execute(
        EVERY_TYPE.format(t="t"),
        "CREATE TABLE more (a text, u uuid, v6 inet6, v4 inet4, t tinytext, m mediumblob, l longtext, c char(255), p varchar(900), n numeric(65,30), z int zerofill, f float unsigned, PRIMARY KEY (a(9), u))",
        f"INSERT INTO t VALUES {ROWS[0]}",
        "INSERT INTO more (a, u) VALUES ('x', UUID())",
    )
    server.take("t", "more", stops_at_narrowing=True)
    for table in ("t", "more"):
        known = server.known(table)
        with server.engine.connect() as connection:
            definition = read_definition(connection, DATABASE, table)
        seen = KnownTable.of(known.load, definition, known.record_key, with_columns=True)
        assert (seen.primary_key, len(seen.columns)) == (known.primary_key, len(known.columns))
        assert why_not_followed(table, seen, known) == ""
        for catalog, binlog in zip(seen.columns, known.columns, strict=True):
            assert (catalog.name, catalog.kind, catalog.is_unsigned) == (binlog.name, binlog.kind, binlog.is_unsigned)
            has_labels = binlog.kind in (ColumnKind.ENUM, ColumnKind.SET)
            assert has_labels or narrower_columns([binlog], [catalog]) == [], catalog.name


def test_types_that_only_mariadb_has(server: TappedServer) -> None:
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY, u uuid, v6 inet6, v4 inet4, b longblob, c char(255) CHARACTER SET ucs2)",
        "INSERT INTO t VALUES (1, '123e4567-e89b-12d3-a456-426655440000', '::1', '10.0.0.1', REPEAT('x', 70000), 'ü'), (2, NULL, NULL, NULL, '', '')",
    )
    server.take("t")
    _, rows = read_rows(server, "t")
    assert by_key(rows, "id") == server.replayed("t")


def test_values_that_are_hard_to_write(server: TappedServer) -> None:
    server.execute(
        "SET SESSION sql_mode = ''",
        "CREATE TABLE `odd table` (id bigint PRIMARY KEY, f float, d double, e enum('a''b','','c') NOT NULL, day date, ts timestamp(6) NULL, s set('x','y'))",
        "INSERT INTO `odd table` VALUES (1, 16777217, 0.1, 'nope', '0000-00-00', '0000-00-00', 'x,nope'), (2, 3.4028235e38, 2.2250738585072014e-308, 'a''b', '2026-00-01', '2038-01-19 03:14:07.999999', 'y,x'), "
        "(9223372036854775807, 1e-45, 1.7976931348623157e308, '', NULL, NULL, '')",
    )  # fmt: skip
    server.take("odd table")
    _, rows = read_rows(server, "odd table")
    assert by_key(rows, "id") == server.replayed("odd table")


def test_labels_and_texts_that_the_catalog_does_not_say(server: TappedServer) -> None:
    """Its lists have no emoji, quote backslashes, and lack the collations that several character sets have."""
    server.execute(
        r"CREATE TABLE t (id int PRIMARY KEY, e enum('a\\b','😀','?','n\nl','q''q'), s set('x\\y','😀','?'), c varchar(9) COLLATE utf8mb4_uca1400_ai_ci)",
        r"INSERT INTO t VALUES (1, 'a\\b', 'x\\y,?', 'ü'), (2, '😀', '😀', '😀'), (3, '?', '', ''), (4, 'n\nl', NULL, NULL), (5, 'q''q', '?', 'x')",
    )
    server.take("t")
    _, rows = read_rows(server, "t")
    assert by_key(rows, "id") == server.replayed("t")
    assert [(row["e"], row["s"], row["c"]) for row in rows][:2] == [("a\\b", "x\\y,?", "ü"), ("😀", "😀", "😀")]


@pytest.mark.parametrize("type", ["varchar(9) COMPRESSED", "longtext COMPRESSED", "datetime", "time(3)", "timestamp"])
def test_what_the_log_cannot_say_is_refused_before_it_is_read(changed_server: TappedServer, type: str) -> None:
    server = changed_server
    before = server.select("SELECT @@GLOBAL.mysql56_temporal_format")[0][0]
    server.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        server.execute(f"CREATE TABLE t (id int PRIMARY KEY, odd {type})", "INSERT INTO t VALUES (1, NOW())")
    finally:
        server.execute(f"SET GLOBAL mysql56_temporal_format = {before}")
    server.take("t")
    with pytest.raises(NotCaptured) as refused:
        read_rows(server, "t")
    reason = str(refused.value).partition(" is not captured: ")[2]
    assert reason.startswith("`odd` is ")
    assert reason in server.stopped["t"]
    if "COMPRESSED" not in type:
        server.execute("ALTER TABLE t FORCE")
        assert len(read_rows(server, "t")[1]) == 1


def test_a_table_that_is_not_there_is_told(server: TappedServer) -> None:
    with server.engine.connect() as connection, pytest.raises(NoSuchTable, match=r"`lakehub_snapshot`\.`nope`"):
        read_definition(connection, DATABASE, "nope")
