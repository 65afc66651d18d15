"""Where the changes of an input are ignored, a row of the target may have been made from rows that the input has no more.
Whatever these were: the keys whose rows differ since the other inputs have changed are among those that the changes are said to reach."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

import duckdb
import pytest

from ingestion.domain.pipelines.affected.affected_keys import check_followed
from ingestion.domain.pipelines.affected.not_followed import NotFollowed
from ingestion.domain.pipelines.affected.query_shape import QueryShape
from tests.contracts.pipelines.changing_tables import (
    COLUMNS,
    Tables,
    changed_tables,
    differing_keys,
    random_tables,
    reached_keys,
)
from tests.contracts.pipelines.random_queries import random_query
from tests.contracts.pipelines.test_affected_keys import QUERIES
from tests.fuzz_seed import SEED

WITH_IGNORED = {
    "windows by the followed and the ignored": (["id"], "SELECT f.id, count(*) OVER (PARTITION BY f.day, p.maker) AS n FROM f LEFT JOIN p ON f.tail = p.tail", {"p"}),
    "an ignored table between": (["id"], "SELECT f.id, k.currency FROM f JOIN c ON f.carrier = c.carrier JOIN k ON c.country = k.country AND f.day = k.country", {"c"}),
    "conditions on it": (["id"], "SELECT f.id FROM f JOIN p ON f.tail = p.tail WHERE p.seats > 1 AND (p.maker = f.day OR f.delay > 1) AND f.day < 3", {"p"}),
    "a group over it": (["day"], "SELECT f.day, max(p.seats) AS seats, count(*) AS n FROM f JOIN p ON f.tail = p.tail GROUP BY f.day, p.maker HAVING max(p.seats) > 1", {"p"}),
    "the newest row of it": (["id"], "SELECT f.id, n.maker FROM f JOIN (SELECT tail, maker, row_number() OVER (PARTITION BY maker ORDER BY seats, tail) AS place FROM p) n ON f.tail = n.tail AND n.place = 1", {"p"}),
    "a constant of it": (["id", "known"], "SELECT f.id, coalesce(t.flag, 0) AS known, p.maker FROM f LEFT JOIN (SELECT 1 AS flag FROM c WHERE country > 1) t ON f.day > 1 LEFT JOIN p ON p.tail = f.tail", {"c"}),
    "a partner in it and one beside it": (["id"], "SELECT id, day FROM f WHERE EXISTS (SELECT 1 FROM c JOIN k ON c.country = k.country WHERE c.carrier = f.carrier AND k.currency = f.day)", {"c"}),
    "a member of it or of another": (["id"], "SELECT id, day FROM f WHERE carrier IN (SELECT carrier FROM c) OR tail IN (SELECT tail FROM p)", {"c"}),
    "rows without a partner in it": (["id"], "SELECT f.id, p.maker FROM f LEFT ANTI JOIN c ON f.carrier = c.carrier LEFT JOIN p ON f.tail = p.tail", {"c"}),
    "an optional query over it": (["id", "seats"], "SELECT f.id, coalesce(t.seats, -1) AS seats FROM f LEFT JOIN (SELECT p.tail, p.seats, c.country FROM p JOIN c ON p.maker = c.carrier) t ON f.tail = t.tail AND t.country > f.day", {"c"}),
}  # fmt: skip
"""Beside the queries of which any table may be ignored: the key, the SELECT and the tables whose changes are ignored."""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def shape_of(sql: str, keys: Sequence[str], ignored: Collection[str]) -> QueryShape:
    """Raises NotFollowed."""
    shape = QueryShape.of(sql, COLUMNS, ignored)
    check_followed(shape, keys, sorted(shape.inputs.difference(ignored)))
    return shape


def count_differing(
    database: duckdb.DuckDBPyConnection,
    sql: str,
    keys: Sequence[str],
    ignored: Collection[str],
    chance: random.Random,
    rounds: int,
) -> int:
    """How many keys had other rows after the changes of inputs that are followed. Raises NotFollowed, and AssertionError where one was not said to be reached."""
    shape, count = shape_of(sql, keys, ignored), 0
    for _ in range(rounds):
        before = random_tables(chance)
        after = changed_tables(before, chance)
        reached = reached_keys(database, shape, keys, before, after, ignored)
        for _ in range(2):
            then = random_tables(chance)
            differing = differing_keys(database, sql, keys, _with(before, then, ignored), _with(after, then, ignored))
            assert differing <= reached, f"seed {SEED}: {sql} without {ignored}: {before} -> {after}, with {then}"
            count += len(differing)
    return count


def _with(tables: Tables, then: Tables, ignored: Collection[str]) -> Tables:
    """`then`: what ignored inputs held when rows of the target were made from them."""
    return {name: then[name] if name in ignored else rows for name, rows in tables.items()}


@pytest.mark.parametrize("name", WITH_IGNORED)
def test_changes_of_the_others_are_followed_whatever_an_ignored_input_held(
    name: str, database: duckdb.DuckDBPyConnection
) -> None:
    keys, sql, ignored = WITH_IGNORED[name]
    chance = random.Random(f"{SEED} {name}")
    assert count_differing(database, sql, keys, ignored, chance, 25) > 0


def test_so_it_is_for_each_query_and_each_table_that_it_can_do_without(database: duckdb.DuckDBPyConnection) -> None:
    chance = random.Random(f"{SEED} ignored")
    followed = differed = 0
    for keys, sql in QUERIES.values():
        inputs = sorted(QueryShape.of(sql, COLUMNS).inputs)
        for ignored in [each for size in (1, 2) for each in combinations(inputs, size)]:
            try:
                differed += count_differing(database, sql, keys, ignored, chance, 4)
            except NotFollowed:
                continue
            followed += 1
    assert followed > 25
    assert differed > 100


def test_so_it_is_for_queries_that_nobody_has_thought_of(database: duckdb.DuckDBPyConnection) -> None:
    chance = random.Random(f"{SEED} random ignored")
    followed = differed = 0
    for _ in range(400):
        sql, ignored = random_query(chance, 3), chance.sample([*COLUMNS], 1)
        try:
            if ignored[0] not in QueryShape.of(sql, COLUMNS).inputs:
                continue
            differed += count_differing(database, sql, ["a"], ignored, chance, 4)
        except NotFollowed:
            continue
        followed += 1
    assert followed > 8
    assert differed > 20
