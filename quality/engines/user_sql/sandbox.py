"""`python -m quality.engines.user_sql.sandbox`: one query of a person's over files, in a process that can do nothing else.

Reads a request as JSON on its standard input and answers with JSON. Whatever the query does, this process has a limit of memory,
of processor time and of time on the clock, opens only the files that the request names, and knows no secret: the parent gives
it no environment. The statement was looked at before (`checked_select`); what is here holds also where that was fooled.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from quality.engines.user_sql.child_process import (
    MEMORY_MESSAGE,
    UNFIT_VALUE_MESSAGE,
    check_single_number,
    decode_value,
    encode_value,
    first_line,
    limit_process,
)

_SPILL_PREFIX = "lakehub-query-"


def main() -> None:
    request = json.load(sys.stdin)
    limit_process(seconds=request["seconds"], memory=request["memory_bytes"], threads=request["threads"])
    try:
        reply: dict[str, object] = {"answer": encode_value(_run_query(request))}
    except (duckdb.Error, MemoryError, ValueError) as failed:
        gone = next((path for path in _requested_paths(request) if not Path(path).exists()), None)
        reply = {"problem": _error_text(failed)} if gone is None else {"gone": gone}
    json.dump(reply, sys.stdout)


def _requested_paths(request: dict[str, Any]) -> list[str]:
    return [path for table in request["tables"].values() for path in table["paths"]]


_SETTINGS_ERROR = "Invalid Input Error: Cannot "


def _error_text(failed: Exception) -> str:
    """Also what it spilled to disk was bounded."""
    if isinstance(failed, duckdb.DataError | duckdb.InvalidInputException) and not str(failed).startswith(
        _SETTINGS_ERROR
    ):
        return UNFIT_VALUE_MESSAGE
    spilled = isinstance(failed, duckdb.IOException) and _SPILL_PREFIX in str(failed)
    return MEMORY_MESSAGE if spilled or not str(failed) else first_line(str(failed))


def _run_query(request: dict[str, Any]) -> object:
    with tempfile.TemporaryDirectory(prefix=_SPILL_PREFIX) as spill:
        database = duckdb.connect(":memory:", config=_duckdb_settings(request, spill))
        database.execute("SET TimeZone = 'UTC'")
        database.execute(f"SET allowed_paths = [{', '.join(map(_quote_text, _requested_paths(request)))}]")
        database.execute("SET enable_external_access = false")
        for name, table in request["tables"].items():
            database.execute(_create_view(name, table))
        database.execute("SET lock_configuration = true")
        parameters = {name: decode_value(value) for name, value in request["parameters"].items()}
        rows = database.execute(_single_select(database, request["sql"]), parameters).fetchmany(2)
        return check_single_number(rows)


def _single_select(database: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """DuckDB's own reading of it: files that may be read may be written too, by COPY. Raises ValueError."""
    statements = database.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("the query may only read: one SELECT is wanted")
    return statements[0]


def _duckdb_settings(request: dict[str, Any], spill: str) -> dict[str, Any]:
    return {
        "memory_limit": request["memory"],
        "threads": request["threads"],
        "temp_directory": spill,
        "max_temp_directory_size": request["memory"],
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }


def _create_view(name: str, table: dict[str, Any]) -> str:
    """Files under the name of their dataset: a view takes no parameters, so its values are quoted; our own text is `where`."""
    paths = ", ".join(_quote_text(path) for path in table["paths"])
    read = table["reader"].format(f"[{paths}]")
    where = f" WHERE {table['where']}" if table.get("where") else ""
    return f"CREATE TEMP VIEW {_quote_name(name)} AS SELECT * FROM {read}{where}"  # noqa: S608  # all of it is quoted


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


if __name__ == "__main__":
    main()
