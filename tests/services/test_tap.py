"""A tap of a real MariaDB: the table that its events make is the table of the source, for every type and every kind of statement."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ingestion.capture.binlog.events import BinlogError
from ingestion.capture.binlog.stream import BinlogStream, ServerAddress
from ingestion.capture.server_checks import read_server_facts, server_problems
from ingestion.capture.tap import tap as module
from ingestion.capture.tap.position import TapPosition
from tests.services.tapped_server import PRODUCER, TappedServer, tapped_server

DATABASE = "lakehub_tap"
EVERY_TYPE = """CREATE TABLE {t} (id bigint unsigned, k varchar(20) CHARACTER SET latin1, i1 tinyint, u1 tinyint unsigned, i2 smallint, i3 mediumint, u3 mediumint unsigned,
    i4 int, u4 int unsigned, i8 bigint, d decimal(20,4), f float, g double, bit1 bit(1), bit10 bit(10), bit64 bit(64), y year, day date, at datetime(6), plain datetime,
    ts timestamp(3) NULL, tm time(2), e enum('a','é','c,d') CHARACTER SET latin1, s set('x','y','z'), c char(5), u varchar(5) CHARACTER SET ucs2,
    t text, j json, b binary(4), vb varbinary(4), bl blob, PRIMARY KEY (id, k))"""
ROWS = (
    r"(18446744073709551615, 'ü', -128, 255, -32768, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, -1234567890123456.7891, 1.1, 1e308,"
    r" b'1', b'1111111111', b'1111111111111111111111111111111111111111111111111111111111111111', 2155, '9999-12-31', '9999-12-31 23:59:59.999999', '1000-01-01',"
    r" '2038-01-19 03:14:07.999', '-838:59:59', 'é', 'x,z', 'a ', 'hü€', '😀', '{\"a\": [1, null]}', 'a\0', 'a\0', '')",
    "(0, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.0, 0, b'0', b'0', b'0', 1901, '1000-01-01', '1970-01-01', '2026-02-28', '1970-01-01 00:00:01', 0, 'a', '', '', '', '', 'null', '', '', '\\0')",
    "(7, 'nulls'" + ", NULL" * 29 + ")",
)  # fmt: skip


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def as_read(row: dict[str, Any]) -> dict[str, Any]:
    """What the driver makes of a row of EVERY_TYPE, as the lake has it."""
    read = dict(row)
    for name in ("bit1", "bit10", "bit64"):
        read[name] = read[name] and int.from_bytes(read[name])
    read["bit1"] = None if read["bit1"] is None else bool(read["bit1"])
    for name in ("at", "plain", "ts"):
        read[name] = read[name] and read[name].replace(tzinfo=UTC)
    for name in ("id", "bit64"):
        read[name] = None if read[name] is None else Decimal(read[name])
    read["s"] = ",".join(sorted(read["s"])) if isinstance(read["s"], set) else read["s"]
    del read["tm"]
    return read


def test_every_type(server: TappedServer) -> None:
    table = "t"
    server.execute(
        "SET SESSION time_zone = '+00:00'", EVERY_TYPE.format(t=table), f"INSERT INTO {table} VALUES {', '.join(ROWS)}"
    )
    server.take("t")
    replayed = server.replayed("t", key=("id", "k"))
    source = {(Decimal(row["id"]), row["k"]): as_read(row) for row in server.rows("t").values()}
    times = {key: row.pop("tm") for key, row in replayed.items()}
    assert {key: row | {"f": row["f"] and round(row["f"], 6)} for key, row in replayed.items()} == source
    assert sorted(map(str, times.values())) == ["-838:59:59.00", "00:00:00.00", "None"]
    assert server.stopped == {}


def test_every_kind_of_statement(server: TappedServer) -> None:
    t = "t"
    server.execute(
        f"CREATE TABLE {t} (id int PRIMARY KEY, city varchar(20), n int)",
        "CREATE TABLE other (id int PRIMARY KEY, place point, city varchar(20))",
        f"INSERT INTO {t} SELECT seq, concat('c', seq), 0 FROM seq_1_to_500",
        f"UPDATE {t} SET n = mod(id, 7) WHERE id > 100",
        f"UPDATE {t} SET id = id + 1000 WHERE id <= 10",
        f"DELETE FROM {t} WHERE id BETWEEN 20 AND 40",
        f"REPLACE INTO {t} VALUES (50, 'replaced', 1)",
        f"INSERT INTO {t} VALUES (51, 'x', 1), (2000, 'y', 2) ON DUPLICATE KEY UPDATE city = 'updated'",
        "BEGIN",
        f"INSERT INTO {t} VALUES (3000, 'kept', 1)",
        "INSERT INTO other VALUES (1, POINT(1, 2), 'x')",
        "SAVEPOINT s",
        f"DELETE FROM {t}",
        "ROLLBACK TO s",
        "COMMIT",
        "BEGIN",
        f"DELETE FROM {t}",
        "ROLLBACK",
        f"ALTER TABLE {t} ADD COLUMN seats tinyint DEFAULT 4 AFTER id, ALGORITHM=INSTANT",
        f"UPDATE {t} SET seats = 5 WHERE id < 60",
    )
    server.take("t", "other")
    replayed, source = server.replayed("t"), server.rows("t")
    assert replayed.keys() == {(key,) for key in source}
    # A row that has not changed since the column came has no value of it in the log.
    assert all(source[key].items() >= row.items() for (key,), row in replayed.items())
    assert {key for key, row in source.items() if row["seats"] == 5} == {
        key for (key,), row in replayed.items() if row.get("seats") == 5
    }
    assert [schema.version for schema, _ in server.versions.known] == [1, 2]
    assert list(server.stopped) == ["other"]
    assert "GEOMETRY" in server.stopped["other"]


def test_a_tap_goes_on_where_another_was_killed_within_a_transaction(
    server: TappedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 500)
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY, city varchar(200))",
        "INSERT INTO t SELECT seq, repeat('x', 150) FROM seq_1_to_20000",
        "DELETE FROM t WHERE id = 1",
    )
    for _ in range(3):
        server.take("t", until=lambda tap: tap.position.taken.get("t", 0) >= 500)
    begun = server.log.writer(PRODUCER).position()
    assert begun is not None
    assert 0 < begun["taken"]["t"] < 20_000
    server.take("t")
    assert server.replayed("t").keys() == {(key,) for key in range(2, 20_001)}
    assert server.log.reader().bounds("t") == {"0": (0, 20_001)}


def test_a_table_whose_rows_cannot_be_decoded_stops_alone_within_a_statement(server: TappedServer) -> None:
    """The decoder fails at a place before a text; what it knew of the statement's other tables is not lost."""
    a, b = "a", "b"
    server.execute(
        f"CREATE TABLE {a} (id int PRIMARY KEY, n int)",
        f"CREATE TABLE {b} (id int PRIMARY KEY, place point, city varchar(20), n int)",
        f"INSERT INTO {a} VALUES (1, 0), (2, 0)",
        f"INSERT INTO {b} VALUES (1, POINT(1, 2), 'Ulm', 0)",
        f"UPDATE {b}, {a} SET {a}.n = 1, {b}.n = 1 WHERE {a}.id = {b}.id",
    )
    server.take("a", "b")
    assert server.replayed("a") == {(1,): {"id": 1, "n": 1}, (2,): {"id": 2, "n": 0}}
    assert list(server.stopped) == ["b"]


