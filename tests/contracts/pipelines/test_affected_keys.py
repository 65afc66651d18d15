"""The keys that a change is said to reach, against two full recomputations: whatever differs between them was said."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from ingestion.domain.pipelines.affected.not_followed import NotFollowed
from ingestion.domain.pipelines.affected.query_shape import QueryShape
from tests.contracts.pipelines.changing_tables import (
    COLUMNS,
    changed_tables,
    differing_keys,
    random_tables,
    reached_keys,
)
from tests.contracts.pipelines.random_queries import random_query
from tests.fuzz_seed import SEED

_RANKED = "SELECT *, row_number() OVER (PARTITION BY tail ORDER BY day DESC, id, carrier, delay) AS place FROM f"
QUERIES = {
    "one table": (["id"], "SELECT id, delay + 1 AS late FROM f WHERE delay > 1"),
    "a group": (["day", "carrier"], "SELECT day, carrier, sum(delay) AS late, count(*) AS n FROM f GROUP BY day, carrier HAVING count(*) > 1"),
    "a group by numbers and aliases": (["d"], "SELECT day * 2 AS d, max(delay) AS late FROM f GROUP BY d"),
    "a key computed from what is grouped by": (["d"], "SELECT day * 2 AS d, max(delay) AS late FROM f GROUP BY day"),
    "columns computed from others": (["twice"], "SELECT delay + day AS late, late * 2 AS twice, id FROM f"),
    "a wide table": (["id"], "SELECT f.id, p.maker, c.country FROM f LEFT JOIN p ON f.tail = p.tail LEFT JOIN c ON f.carrier = c.carrier"),
    "a chain of optional tables": (["id"], "SELECT f.id, k.currency FROM f LEFT JOIN c ON f.carrier = c.carrier LEFT JOIN k ON c.country = k.country"),
    "those without a partner": (["id"], "SELECT f.id, f.day FROM f LEFT JOIN p ON f.tail = p.tail WHERE p.maker IS NULL AND f.day < 3"),
    "joined by what may have no partner": (["id"], "SELECT f.id, k.currency FROM f LEFT JOIN c ON f.carrier = c.carrier JOIN k ON coalesce(c.country, 0) = k.country"),
    "chosen by what may have no partner": (["id", "country"], "SELECT f.id, k.country, c.country AS own FROM f LEFT JOIN c ON f.carrier = c.carrier, k WHERE coalesce(c.country, 1) = k.country"),
    "a key with a value for no partner": (["country"], "SELECT coalesce(c.country, -1) AS country, count(*) AS n FROM f LEFT JOIN c ON f.carrier = c.carrier GROUP BY 1"),
    "a key of two inputs": (["carrier", "country"], "SELECT f.carrier, c.country, sum(f.delay) AS late FROM f JOIN c ON f.carrier = c.carrier GROUP BY 1, 2"),
    "a group by a dimension's value": (["country", "day"], "SELECT c.country, f.day, count(*) AS n, max(p.seats) AS s FROM f JOIN c USING (carrier) LEFT JOIN p ON f.tail = p.tail AND p.seats > 1 GROUP BY c.country, f.day"),
    "one table twice": (["id", "other"], "SELECT a.id, b.id AS other, a.delay - b.delay AS d FROM f AS a JOIN f AS b ON a.day = b.day AND a.carrier < b.carrier"),
    "a cross join": (["id", "country"], "SELECT f.id, k.country, k.currency FROM f CROSS JOIN k WHERE f.delay > k.currency"),
    "an expression as key": (["key"], "SELECT concat(f.id, '-', f.day) AS key, p.seats FROM f LEFT JOIN p ON p.tail = f.tail"),
    "distinct rows": (["day", "maker"], "SELECT DISTINCT f.day, p.maker FROM f JOIN p ON f.tail = p.tail"),
    "rows with a partner": (["id"], "SELECT f.id, f.day FROM f LEFT SEMI JOIN c ON f.carrier = c.carrier AND c.country > 1"),
    "rows without a partner": (["id"], "SELECT f.id, f.day FROM f LEFT ANTI JOIN (SELECT tail FROM p GROUP BY tail HAVING count(*) > 1) t ON f.tail = t.tail"),
    "members of others": (["id"], "SELECT id, day FROM f WHERE carrier IN (SELECT carrier FROM c WHERE country > 1) OR tail IN (SELECT p.tail FROM p JOIN f AS g ON g.tail = p.tail WHERE g.delay > 2)"),
    "those that exist elsewhere": (["id"], "SELECT id, day FROM f WHERE EXISTS (SELECT 1 FROM c JOIN k USING (country) WHERE c.carrier = f.carrier AND currency > day AND currency > 0) AND day > 0"),
    "those that do not": (["id"], "SELECT id, day FROM f WHERE NOT EXISTS (SELECT tail FROM p WHERE f.tail = p.tail GROUP BY tail HAVING count(*) > 1) OR (delay > 1 AND EXISTS (SELECT * FROM k))"),
    "WITH": (["id"], "WITH late AS (SELECT id, carrier AS c FROM f WHERE delay > 1) SELECT late.id, c.country FROM late JOIN c ON late.c = c.carrier"),
    "WITH twice": (["id", "other"], "WITH late AS (SELECT id, day FROM f WHERE delay > 0) SELECT a.id, b.id AS other FROM late a JOIN late b ON a.day = b.day AND a.id < b.id"),
    "WITH upon WITH": (["id"], "WITH late AS (SELECT * FROM f WHERE delay > 0), by_day AS (SELECT day, count(*) AS n, max(delay) AS most FROM late GROUP BY day) SELECT l.id, d.n, d.most FROM late l JOIN by_day d ON l.day = d.day AND l.delay = d.most"),
    "groups with a dimension": (["carrier"], "SELECT t.carrier, c.country, t.n FROM (SELECT carrier, count(*) AS n FROM f GROUP BY carrier HAVING count(*) > 1) t LEFT JOIN c ON t.carrier = c.carrier"),
    "groups of groups": (["country"], "SELECT c.country, sum(t.n) AS n, max(t.late) AS late FROM (SELECT day, carrier, sum(delay) AS late, count(*) AS n FROM f GROUP BY day, carrier) t JOIN c ON t.carrier = c.carrier WHERE t.late > 2 GROUP BY c.country"),
    "rows with their group": (["id"], "SELECT f.id, p.maker, t.n FROM f JOIN p ON f.tail = p.tail LEFT JOIN (SELECT tail, count(*) AS n FROM f GROUP BY tail HAVING count(*) > 1) t ON t.tail = p.tail WHERE t.n IS NULL OR t.n > 2"),
    "groups of what may have no partner": (["country"], "WITH by_country AS (SELECT coalesce(c.country, 0) AS country, count(*) AS n FROM f LEFT JOIN c ON f.carrier = c.carrier GROUP BY 1) SELECT k.currency, b.n, b.country FROM k JOIN by_country b ON k.country = b.country"),
    "a query with what may have no partner": (["id"], "SELECT w.id, k.currency FROM (SELECT f.id, coalesce(c.country, 0) AS country FROM f LEFT JOIN c USING (carrier)) w JOIN k ON w.country = k.country"),
    "an optional query with optional values": (["id"], "SELECT f.id, k.currency FROM f LEFT JOIN (SELECT p.tail, c.country FROM p LEFT JOIN c ON p.maker = c.carrier) m ON f.tail = m.tail JOIN k ON coalesce(m.country, 2) = k.country"),
    "a group of distinct rows": (["day"], "SELECT t.day, count(*) AS n FROM (SELECT DISTINCT day, carrier FROM f) t GROUP BY t.day"),
    "UNION ALL": (["key", "kind"], "SELECT id AS key, 'f' AS kind, day FROM f UNION ALL SELECT c.carrier, 'c', k.currency FROM c JOIN k ON c.country = k.country UNION ALL SELECT tail, 'p', seats FROM p"),
    "UNION of groups": (["carrier"], "SELECT carrier, count(*) AS n FROM f GROUP BY carrier UNION SELECT carrier, max(country) FROM c GROUP BY carrier"),
    "EXCEPT": (["carrier"], "SELECT carrier, day FROM f EXCEPT SELECT carrier, country FROM c"),
    "INTERSECT": (["carrier"], "SELECT carrier, day FROM f INTERSECT SELECT carrier, country FROM c"),
    "a group of a UNION": (["key"], "SELECT u.key, count(*) AS n, sum(u.v) AS v FROM (SELECT carrier AS key, delay AS v FROM f UNION ALL SELECT country, currency FROM k UNION ALL SELECT tail, seats FROM p) u GROUP BY u.key"),
    "a UNION of rows and groups": (["key"], "SELECT u.key, c.country FROM (SELECT carrier AS key, day AS v FROM f UNION ALL SELECT tail, max(seats) FROM p GROUP BY tail) u JOIN c ON u.key = c.carrier AND u.v > c.country"),
    "the newest of each": (["tail"], f"WITH ranked AS ({_RANKED}) SELECT r.tail, r.id, r.day, c.country FROM ranked r LEFT JOIN c ON r.carrier = c.carrier WHERE r.place = 1"),
    "the newest of each that has a partner": (["tail"], f"WITH ranked AS ({_RANKED}) SELECT r.tail, c.country FROM ranked r JOIN c ON r.carrier = c.carrier WHERE r.place = 1"),
    "a group of the newest": (["country"], f"WITH ranked AS ({_RANKED}) SELECT c.country, count(*) AS n FROM ranked r JOIN c ON r.carrier = c.carrier WHERE r.place = 1 GROUP BY c.country"),
    "the newest by another key": (["id"], f"WITH ranked AS ({_RANKED}) SELECT r.id, r.place FROM ranked r WHERE r.place < 3"),
    "rank within a day": (["id"], "SELECT id, day, rank() OVER (PARTITION BY day ORDER BY delay) AS place FROM f"),
    "rank of groups": (["day", "carrier"], "SELECT day, carrier, sum(delay) AS late, rank() OVER (PARTITION BY day ORDER BY sum(delay)) AS place FROM f GROUP BY day, carrier"),
    "QUALIFY": (["id"], "SELECT f.id, p.maker FROM f JOIN p ON f.tail = p.tail QUALIFY row_number() OVER (PARTITION BY f.day ORDER BY f.delay DESC, f.id, f.tail, f.carrier, p.maker, p.seats) = 1"),
    "several windows": (["id"], "SELECT id, sum(delay) OVER (PARTITION BY day, carrier) AS a, count(*) OVER (PARTITION BY day) AS b, lag(delay) OVER w AS c FROM f WINDOW w AS (PARTITION BY tail, day ORDER BY delay, id, carrier)"),
    "steps upon steps": (["key"], "WITH both AS (SELECT tail AS key, day AS v, id FROM f UNION ALL SELECT tail, seats, maker FROM p), newest AS (SELECT key, v, row_number() OVER (PARTITION BY key ORDER BY v DESC, id) AS place FROM both), top AS (SELECT * FROM newest WHERE place = 1) SELECT t.key, t.v, c.country, u.v AS next FROM top t LEFT JOIN c ON t.v = c.carrier LEFT JOIN top u ON t.v = u.key"),
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
    differed = rounds = 0
    while rounds < 25 or not differed:
        assert rounds < 500, "nothing ever differs"
        before = random_tables(chance)
        after = changed_tables(before, chance)
        differing = differing_keys(database, sql, keys, before, after)
        reached = reached_keys(database, shape, keys, before, after)
        assert differing <= reached, f"seed {SEED}: {before} -> {after}"
        differed, rounds = differed + len(differing), rounds + 1


def test_so_it_is_for_queries_that_nobody_has_thought_of(database: duckdb.DuckDBPyConnection) -> None:
    chance = random.Random(f"{SEED} random")
    followed = differed = 0
    for _ in range(150):
        sql = random_query(chance, 3)
        try:
            shape = QueryShape.of(sql, COLUMNS)
            for _ in range(5):
                before = random_tables(chance)
                after = changed_tables(before, chance)
                differing = differing_keys(database, sql, ["a"], before, after)
                reached = reached_keys(database, shape, ["a"], before, after)
                assert differing <= reached, f"seed {SEED}: {sql}: {before} -> {after}"
                differed += len(differing)
        except NotFollowed:
            continue
        followed += 1
    assert followed > 50
    assert differed > 200
