"""Files as a table for DuckDB. Paths name no columns: a partition column is read from the rows, as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehub.kernel.suggest import did_you_mean
from quality.engines.scan import CannotRead, Files
from quality.engines.slices import local_path


@dataclass(frozen=True)
class Source:
    """A table function with the values of its parameters."""

    text: str
    parameters: tuple[object, ...]


_READERS = {
    "parquet": "read_parquet(?, union_by_name = true, hive_partitioning = false)",
    "csv": "read_csv(?, union_by_name = true, hive_partitioning = false, header = true)",
    "jsonl": "read_json(?, union_by_name = true, hive_partitioning = false, format = 'newline_delimited')",
}


def parquet(paths: Sequence[str]) -> Source:
    """Files of several schemas: a column that one lacks is null there."""
    return Source(_READERS["parquet"], (list(paths),))


def file_source(files: Files) -> Source:
    """Raises CannotRead for a format that there is no reader for."""
    if files.format not in _READERS:
        raise CannotRead(
            f"Files of the format `{files.format}` cannot be measured.{did_you_mean(files.format, _READERS)}"
        )
    return Source(_READERS[files.format], (local_path(files.glob),))
