"""Connections to the DuckDB of this process, bounded in time and memory."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import duckdb

from quality.engines.scans.deadline import deadline
from quality.engines.scans.scan import Limits


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
    spill = tempfile.TemporaryDirectory(prefix="lakehub-duckdb-")
    atexit.register(spill.cleanup)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": threads,
        "temp_directory": spill.name,
        "enable_external_file_cache": False,
    }
    database = duckdb.connect(":memory:", config=settings)
    database.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
    return database
