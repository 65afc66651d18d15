"""Files as a table for DuckDB. Paths name no columns: a partition column is read from the rows, as it was written."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from lakehub.kernel.suggest import did_you_mean
from quality.engines.avro import read_avro
from quality.engines.scan import CannotRead, Files, Limits
from quality.engines.select import Table
from quality.engines.slices import local_path

READERS = {
    "parquet": "read_parquet({}, union_by_name = true, hive_partitioning = false)",
    "csv": "read_csv({}, union_by_name = true, hive_partitioning = false, header = true)",
    "jsonl": "read_json({}, union_by_name = true, hive_partitioning = false, format = 'newline_delimited')",
}
_FORMATS = (*READERS, "avro")


def parquet(paths: Sequence[str], name: str = "files") -> Table:
    """Files of several schemas: a column that one lacks is null there. `name` is that of the parameter."""
    return Table(READERS["parquet"].format(f"${name}"), {name: list(paths)})


@contextmanager
def opened(connection: duckdb.DuckDBPyConnection, files: Files, limits: Limits, name: str = "files") -> Iterator[Table]:
    """Raises CannotRead for a format that there is no reader for. Avro is held in memory meanwhile."""
    if files.format in READERS:
        yield Table(READERS[files.format].format(f"${name}"), {name: local_path(files.glob)})
        return
    if files.format != "avro":
        raise CannotRead(
            f"Files of the format `{files.format}` cannot be measured.{did_you_mean(files.format, _FORMATS)}"
        )
    connection.register(name, read_avro(local_files(files), files.glob, limits.memory))
    try:
        yield Table(name)
    finally:
        connection.unregister(name)


def local_files(files: Files) -> list[Path]:
    """The files of a glob on this machine."""
    return [Path(path) for path in sorted(glob.glob(local_path(files.glob), recursive=True))]


def files_version(files: Files) -> str:
    """Names, sizes and times of writing; empty where the files are not on this machine."""
    seen = [(str(path), stat.st_size, stat.st_mtime_ns) for path in local_files(files) for stat in [path.stat()]]
    return hashlib.sha256(repr(seen).encode()).hexdigest() if seen else ""
