"""`python -m quality.engines.user_sql.sqlite_sandbox`: one query of a person's over an SQLite file, in a process that can do nothing else.

Reads a request as JSON on its standard input and answers with JSON, like `sandbox`. The file is opened for reading only; SQLite
asks an authorizer of ours for each table, column and function before it runs the statement, and no other file is opened.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quality.engines.user_sql.child_process import (
    MEMORY_MESSAGE,
    TIMEOUT_MESSAGE,
    UNFIT_VALUE_MESSAGE,
    check_single_number,
    decode_value,
    encode_value,
    first_line,
    limit_process,
)

_PROGRESS_STEPS = 10_000
_LEAST_LENGTH = 2**16
_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}

_SAFE_FUNCTIONS = """
abs char coalesce concat concat_ws format glob hex ifnull iif instr length like likelihood likely lower ltrim max min nullif
octet_length printf quote replace round rtrim sign substr substring trim typeof unhex unicode unlikely upper zeroblob

acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin
sinh sqrt tan tanh trunc

date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp

avg count group_concat string_agg sum total median percentile percentile_cont percentile_disc

row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value

json json_array json_array_length json_error_position json_extract json_object json_quote json_type json_valid -> ->>
json_group_array json_group_object
"""
"""What SQLite has that only computes: no extension is loaded, no file read, no memory addressed, no counter told."""
SAFE_FUNCTIONS = frozenset(_SAFE_FUNCTIONS.split())


def main() -> None:
    request = json.load(sys.stdin)
    limit_process(seconds=request["seconds"], memory=request["memory_bytes"], threads=1)
    try:
        reply: dict[str, object] = {"answer": encode_value(_run_query(request))}
    except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError) as failed:
        reply = {"problem": _error_text(failed)}
    json.dump(reply, sys.stdout)


def _run_query(request: dict[str, Any]) -> object:
    connection = sqlite3.connect(f"{Path(request['path']).as_uri()}?mode=ro", uri=True, timeout=request["seconds"])
    _limit_connection(connection, seconds=request["seconds"], memory=request["memory_bytes"])
    connection.set_authorizer(_readable_tables(connection, request["tables"], request["defined_names"]).authorize)
    parameters = [decode_value(value) for value in request["parameters"]]
    return check_single_number(connection.execute(request["sql"], parameters).fetchmany(2))


def _limit_connection(connection: sqlite3.Connection, *, seconds: float, memory: int) -> None:
    for category, most in _LIMITS.items():
        connection.setlimit(category, most)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(_LEAST_LENGTH, min(memory // 4, 10**9)))
    connection.execute(f"PRAGMA hard_heap_limit = {int(memory):d}")
    # What it sorts stays in its memory, which is bounded: nothing is written anywhere.
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA query_only = ON")
    # A view of somebody else's may not call functions that do more than compute.
    connection.execute("PRAGMA trusted_schema = OFF")
    ends_at = time.monotonic() + seconds
    # Asked in the thread that runs the query: no other thread touches this connection.
    connection.set_progress_handler(lambda: int(time.monotonic() > ends_at), _PROGRESS_STEPS)


# What may be read


@dataclass
class _Tables:
    """`named`: the tables of the query, which it may read anyhow. `behind`: (table, view) of what a view among them reads."""

    defined_names: Collection[str]
    named: set[str] = field(default_factory=set)
    behind: set[tuple[str, str]] = field(default_factory=set)

    def authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, accessor: str | None
    ) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if (second or "").lower() in SAFE_FUNCTIONS else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and self._may_read(_folded(first), second or "", database, _folded(accessor)):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str, database: str | None, accessor: str) -> bool:
        if database not in ("main", None):
            return False
        if table in self.named or ((table, accessor) in self.behind and accessor not in self.defined_names):
            return True
        # Rows are counted and no column is read: of what WITH defines, or of a table behind a view.
        return not column and (table in self.defined_names or any(table == behind for behind, _ in self.behind))


def _folded(name: str | None) -> str:
    return (name or "").lower()


def _readable_tables(
    connection: sqlite3.Connection, tables: Collection[str], defined_names: Collection[str]
) -> _Tables:
    """By what SQLite asks for when each table is looked at alone: `tables` are our own text, quoted."""
    # A name that the query defines and that the database has as well is one of the database's until it is allowed.
    stored = {_folded(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    readable = _Tables({_folded(name) for name in defined_names} - stored)

    def note(action: int, first: str | None, column: str | None, database: str | None, accessor: str | None) -> int:
        if action == sqlite3.SQLITE_READ and column:
            readable.named.update([] if accessor else [_folded(first)])
            readable.behind.update([(_folded(first), _folded(accessor))] if accessor else [])
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    for table in tables:
        connection.execute(f"EXPLAIN SELECT * FROM {table}")  # noqa: S608  # quoted by the parent
    return readable


# What is said


_REFUSALS = ("not authorized", "authorization denied", "prohibited", "access to", "vtable constructor failed")
_UNFIT_VALUES = ("integer overflow", "malformed json", "json path", "string or blob too big")


def _error_text(failed: Exception) -> str:
    message = str(failed)
    if isinstance(failed, MemoryError) or "out of memory" in message:
        return MEMORY_MESSAGE
    if message == "interrupted":
        return TIMEOUT_MESSAGE
    if isinstance(failed, sqlite3.DataError) or any(sign in message.lower() for sign in _UNFIT_VALUES):
        return UNFIT_VALUE_MESSAGE
    if any(sign in message for sign in _REFUSALS):
        return f"SQLite refused what the query asks for ({first_line(message)}): it may read the tables that it names"
    return first_line(message) if message else MEMORY_MESSAGE


if __name__ == "__main__":
    main()
