"""`python -m quality.engines.user_sql.sandbox`: one query of a person's over files, in a process that can do nothing else.

Reads a request as JSON on its standard input and answers with JSON. Whatever the query does, this process has a limit of memory,
of processor time and of time on the clock, opens only the files that the request names, and knows no secret: the parent gives
it no environment. The statement was looked at before (`checked_select`); what is here holds also where that was fooled.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

_PAGE_SIZE = resource.getpagesize()
_SPILL_PREFIX = "lakehub-query-"
_ADDRESS_HEADROOM = 2**30
"""Addresses that threads and allocators set aside and hardly use."""


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


UNFIT_VALUE_MESSAGE = (
    "the query meets a value that it cannot convert or compute with; TRY_CAST gives NULL for such a one"
)
"""In place of what the database says: it shows the value."""


_SETTINGS_ERROR = "Invalid Input Error: Cannot "


def _error_text(failed: Exception) -> str:
    """Also what it spilled to disk was bounded."""
    if isinstance(failed, duckdb.DataError | duckdb.InvalidInputException) and not str(failed).startswith(
        _SETTINGS_ERROR
    ):
        return UNFIT_VALUE_MESSAGE
    spilled = isinstance(failed, duckdb.IOException) and _SPILL_PREFIX in str(failed)
    return "the query needs more memory than it may have" if spilled or not str(failed) else str(failed).splitlines()[0]


def limit_process(*, seconds: float, memory: int, threads: int) -> None:
    """The process is killed by the system where it exceeds one of these; the parent has a clock of its own as well."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_SIZE if sys.platform == "linux" else 2**30
    for resource_kind, most in (
        (resource.RLIMIT_AS, used + 2 * memory + _ADDRESS_HEADROOM),
        (resource.RLIMIT_CPU, int(seconds * threads) + 1),
        (resource.RLIMIT_FSIZE, 2 * memory),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(resource_kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # A second more for the one that is told first, by a signal of its own.
        resource.setrlimit(resource_kind, (allowed, allowed + 1 if hard == resource.RLIM_INFINITY else hard))
    signal.setitimer(signal.ITIMER_REAL, seconds + 1)


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
        rows = database.execute(request["sql"], parameters).fetchmany(2)
        return check_single_number(rows)


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


def check_single_number(rows: list[Any]) -> object:
    """The one number of the one row. Raises ValueError."""
    if len(rows) != 1 or len(rows[0]) != 1:
        shown = "no row" if not rows else "more than one row" if len(rows) > 1 else f"{len(rows[0])} columns"
        raise ValueError(f"the query answers {shown}; one row with one number is wanted")
    value = rows[0][0]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | Decimal)):
        # Not the value: who may read the error need not be one who may read the data.
        raise ValueError(f"the query answers a {type(value).__name__}, which is no number")
    return value


# Between the two processes


def encode_value(value: object) -> list[str] | None:
    """A value with its type, as JSON has it."""
    if value is None:
        return None
    text = value.isoformat() if isinstance(value, date) else repr(value) if isinstance(value, float) else str(value)
    return [type(value).__name__, text]


_DECODERS: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "str": str,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def decode_value(value: list[str] | None) -> Any:
    return None if value is None else _DECODERS[value[0]](value[1])


if __name__ == "__main__":
    main()