def test_a_date_that_is_none_is_null_and_a_text_that_is_none_is_put_aside(server: TappedServer) -> None:
    t = "t"
    server.execute(
        "SET SESSION sql_mode = ''",
        f"CREATE TABLE {t} (id int PRIMARY KEY, day date, at datetime(3), ts timestamp NULL)",
        f"INSERT INTO {t} VALUES (1, '0000-00-00', '0000-00-00', '0000-00-00'), (2, '2026-00-05', '2026-01-02 03:04:05.678', NULL)",
    )
    server.take("t")
    at = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert server.replayed("t") == {
        (1,): {"id": 1, "day": None, "at": None, "ts": None},
        (2,): {"id": 2, "day": None, "at": at, "ts": None},
    }


def test_a_place_that_the_server_does_not_have_any_more_is_told(server: TappedServer) -> None:
    url = server.url
    address = ServerAddress(str(url.host), int(url.port or 0), str(url.username), str(url.password), 4_402)
    with pytest.raises(BinlogError, match="0-1-99999999"):
        _read(BinlogStream(address, "0-1-99999999", lambda database, table: True))


def test_a_password_is_in_no_error(server: TappedServer) -> None:
    address = ServerAddress(str(server.url.host), int(server.url.port or 0), "lakehub", "s3cret", 4_402)
    with pytest.raises(BinlogError, match="Access denied") as refused:
        _read(BinlogStream(address, "", lambda database, table: True))
    assert "s3cret" not in f"{refused.value}{address}"


