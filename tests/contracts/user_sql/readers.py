"""Who else knows which tables a statement reads: SQLite as it compiles it, DuckDB's parser, and the tree of another parser."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from itertools import repeat

import duckdb
import sqlglot
from sqlglot import exp

TABLES = ("this", "weather", "people")
_COLUMNS = ("a", "b", "c", "x", "k", "evil")


class SqliteReader:
    """SQLite asks before it reads a table, as it compiles: nothing is run. Functions that it lacks are put in their place."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:")
        for table in TABLES:
            self._database.execute(f"CREATE TABLE {table} ({', '.join(_COLUMNS)})")
        self._tables: set[str] = set()
        self._others: set[int] = set()
        self._database.set_authorizer(self._authorize)

    def _authorize(self, action: int, first: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            self._tables.add(str(first).lower())
        elif action not in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE):
            self._others.add(action)
        return sqlite3.SQLITE_OK

    def tables_of(self, sql: str) -> set[str] | None:
        """None: SQLite does not compile it. Raises AssertionError where it is more than one statement, or does more than read."""
        self._tables, self._others = set(), set()
        problem = next(
            failed for failed in map(self._problem, repeat(sql)) if failed is None or not self._put_in_place(failed)
        )
        assert not self._others, sql
        assert "one statement" not in (problem or ""), sql
        return None if problem and not self._tables else self._tables

    def _problem(self, sql: str) -> str | None:
        try:
            self._database.execute("EXPLAIN " + sql, dict.fromkeys(("start", "end", "partition")))
        except (sqlite3.Error, sqlite3.Warning) as failed:
            return str(failed)
        return None

    def _put_in_place(self, problem: str) -> bool:
        lacking = re.match(r"no such function: (\w+)", problem)
        if lacking:
            self._database.create_function(lacking[1], -1, lambda *_: None)
        return lacking is not None


class DuckDbReader:
    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:")

    def tables_of(self, sql: str) -> set[str] | None:
        """Those and the functions that it reads as tables. None: its parser does not understand it."""
        try:
            statements = self._database.extract_statements(sql)
        except duckdb.Error:
            return None
        assert [statement.type.name for statement in statements] in (["SELECT"], ["SELECT_STATEMENT"]), sql
        row = self._database.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
        tree = json.loads(row[0]) if row else {"error": True}
        assert not tree["error"], tree
        return set(_read_in(tree))


def _read_in(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for part in node:
            yield from _read_in(part)
    elif isinstance(node, dict):
        kind = node.get("type")
        if kind == "BASE_TABLE":
            assert not node["schema_name"], node
            assert not node["catalog_name"], node
            yield node["table_name"].lower()
        elif kind == "TABLE_FUNCTION" and node["function"]["function_name"] == "unnest":
            pass  # the rows of a list
        elif kind in ("TABLE_FUNCTION", "SHOW_REF", "PIVOT", "BOUND_TABLE_REF"):
            yield f"{kind} {json.dumps(node)[:200]}"
        for part in node.values():
            yield from _read_in(part)


def tables_by_parser(sql: str, dialect: str) -> set[str] | None:
    """By sqlglot without our bounds: all names after FROM and JOIN, and what else is no name."""
    try:
        (statement,) = sqlglot.parse(sql, read=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    assert isinstance(statement, exp.Query), sql
    assert statement.find(exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock) is None, sql
    return {
        table.name.lower() if isinstance(table.this, exp.Identifier) and not table.db else table.sql()
        for table in statement.find_all(exp.Table)
    }
