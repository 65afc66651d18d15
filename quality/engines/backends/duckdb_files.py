"""The DuckDB of this process, bounded in time and memory, and files as its tables.

A partition column is read from the rows, as it was written; from the names of folders (`dt=2026-11-16/`) where the rows lack it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import duckdb

from lakehub.catalog.metadata.duckdb_files import folder_columns
from lakehub.catalog.metadata.tables import Files
from lakehub.kernel.suggest import did_you_mean
from lakehub.scratch import owned_folder
from lakehub.source_databases.deadline import deadline
from quality.engines.scans.parts import CannotRead, EachPartition
from quality.engines.scans.scan import Limits
from quality.engines.sql.measure_sql import TableExpression
from quality.engines.storage.avro import read_avro
from quality.engines.storage.hudi_snapshot import FileSlice
from quality.engines.storage.plain_files import local_files, paths_to_read

TABLE_FUNCTIONS = {
    "parquet": "read_parquet({}, union_by_name = true, hive_partitioning = false)",
    "csv": "read_csv({}, union_by_name = true, hive_partitioning = false, header = true)",
    "jsonl": "read_json({}, union_by_name = true, hive_partitioning = false, format = 'newline_delimited')",
}
_HIVE = ("hive_partitioning = false", "hive_partitioning = true, hive_types_autocast = false")
_FORMATS = (*TABLE_FUNCTIONS, "avro")


@contextmanager
def open_connection(limits: Limits) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor of its own, interrupted when its time is over."""
    with (
        _process_database(os.getpid(), limits.memory, limits.threads).cursor() as connection,
        deadline(limits.timeout, connection.interrupt),
    ):
        yield connection


@lru_cache(maxsize=2)
def _process_database(process: int, memory: str, threads: int) -> duckdb.DuckDBPyConnection:
    """In memory and empty, one a process: opening one takes longer than most scans. A forked child opens its own."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": threads,
        "temp_directory": str(owned_folder("duckdb")),
        "enable_external_file_cache": False,
    }
    database = duckdb.connect(":memory:", config=settings)
    database.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
    return database


def parquet_table(paths: Sequence[str], name: str = "files") -> TableExpression:
    """Files of several schemas: a column that one lacks is null there. `name` is that of the parameter."""
    return TableExpression(TABLE_FUNCTIONS["parquet"].format(f"${name}"), {name: list(paths)})


def count_rows(
    connection: duckdb.DuckDBPyConnection, slices: Sequence[FileSlice], each: EachPartition | None = None
) -> int | dict[str | None, int]:
    """Exact counts, from the footers of Parquet files: nothing is scanned."""
    query = "SELECT file_name, num_rows FROM parquet_file_metadata(?)"
    rows = dict(connection.execute(query, [[file_slice.path for file_slice in slices]]).fetchall())
    if each is None:
        return sum(rows.values())
    counts: dict[str | None, int] = {}
    for file_slice in slices:
        name = each.name_of(file_slice.partition)
        counts[name] = counts.get(name, 0) + rows[file_slice.path]
    return counts


def table_function(connection: duckdb.DuckDBPyConnection, files: Files) -> str:
    """How the files are read: with the columns that only the names of their folders hold, as texts."""
    function = TABLE_FUNCTIONS[files.format]
    paths = local_files(files)
    folders = folder_columns(paths[0]) if paths else frozenset()
    if not folders:
        return function
    first = str(paths[0])
    read = f"SELECT * FROM {function.format('$first')} LIMIT 0"  # noqa: S608  # our own text
    own = {column[0] for column in connection.execute(read, {"first": [first]}).description or []}
    return function if folders <= own else function.replace(*_HIVE)


@contextmanager
def open_files(
    connection: duckdb.DuckDBPyConnection, files: Files, limits: Limits, name: str = "files"
) -> Iterator[TableExpression]:
    """Raises CannotRead for a format that there is no reader for. Avro is held in memory meanwhile."""
    if files.format in TABLE_FUNCTIONS:
        yield TableExpression(table_function(connection, files).format(f"${name}"), {name: paths_to_read(files)})
        return
    if files.format != "avro":
        raise CannotRead(
            f"Files of the format `{files.format}` cannot be measured.{did_you_mean(files.format, _FORMATS)}"
        )
    connection.register(name, read_avro(local_files(files), files.glob, limits.memory))
    try:
        yield TableExpression(name)
    finally:
        connection.unregister(name)