def _read(stream: BinlogStream) -> None:
    try:
        stream.open()
        stream.poll()
    finally:
        stream.close()


def test_what_is_wrong_with_a_server_is_read_from_it(server: TappedServer) -> None:
    account = "'lakehub_reader'@'127.0.0.1'"
    server.execute(f"CREATE OR REPLACE USER {account} IDENTIFIED BY 'r'", f"GRANT SELECT ON *.* TO {account}")
    reader = sa.create_engine(server.url.set(username="lakehub_reader", password="r"), poolclass=sa.NullPool)
    try:
        with server.engine.connect() as tapped, reader.connect() as powerless:
            assert [
                problem.text for problem in server_problems(read_server_facts(tapped)) if not problem.is_warning
            ] == []
            texts = [problem.text for problem in server_problems(read_server_facts(powerless))]
    finally:
        server.execute(f"DROP USER {account}")
    assert ["GRANT REPLICATION SLAVE" in text or "GRANT BINLOG MONITOR" in text for text in texts[:2]] == [True, True]


def test_rows_that_were_rolled_back_are_not_captured_although_the_binlog_has_them(server: TappedServer) -> None:
    """A temporary table, or one of another engine, brings the whole transaction there."""
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE m (id int) ENGINE=MyISAM",
        "CREATE TEMPORARY TABLE x (i int)",
        "BEGIN", "INSERT INTO t VALUES (1)", "INSERT INTO x VALUES (1)", "INSERT INTO m VALUES (1)", "ROLLBACK",
        "BEGIN", "INSERT INTO t VALUES (2)", "SAVEPOINT `a b`", "INSERT INTO t VALUES (3)", "INSERT INTO m VALUES (2)", "ROLLBACK TO `a b`", "COMMIT",
        "BEGIN", "INSERT INTO t VALUES (4)", "SAVEPOINT `Zähler\n1`", "INSERT INTO t VALUES (5)", "INSERT INTO m VALUES (3)", "ROLLBACK TO `zahler\n1`", "COMMIT",
    )  # fmt: skip
    server.take("t")
    assert server.replayed("t").keys() == {(key,) for key in server.rows("t")} == {(2,), (4,)}
    assert server.stopped == {}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET n = n + 1",
        "DELETE FROM t WHERE id = 1",
        "REPLACE INTO t VALUES (1, 9)",
        "INSERT IGNORE t SELECT 3, 0",
        "CALL p()",
    ],
)
def test_a_session_that_writes_statements_stops_the_tables_that_it_changes(
    server: TappedServer, statement: str
) -> None:
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n int)",
        "CREATE TABLE u (id int PRIMARY KEY)",
        "CREATE PROCEDURE p() UPDATE t SET n = 5",
        "INSERT INTO t VALUES (1, 0), (2, 0)",
        "COMMIT",
        "SET SESSION binlog_format = STATEMENT",
        statement,
    )
    server.execute("INSERT INTO u VALUES (1)")
    server.take("t", "u")
    assert list(server.stopped) == ["t"]
    assert "another `binlog_format` than ROW" in server.stopped["t"]
    assert len(server.by_statement) == 1


def test_a_statement_that_changes_a_table_by_a_view_or_a_trigger_is_told(server: TappedServer) -> None:
    """It does not name the table; so nobody can say which it was."""
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE a (id int PRIMARY KEY)",
        "CREATE TRIGGER after_a AFTER INSERT ON a FOR EACH ROW INSERT INTO t VALUES (NEW.id)",
        "CREATE VIEW v AS SELECT * FROM t",
        "INSERT INTO a VALUES (1)",
    )
    bounds = [server.sequence()]
    for statement in ("INSERT INTO a VALUES (2)", "INSERT INTO v VALUES (3)"):
        server.execute("SET SESSION binlog_format = STATEMENT", statement)
        bounds.append(server.sequence())
    server.execute("INSERT INTO t VALUES (4)")
    server.take("t")
    by_trigger, by_view = (TapPosition(transaction).sequence for transaction in server.by_statement)
    assert bounds[0] < by_trigger <= bounds[1] < by_view <= bounds[2]
    assert (server.stopped, server.replayed("t").keys()) == ({}, {(1,), (4,)})


