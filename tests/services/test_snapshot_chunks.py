"""A table that is read chunk by chunk while it is written, and its binlog, make the table of the source, in whatever order they are merged."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.snapshot.chunks import Key, SnapshotChunk, end_of_chunk, read_chunk, read_range
from ingestion.capture.snapshot.definitions import read_definition
from ingestion.capture.snapshot.key_position import decode_key, encode_key
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.domain.merging.events import ChangeEvent
from ingestion.domain.merging.merge import merge_batch
from ingestion.heatpipe.decoder import Decoder
from tests.fuzz_seed import REPEAT, SEED
from tests.services.tapped_server import TappedServer, tapped_server

DATABASE = "lakehub_chunks"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def chunks(server: TappedServer, table: str, *, rows: int, how: str = "one by one") -> Iterator[ChangeEvent]:
    """All rows, as change events."""
    with server.engine.connect() as connection:
        definition = read_definition(connection, DATABASE, table)
        captured = CapturedTable.of(CaptureSpec(table, DATABASE, table), definition, server.versions, server.charsets)
        for chunk in READING[how](connection, definition, rows):
            yield from (captured.snapshot_event(chunk.sequence, row) for row in chunk.rows)


def one_by_one(connection: sa.Connection, table: TableMap, rows: int) -> Iterator[SnapshotChunk]:
    after: Any = None
    while True:
        chunk = read_chunk(connection, table, table.columns, table.primary_key, after=after, rows=rows)
        yield chunk
        if chunk.last_key is None:
            return
        after = later(chunk.last_key)


def in_any_order(connection: sa.Connection, table: TableMap, rows: int) -> Iterator[SnapshotChunk]:
    """First where each ends, then what is in it, as several connections do at once."""
    ends: list[Any] = [None]
    while end := end_of_chunk(connection, table, table.primary_key, after=ends[-1], rows=rows):
        ends.append(later(end))
    ranges = [*zip(ends, [*ends[1:], None], strict=True)]
    random.Random(SEED).shuffle(ranges)
    for after, upto in ranges:
        yield read_range(connection, table, table.columns, table.primary_key, after=after, upto=upto)


def later(key: Key) -> Key:
    """In whichever process goes on."""
    return decode_key(json.loads(json.dumps(encode_key(key))))


READING = {"one by one": one_by_one, "in any order": in_any_order}


def keys_in_chunks(server: TappedServer, *, rows: int, how: str = "one by one") -> list[tuple[Any, ...]]:
    return [event.row_key for event in chunks(server, "t", rows=rows, how=how)]


@pytest.mark.parametrize("how", READING)
@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("a int, b varchar(9), PRIMARY KEY (a, b)", "(1, 'a'), (1, 'b'), (1, 'é'), (2, ''), (2, 'Ba'), (-5, 'z')"),
        ("a bigint unsigned PRIMARY KEY, b int", "(0, 1), (18446744073709551615, 1), (9223372036854775808, 1), (7, 1)"),
        ("a enum('z','a','m'), b int, PRIMARY KEY (a, b)", "('z', 1), ('a', 1), ('m', 2), ('m', 1), ('a', 5)"),
        ("a float PRIMARY KEY", "(1.1), (1.2), (16777217), (-0.1), (0)"),
        ("a datetime(6), b bit(9), PRIMARY KEY (a, b)", "('2026-01-01 00:00:00.000001', b'1'), ('2026-01-01', b'11'), ('2026-01-01', b'111111111')"),
        ("a varbinary(4), b decimal(9,3), PRIMARY KEY (a, b)", "('\\0', 1.5), ('\\0\\0', 1.5), ('', -2), ('', 2.125), ('\\\\', 0)"),
        ("a timestamp(3) DEFAULT '2026-01-01', b char(2) CHARACTER SET latin1, PRIMARY KEY (a, b)", "('2026-10-25 02:30:00', 'é'), ('2026-03-29 03:30:00.5', 'a'), ('2026-03-29 03:30:00.5', 'b')"),
        ("a varchar(9) COLLATE utf8mb4_german2_ci, b int, PRIMARY KEY (a, b)", "('Ä', 1), ('ae', 2), ('AF', 1), ('ä', 3), ('ß', 1), ('ss', 0), ('', 5), ('z', 1), ('Z', 2)"),
        ("`select` date PRIMARY KEY, b int", "('2026-01-01', 1), ('1000-01-01', 2), ('9999-12-31', 3)"),
    ],
)  # fmt: skip
def test_each_row_is_in_one_chunk_whatever_its_key(
    server: TappedServer, columns: str, values: str, rows: int, how: str
) -> None:
    server.execute(f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {values}")
    keys = keys_in_chunks(server, rows=rows, how=how)
    assert len(keys) == len(set(keys)) == len(server.all_rows("t"))


def test_an_empty_table_is_one_chunk(server: TappedServer) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY)")
    assert keys_in_chunks(server, rows=5) == []


def test_what_is_set_for_sessions_of_the_server_changes_no_row_and_leaves_none_out(server: TappedServer) -> None:
    server.execute("CREATE TABLE t (id char(5) PRIMARY KEY)", "INSERT INTO t VALUES (''), ('a'), ('b'), ('\\\\')")
    with server.engine.connect() as connection:
        connection.exec_driver_sql(
            "SET sql_select_limit = 1, sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,EMPTY_STRING_IS_NULL,NO_BACKSLASH_ESCAPES'"
        )
        table = read_definition(connection, DATABASE, "t")
        chunks = [*one_by_one(connection, table, 1), *in_any_order(connection, table, 4)]
    keys = [row["id"] for chunk in chunks for row in chunk.rows]
    assert sorted(keys) == sorted(["", "a", "b", "\\"] * 2)


class Writers:
    """Change the table, each in a session of its own, until they are stopped."""

    def __init__(self, server: TappedServer) -> None:
        self._server, self._stops = server, threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(SEED + number,)) for number in range(3)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stops.set()
        for thread in self._threads:
            thread.join()

    def _write(self, seed: int) -> None:
        chance = random.Random(seed)
        with self._server.engine.connect() as connection:
            connection.exec_driver_sql(f"USE {DATABASE}")
            while not self._stops.is_set():
                key, n = chance.randint(1, 300), chance.randint(0, 999)
                statement = chance.choice(
                    [
                        f"REPLACE INTO t VALUES ({key}, {n})",
                        f"DELETE FROM t WHERE id = {key}",
                        f"UPDATE t SET n = {n} WHERE id BETWEEN {key} AND {key + 3}",
                    ]
                )
                try:
                    connection.exec_driver_sql(statement)
                    connection.commit()
                except sa.exc.OperationalError:  # two of them wait for each other
                    connection.rollback()


@pytest.mark.parametrize("how", READING)
@pytest.mark.parametrize("order", ["chunks first", "log first", "mixed"])
def test_chunks_and_log_make_the_table_in_whatever_order_they_are_merged(
    server: TappedServer, order: str, how: str
) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t SELECT seq, 0 FROM seq_1_to_200")
    with Writers(server):
        snapshot = [*chunks(server, "t", rows=2, how=how)]
    server.take("t")
    decoder = Decoder("t", ("id",), bytes, server.versions.of_id)
    log = [
        decoder.decode(message.value or b"", (message.offset,)).event for message in server.log.reader().read("t", {})
    ]
    events = [*snapshot, *log] if order == "chunks first" else [*log, *snapshot]
    if order == "mixed":
        random.Random(SEED).shuffle(events)
    rows = merge_batch(events, {}, reference_type=bytes).rows
    merged = {key[0]: state.values for key, state in rows.items() if not state.is_deleted}
    assert merged == server.rows("t"), REPEAT
    assert len(log) > 20, "the writers wrote"


def test_a_range_of_a_composite_key_is_found_by_its_index(server: TappedServer) -> None:
    """A look at all of a table for each of its ranges would take days."""
    server.execute(
        "CREATE TABLE t (a varchar(9), b int, c int, PRIMARY KEY (a, b))",
        "INSERT INTO t SELECT concat('k', seq DIV 100), seq %% 100, 0 FROM seq_1_to_5000",
    )
    statements: list[tuple[str, Any]] = []
    with server.engine.connect() as connection:
        table = read_definition(connection, DATABASE, "t")

        @sa.event.listens_for(connection, "before_cursor_execute")
        def note(conn: Any, cursor: Any, statement: str, parameters: Any, *others: Any) -> None:
            statements.append((statement, parameters))

        chunk = read_range(connection, table, table.columns, table.primary_key, after=("k20", 7), upto=("k20", 20))
        (query,) = [each for each in statements if " FROM `" in each[0]]
        (plan,) = connection.exec_driver_sql(f"EXPLAIN {query[0]}", query[1]).mappings()
    assert [row["b"] for row in chunk.rows] == [*range(8, 21)]
    assert (plan["type"], plan["key"]) == ("range", "PRIMARY")
    assert int(plan["rows"]) < 50
