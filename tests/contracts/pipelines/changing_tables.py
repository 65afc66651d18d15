"""Small random tables that change, the keys whose rows differ by two full recomputations, and those that the changes are said to reach."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Sequence

import duckdb
import sqlglot

from ingestion.domain.pipelines.affected.affected_keys import affected_keys
from ingestion.domain.pipelines.affected.query_shape import QueryShape
from ingestion.domain.pipelines.view_names import ANY, CHANGED

COLUMNS = {
    "f": ("id", "day", "tail", "carrier", "delay"),
    "p": ("tail", "maker", "seats"),
    "c": ("carrier", "country"),
    "k": ("country", "currency"),
}
Row = tuple[int | None, ...]
Tables = dict[str, list[Row]]
_VALUES = (0, 1, 2, 3, 0, 1, 2, 3, None)


def random_tables(chance: random.Random) -> Tables:
    """With keys that come twice, names that the other table lacks, and nulls."""
    return {name: [random_row(name, chance) for _ in range(chance.randrange(7))] for name in COLUMNS}


def random_row(table: str, chance: random.Random) -> Row:
    return tuple(chance.choice(_VALUES) for _ in COLUMNS[table])


def changed_tables(tables: Tables, chance: random.Random) -> Tables:
    """Rows of one input or several are gone, others, or new."""
    changed = {name: list(rows) for name, rows in tables.items()}
    for name in chance.sample([*COLUMNS], chance.randrange(1, 5)):
        rows = [row for row in changed[name] if chance.random() > 0.3]
        changed[name] = rows + [random_row(name, chance) for _ in range(chance.randrange(3))]
    return changed


def differing_keys(
    database: duckdb.DuckDBPyConnection, sql: str, keys: Sequence[str], before: Tables, after: Tables
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
    database: duckdb.DuckDBPyConnection,
    shape: QueryShape,
    keys: Sequence[str],
    before: Tables,
    after: Tables,
    ignored: Collection[str] = (),
) -> set[Row]:
    """`ignored`: inputs whose changes are not followed, of which the queries find no row: those that a row of the target was made from may all be gone."""
    reached = set()
    for name in COLUMNS:
        if name in ignored:
            make(database, f"{ANY}{name}", name, [])
            continue
        gone, new = minus(before[name], after[name]), minus(after[name], before[name])
        make(database, f"{CHANGED}{name}", name, gone + new)
        make(database, f"{ANY}{name}", name, after[name] + gone)
    for name in shape.inputs.difference(ignored):
        by_input = {*database.execute(in_duckdb(affected_keys(shape, keys, name))).fetchall()}
        is_changed = sorted(before[name], key=str) != sorted(after[name], key=str)
        assert is_changed or not by_input, "what did not change reaches nothing"
        reached |= by_input
    return reached


def minus(rows: list[Row], others: list[Row]) -> list[Row]:
    left = list(rows)
    for row in others:
        if row in left:
            left.remove(row)
    return left


def make(database: duckdb.DuckDBPyConnection, name: str, like: str, rows: list[Row]) -> None:
    columns = ", ".join(f"CAST(NULL AS INT) AS {column}" for column in COLUMNS[like])
    values = "".join(
        f" UNION ALL SELECT {', '.join('NULL' if value is None else str(value) for value in row)}" for row in rows
    )
    database.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {columns} WHERE FALSE{values}")


def in_duckdb(sql: str) -> str:
    return (
        sqlglot.transpile(sql, read="spark", write="duckdb")[0]
        .replace("LEFT SEMI JOIN", "SEMI JOIN")
        .replace("LEFT ANTI JOIN", "ANTI JOIN")
    )