def test_a_primary_key_that_changes_stops_the_table_where_rows_may_share_a_record_key(server: TappedServer) -> None:
    for name in ("wider", "none", "same", "moved"):
        server.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, n int NOT NULL)", f"INSERT INTO {name} VALUES (1, 1)")
    server.execute(
        "ALTER TABLE wider DROP PRIMARY KEY, ADD CONSTRAINT PRIMARY KEY USING BTREE (id, n)",
        "ALTER TABLE none DROP PRIMARY KEY",
        "ALTER TABLE same DROP PRIMARY KEY, ADD PRIMARY KEY (`ID`)",
        "ALTER TABLE moved DROP PRIMARY KEY, MODIFY id bigint PRIMARY KEY",
        *(
            f"INSERT INTO {name} VALUES ({key}, 2)"
            for name, key in (("wider", 1), ("none", 1), ("same", 2), ("moved", 2))
        ),
    )
    server.take("wider", "none", "same", "moved", record_key=("id",))
    assert server.stopped.keys() == {"wider", "none"}
    assert "several rows may have one record key, `id`" in server.stopped["wider"]
    assert server.replayed("same").keys() == server.replayed("moved").keys() == {(1,), (2,)}


def test_a_key_whose_values_may_be_others_stops_the_table(server: TappedServer) -> None:
    """A server cuts texts and numbers without a word; one that gets longer keeps them. Also where another tap has seen the rows before."""
    types = {"fixed": "char(9)", "narrow": "varchar(3)", "wide": "varchar(90)", "endless": "text"}
    numbers = {
        "smaller": "int",
        "larger": "decimal(20,0)",
        "without_sign": "bigint unsigned",
        "texts": "varchar(3)",
        "few": "decimal(5,0)",
    }
    for name, type in types.items():
        key = "id(9)" if type == "text" else "id"
        server.execute(
            f"CREATE TABLE {name} (id varchar(20), n int, PRIMARY KEY ({key}))",
            f"INSERT INTO {name} VALUES ('abc ', 1)",
        )
    for name, type in types.items():
        alter = f"ALTER TABLE {name} MODIFY id {type} NOT NULL"
        server.execute("SET SESSION sql_mode = ''", alter, f"UPDATE {name} SET n = 2")
    for name in numbers:
        server.execute(f"CREATE TABLE {name} (id bigint, n int, PRIMARY KEY (id))", f"INSERT INTO {name} VALUES (5, 1)")
    server.take(*types, *numbers, record_key=("id",))
    for name, type in numbers.items():
        server.execute(f"ALTER TABLE {name} MODIFY id {type} NOT NULL", f"UPDATE {name} SET n = 2")
    server.take(*types, *numbers, record_key=("id",))
    assert server.stopped.keys() == {"fixed", "narrow", "smaller", "without_sign", "texts", "few"}
    assert "Values of `id`, a part of the record key" in server.stopped["fixed"]
    assert "Values of `id`, a part of the record key" in server.stopped["smaller"]
    assert server.replayed("wide") == server.replayed("endless") == {("abc ",): {"id": "abc ", "n": 2}}


def test_a_statement_is_read_in_the_character_set_of_its_session(server: TappedServer) -> None:
    """The binlog has its bytes as they were sent."""
    server.execute("CREATE TABLE `größe` (id int PRIMARY KEY)", "CREATE TABLE t (id int PRIMARY KEY)")
    server.execute("INSERT INTO `größe` VALUES (1)", "INSERT INTO t VALUES (1)")
    latin1 = sa.create_engine(server.url.update_query_dict({"charset": "latin1"}), poolclass=sa.NullPool)
    with latin1.connect() as connection:
        connection.exec_driver_sql(f"TRUNCATE TABLE {DATABASE}.`größe`")
    server.take("größe", "t")
    assert list(server.stopped) == ["größe"]
    assert "was truncated" in server.stopped["größe"]


def test_an_alteration_that_drops_rows_stops_the_table(server: TappedServer) -> None:
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n int)",
        "INSERT INTO t VALUES (1, 1), (2, 1)",
        "ALTER IGNORE TABLE t ADD UNIQUE (n)",
    )
    assert server.rows("t").keys() == {1}
    server.take("t")
    assert "ALTER IGNORE TABLE" in server.stopped["t"]


def test_a_distributed_transaction_stops_the_tables_that_it_changes(server: TappedServer) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    server.execute(
        "XA START 'lakehub'",
        "INSERT INTO t VALUES (1)",
        "XA END 'lakehub'",
        "XA PREPARE 'lakehub'",
        "XA COMMIT 'lakehub'",
    )
    server.execute("INSERT INTO u VALUES (1)")
    server.take("t", "u")
    assert list(server.stopped) == ["t"]
    assert server.replayed("u").keys() == {(1,)}
