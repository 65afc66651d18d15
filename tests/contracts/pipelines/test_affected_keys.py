"""The keys that a change is said to reach, against two full recomputations: whatever differs between them was said."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator

import duckdb
import pytest
import sqlglot

from ingestion.domain.pipelines.affected_keys import affected_keys
from ingestion.domain.pipelines.query_shape import QueryShape
from ingestion.domain.pipelines.view_names import ANY, CHANGED
from tests.fuzz_seed import SEED

COLUMNS = {
    "f": ("id", "day", "tail", "carrier", "delay"),
    "p": ("tail", "maker", "seats"),
    "c": ("carrier", "country"),
    "k": ("country", "currency"),
}
Row = tuple[int, ...]
Tables = dict[str, list[Row]]

QUERIES = {
    "one table": (["id"], "SELECT id, delay + 1 AS late FROM f WHERE delay > 1"),
    "a group": (["day", "carrier"], "SELECT day, carrier, sum(delay) AS late, count(*) AS n FROM f GROUP BY day, carrier HAVING count(*) > 1"),
    "a group by numbers and aliases": (["d"], "SELECT day * 2 AS d, max(delay) AS late FROM f GROUP BY d"),
    "a wide table": (["id"], "SELECT f.id, p.maker, c.country FROM f LEFT JOIN p ON f.tail = p.tail LEFT JOIN c ON f.carrier = c.carrier"),
    "a chain of optional tables": (["id"], "SELECT f.id, k.currency FROM f LEFT JOIN c ON f.carrier = c.carrier LEFT JOIN k ON c.country = k.country"),
    "those without a partner": (["id"], "SELECT f.id, f.day FROM f LEFT JOIN p ON f.tail = p.tail WHERE p.maker IS NULL AND f.day < 3"),
    "a key of two inputs": (["carrier", "country"], "SELECT f.carrier, c.country, sum(f.delay) AS late FROM f JOIN c ON f.carrier = c.carrier GROUP BY 1, 2"),
    "a group by a dimension's value": (["country", "day"], "SELECT c.country, f.day, count(*) AS n, max(p.seats) AS s FROM f JOIN c USING (carrier) LEFT JOIN p ON f.tail = p.tail AND p.seats > 1 GROUP BY c.country, f.day"),
    "one table twice": (["id", "other"], "SELECT a.id, b.id AS other, a.delay - b.delay AS d FROM f AS a JOIN f AS b ON a.day = b.day AND a.carrier < b.carrier"),
    "a cross join": (["id", "country"], "SELECT f.id, k.country, k.currency FROM f CROSS JOIN k WHERE f.delay > k.currency"),
    "an expression as key": (["key"], "SELECT concat(f.id, '-', f.day) AS key, p.seats FROM f LEFT JOIN p ON p.tail = f.tail"),
    "distinct rows": (["day", "maker"], "SELECT DISTINCT f.day, p.maker FROM f JOIN p ON f.tail = p.tail"),
}  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.parametrize("name", QUERIES)
def test_each_key_whose_rows_differ_is_among_those_that_a_change_reaches(
    name: str, database: duckdb.DuckDBPyConnection
) -> None:
    chance = random.Random(f"{SEED} {name}")
    keys, sql = QUERIES[name]
    shape = QueryShape.of(sql, COLUMNS)
    differed = 0
    for _ in range(25):
        before = random_tables(chance)
        after = changed_tables(before, chance)
        differing = differing_keys(database, sql, keys, before, after)
        reached = reached_keys(database, shape, keys, before, after)
        assert differing <= reached, f"seed {SEED}: {before} -> {after}"
        differed += len(differing)
    assert differed > 0


def random_tables(chance: random.Random) -> Tables:
    """With keys that come twice, and names that the other table lacks."""
    return {
        name: [tuple(chance.randrange(4) for _ in columns) for _ in range(chance.randrange(7))]
        for name, columns in COLUMNS.items()
    }


def changed_tables(tables: Tables, chance: random.Random) -> Tables:
    """Rows of one input or several are gone, others, or new."""
    changed = {name: list(rows) for name, rows in tables.items()}
    for name in chance.sample([*COLUMNS], chance.randrange(1, 4)):
        rows = [row for row in changed[name] if chance.random() > 0.3]
        changed[name] = rows + [tuple(chance.randrange(4) for _ in COLUMNS[name]) for _ in range(chance.randrange(3))]
    return changed


def differing_keys(
    database: duckdb.DuckDBPyConnection, sql: str, keys: list[str], before: Tables, after: Tables
) -> set[Row]:
    results = []
    for tables in (before, after):
        for name, rows in tables.items():
            make(database, name, name, rows)
        rows_of = defaultdict(list)
        cursor = database.execute(in_duckdb(sql))
        names = [column[0] for column in cursor.description or ()]
        for row in cursor.fetchall():
            rows_of[tuple(row[names.index(key)] for key in keys)].append(row)
        results.append({key: sorted(rows, key=str) for key, rows in rows_of.items()})
    return {key for key in results[0] | results[1] if results[0].get(key) != results[1].get(key)}


def reached_keys(
    database: duckdb.DuckDBPyConnection, shape: QueryShape, keys: list[str], before: Tables, after: Tables
) -> set[Row]:
    reached = set()
    for name in COLUMNS:
        gone, new = minus(before[name], after[name]), minus(after[name], before[name])
        make(database, f"{CHANGED}{name}", name, gone + new)
        make(database, f"{ANY}{name}", name, after[name] + gone)
    for name in {place.input for place in shape.places}:
        by_input = {*database.execute(in_duckdb(affected_keys(shape, keys, name))).fetchall()}
        assert sorted(before[name]) != sorted(after[name]) or not by_input, "what did not change reaches nothing"
        reached |= by_input
    return reached


def minus(rows: list[Row], others: list[Row]) -> list[Row]:
    left = list(rows)
    for row in others:
        if row in left:
            left.remove(row)
    return left


def make(database: duckdb.DuckDBPyConnection, name: str, like: str, rows: list[Row]) -> None:
    database.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(f'{column} INT' for column in COLUMNS[like])})")
    if rows:
        places = ", ".join("?" for _ in COLUMNS[like])
        database.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


def in_duckdb(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]
