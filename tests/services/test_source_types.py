"""Types of PostgreSQL and MariaDB that SQLite lacks reach the lake's types with every value."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from ingestion.domain.batch_limits import BatchLimits
from ingestion.sources.sql.source import SqlSource
from ingestion.spark.loading.fitting import FitRules, fit_rows
from tests.services.source_tables import source_table as table


def loaded(source: SqlSource) -> tuple[dict[str, str], dict[str, list[Any]]]:
    """The types of the columns, and what would be stored in each."""
    (chunk,) = source.snapshot().batches
    fitted = fit_rows(chunk, FitRules(source.schema()))
    assert fitted.rejected == ()
    return source.schema().types, fitted.rows.to_pydict()


def test_postgresql(postgresql_url: str) -> None:
    create = (
        "CREATE TABLE {t} (id int, facts jsonb, raw json, tags text[], prices numeric(10,2)[], clock time, zoned timetz,"
        " took interval, tag uuid)"
    )
    first = (
        """INSERT INTO {t} VALUES (1, '{"b": [1, 2.50], "a": "ü"}', '[1,  2]', '{a,NULL}', '{1.5,2}', '08:00', '08:00+02',"""
        " '30 hours', '00000000-0000-0000-0000-000000000005')"
    )
    texts = """INSERT INTO {t} (id, facts, raw, clock) VALUES (2, '"text"', 'null', '23:59:59.5')"""
    with table(postgresql_url, "postgresql_url", create, first, texts) as source:
        types, values = loaded(source)
    assert types == {
        "id": "long", "facts": "string", "raw": "string", "tags": "array<string>", "prices": "array<decimal(10,2)>",
        "clock": "string", "zoned": "string", "took": "string", "tag": "string",
    }  # fmt: skip
    assert values == {
        "id": [1, 2],
        "facts": ['{"a": "ü", "b": [1, 2.50]}', '"text"'],
        "raw": ["[1,  2]", "null"],
        "tags": [["a", None], None],
        "prices": [[Decimal("1.50"), Decimal("2.00")], None],
        "clock": ["08:00:00", "23:59:59.500000"],
        "zoned": ["08:00:00+02:00", None],
        "took": ["30:00:00", None],
        "tag": ["00000000-0000-0000-0000-000000000005", None],
    }


def test_mariadb(mariadb_url: str) -> None:
    create = (
        "CREATE TABLE {t} (id bigint unsigned, small int unsigned, facts json, clock time(6), size enum('s','m'),"
        " marks set('x','y'), plain bigint)"
    )
    first = "INSERT INTO {t} VALUES (18446744073709551615, 4294967295, '{\"a\": 1.50}', '-838:59:59', 'm', 'x,y', -1)"
    second = "INSERT INTO {t} (id, clock) VALUES (0, '08:00:00.5')"
    with table(mariadb_url, "mariadb_url", create, first, second) as source:
        types, values = loaded(source)
    assert types == {
        "id": "decimal(20,0)", "small": "long", "facts": "string", "clock": "string", "size": "string",
        "marks": "string", "plain": "long",
    }  # fmt: skip
    assert values == {
        "id": [Decimal(2**64 - 1), Decimal(0)],
        "small": [2**32 - 1, None],
        "facts": ['{"a": 1.50}', None],
        "clock": ["-838:59:59", "08:00:00.500000"],
        "size": ["m", None],
        "marks": ["x,y", None],
        "plain": [-1, None],
    }


def test_bytes_of_mariadb_are_bytes(mariadb_url: str) -> None:
    """Those that happened to be UTF-8 were stored as texts, and the others rejected."""
    create = "CREATE TABLE {t} (a binary(4), b varbinary(9), c tinyblob, d blob, e longblob, f bit(1), g bit(9))"
    row = "INSERT INTO {t} VALUES (x'ff414243', 'abc', 'abc', x'ff', x'00', 0, 257)"
    with table(mariadb_url, "mariadb_url", create, row) as source:
        types, values = loaded(source)
    assert types == dict.fromkeys("abcdefg", "binary")
    assert [value for (value,) in values.values()] == [b"\xffABC", b"abc", b"abc", b"\xff", b"\0", b"\0", b"\1\1"]


def ranges(source: SqlSource) -> list[Counter[Any]]:
    """The keys of each, of two rows at most where the key says where the next one begins."""
    read, after = list[Counter[Any]](), None
    while True:
        reading = source.snapshot(after=after, limits=BatchLimits(rows=2))
        read.append(Counter(str(key) for batch in reading.batches for key in batch.columns["k"]))
        if not reading.has_more():
            return read
        after = reading.position()


@pytest.mark.parametrize(
    ("key", "values", "count"),
    [
        ("size", ["m", "s", "xl", "l", "xs"], 1),  # an enumeration, of which the last letters come first
        ("macaddr", [f"08:00:2b:01:02:0{digit}" for digit in range(5)], 1),
        ("bit(3)", ["000", "001", "010", "011", "100"], 1),
        ("money", ["$1.00", "$2.00", "$9.00", "$10.00", "$11.00"], 1),
        ("timetz", [f"0{hour}:00:00+02:00" for hour in range(5)], 1),
        ("uuid", [f"00000000-0000-0000-0000-00000000000{digit}" for digit in range(5)], 3),
        ("time", [f"0{hour}:00:00" for hour in range(5)], 3),
        ("text", ["a", "B", "c", "D", "é"], 3),
        ("char(3)", ["a  ", "B  ", "c  ", "D  ", "é  "], 3),
    ],
)
def test_every_key_of_postgresql_is_loaded_once(postgresql_url: str, key: str, values: list[str], count: int) -> None:
    """More rows than fit in one piece: the load of a table with an enumeration in its key was refused."""
    size = f"size_{uuid4().hex}"
    kind = size if key == "size" else key
    make = [f"CREATE TYPE {size} AS ENUM ('xs', 's', 'm', 'l', 'xl')"]
    create = f"CREATE TABLE {{t}} (k {kind}, n int)"
    rows = "INSERT INTO {t} VALUES " + ", ".join(f"('{value}'::{kind}, {n})" for n, value in enumerate(values))
    try:
        with table(postgresql_url, "postgresql_url", *make, create, rows, keys=("k",)) as source:
            read = ranges(source)
    finally:
        with sa.create_engine(sa.make_url(postgresql_url).set(drivername="postgresql+psycopg")).begin() as connection:
            connection.exec_driver_sql(f"DROP TYPE IF EXISTS {size}")
    assert sum(read, Counter()) == Counter(values)
    assert len(read) == count


@pytest.mark.parametrize("key", ["enum('xs','s','m','l','xl')", "set('xs','s','m','l','xl')"])
def test_every_key_of_mariadb_is_loaded_once(mariadb_url: str, key: str) -> None:
    """It orders these by rank and compares them as texts: rows were missing from the lake."""
    values = ["m", "s", "xl", "l", "xs"]
    rows = "INSERT INTO {t} VALUES " + ", ".join(f"('{value}')" for value in values)
    with table(mariadb_url, "mariadb_url", f"CREATE TABLE {{t}} (k {key})", rows, keys=("k",)) as source:
        assert ranges(source) == [Counter(values)]
