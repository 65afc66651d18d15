"""reladiff, as its guide shows it: `connect_to_table` and `diff_tables` with the algorithm for two connections (hashdiff), all columns compared."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

from reladiff import Algorithm, connect_to_table, diff_tables


def main() -> int:
    """DATABASE HERE THERE COLUMN,... KEY: tables of one DuckDB file that are hashed and cut as if they were apart."""
    database, here, there, columns, key = sys.argv[1:]
    options = {"driver": "duckdb", "filepath": database}
    names = tuple(columns.split(","))
    tables = [connect_to_table(options, name, key, extra_columns=names, thread_count=1) for name in (here, there)]
    begun = time.perf_counter()
    signs = [
        sign for sign, _ in diff_tables(*tables, algorithm=Algorithm.HASHDIFF, key_columns=(key,), extra_columns=names)
    ]
    output = {
        "version": version("reladiff"),
        "seconds": time.perf_counter() - begun,
        "lacking": signs.count("-"),
        "more": signs.count("+"),
    }
    print(json.dumps(output), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
