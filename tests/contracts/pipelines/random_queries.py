"""Queries put together by chance from those that people write: each has the columns `a` and `b`, and reads tables or queries that have them."""

from __future__ import annotations

import random

_TABLES = (
    "SELECT carrier AS a, delay AS b FROM f",
    "SELECT tail AS a, id AS b FROM f WHERE day > 0",
    "SELECT tail AS a, seats AS b FROM p",
    "SELECT carrier AS a, country AS b FROM c",
    "SELECT country AS a, currency AS b FROM k",
)
_OF_ONE = (
    "SELECT a, b FROM ({0}) t WHERE b > 0",
    "SELECT b AS a, a AS b FROM ({0}) t",
    "SELECT DISTINCT t.* FROM ({0}) t",
    "SELECT a, sum(b) AS b FROM ({0}) t GROUP BY a",
    "SELECT t.b AS a, max(t.a) AS b FROM ({0}) t GROUP BY t.b HAVING count(*) > 1",
    "SELECT coalesce(a, 1) + 1 AS a, count(*) AS b FROM ({0}) t GROUP BY 1",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) AS b FROM ({0}) t",
    "SELECT b AS a, rank() OVER (PARTITION BY a ORDER BY b DESC) AS b FROM ({0}) t",
    "SELECT t.a, t.b FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY b DESC) AS place FROM ({0}) s) t WHERE t.place = 1",
    "SELECT a, sum(b) + sum(sum(b)) OVER (PARTITION BY a % 2) AS b FROM ({0}) t GROUP BY a",
)
_OF_TWO = (
    "({0}) UNION ALL ({1})",
    "({0}) UNION ({1})",
    "({0}) EXCEPT ({1})",
    "({0}) INTERSECT ({1})",
    "SELECT x.a, y.b FROM ({0}) x JOIN ({1}) y ON x.a = y.a",
    "SELECT x.a, x.b + y.b AS b FROM ({0}) x JOIN ({1}) y ON x.b = y.a AND y.b < x.a",
    "SELECT x.a, y.b FROM ({0}) x LEFT JOIN ({1}) y ON x.b = y.a",
    "SELECT coalesce(y.b, x.a) AS a, y.a AS b FROM ({0}) x LEFT JOIN ({1}) y ON x.b = y.a",
    "SELECT x.a, z.b FROM ({0}) x LEFT JOIN ({1}) y ON x.b = y.a JOIN ({0}) z ON coalesce(y.b, 0) = z.a",
    "SELECT x.a, x.b FROM ({0}) x LEFT SEMI JOIN ({1}) y ON x.a = y.a AND y.b > 0",
    "SELECT x.a, x.b FROM ({0}) x LEFT ANTI JOIN ({1}) y ON x.b = y.b",
    "SELECT a, b FROM ({0}) t WHERE a IN (SELECT a FROM ({1}) s) OR b = 1",
    "SELECT x.a, x.b FROM ({0}) x WHERE NOT EXISTS (SELECT 1 FROM ({1}) y WHERE y.a = x.b AND y.b > 0)",
    "SELECT x.a, count(y.b) AS b FROM ({0}) x LEFT JOIN ({1}) y ON x.a = y.a WHERE y.b IS NULL OR y.b > 0 GROUP BY x.a",
)


def random_query(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(_TABLES)
    if chance.random() < 0.5:
        return chance.choice(_OF_ONE).format(random_query(chance, depth - 1))
    return chance.choice(_OF_TWO).format(random_query(chance, depth - 1), random_query(chance, chance.randrange(depth)))
