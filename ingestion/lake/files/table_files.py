"""Small queries over the files of a Hudi table as hudi-rs lists them: bounded in memory and time, and right beside a writer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, TypeVar

from lakehub.catalog.metadata.damaged_files import explain_damage
from lakehub.catalog.storages import local_path
from lakehub.kernel.errors import Busy, Refused
from lakehub.scratch import owned_folder
from lakehub.source_databases.deadline import deadline

if TYPE_CHECKING:  # loaded where a file is read: every process has this module, and few read files
    import duckdb

T = TypeVar("T")

MEMORY_LIMIT = "512MB"
"""Of all queries of a process together; what does not fit is spilled."""
TIMEOUT = timedelta(seconds=20)
MAX_AT_ONCE = 2
"""Queries in one process; further ones wait for `_TURN_S` and are told to come again."""
_TURN_S = 5.0
_MAX_ATTEMPTS = 3
_WAIT_S = 0.05
_REMEDY = "Restore it from a backup. Dropping the copy removes its error table too."
_turns, _waiting = BoundedSemaphore(MAX_AT_ONCE), BoundedSemaphore(1)


def read_files(uri: str, read: Callable[[list[str]], T]) -> T:
    """What `read` makes of the paths of the table's newest files: none where there is no table or no commit yet.

    Lists and reads again where a writer's cleaning or rollback took a file away in between. Raises Refused with what is wrong, and Busy.
    """
    import duckdb

    with _turn():
        for last in (False,) * (_MAX_ATTEMPTS - 1) + (True,):
            files: list[str] = []
            try:
                files = _list_files(uri)
                return read(files)
            except Exception as failed:
                if not _is_reading_error(failed):
                    raise
                if last or isinstance(failed, duckdb.InterruptException | duckdb.OutOfMemoryException):
                    raise Refused(_explain(failed, uri, files)) from failed
            time.sleep(_WAIT_S)
    raise AssertionError("the last try returns or raises")


def query_files(query: str, files: Sequence[str], values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a query whose parameter `files` is the list of files; none where there is no file."""
    if not files:
        return []
    with _database(os.getpid()).cursor() as connection, deadline(TIMEOUT, connection.interrupt):
        return connection.execute(query, {"files": list(files), **values}).fetchall()


@contextmanager
def _turn() -> Iterator[None]:
    if not (_turns.acquire(blocking=False) or _wait_for_turn()):
        raise Busy("Other error tables are being read just now.", retry_after_s=int(_TURN_S))
    try:
        yield
    finally:
        _turns.release()


def _wait_for_turn() -> bool:
    """One at a time: whoever waits holds a thread of the process, of which there are few."""
    if not _waiting.acquire(blocking=False):
        return False
    try:
        return _turns.acquire(timeout=_TURN_S)
    finally:
        _waiting.release()


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """In memory and empty, one a process; a forked child opens its own."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY_LIMIT,
        "threads": 2,
        "temp_directory": str(owned_folder("error-rows")),
        "autoinstall_known_extensions": False,
        "python_enable_replacements": False,
        "enable_external_file_cache": False,
    }
    database = duckdb.connect(":memory:", config=config)
    database.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
    return database


def _list_files(uri: str) -> list[str]:
    from hudi import HudiTable

    folder = _local_folder(uri)
    if folder is None:
        raise Refused(f"The error table {uri} is in no lake on files, so it is not read here. Read it with Spark.")
    if not (folder / ".hoodie").is_dir():
        return []
    return sorted(f"{folder}/{hudi_slice.base_file_relative_path()}" for hudi_slice in HudiTable(uri).get_file_slices())


def _local_folder(uri: str) -> Path | None:
    return local_path(uri) if uri.startswith("file:") else None


def _is_reading_error(failed: Exception) -> bool:
    import duckdb
    import pyarrow as pa

    # hudi-rs raises HudiCoreError but does not export it.
    return isinstance(failed, duckdb.Error | pa.ArrowException | OSError) or type(failed).__name__ == "HudiCoreError"


def _explain(failed: Exception, uri: str, files: Sequence[str]) -> str:
    import duckdb

    if isinstance(failed, duckdb.InterruptException):
        seconds = int(TIMEOUT.total_seconds())
        return (
            f"Reading the error table {uri} took longer than {seconds} s and was stopped. Narrow it by column or run."
        )
    if isinstance(failed, duckdb.OutOfMemoryException):
        return f"Reading the error table {uri} takes more memory than {MEMORY_LIMIT}. Narrow it by column or run."
    folder = _local_folder(uri)
    # hudi-rs reads the newest file to list them, so there may be no list of them.
    paths: list[str] | list[Path] = list(files) or (sorted(folder.glob("*.parquet")) if folder else [])
    return explain_damage(failed, paths, shown=f"The error table {uri}", remedy=_REMEDY)
