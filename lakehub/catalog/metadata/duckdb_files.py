"""Asks DuckDB about the columns and keys of files; small, bounded, and off the network.

SQL is put together from our own words and quoted identifiers; file names are bound.
"""
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from lakehub.catalog.metadata import (
    EVIDENCE_LIMIT,
    SAMPLE_ROWS,
    SAMPLE_SEED,
    ColumnMetadata,
    ColumnType,
    Drawn,
    KeyEvidence,
    MetadataUnavailable,
    NewestValues,
)
from lakehub.catalog.metadata.damaged_files import explain_damage
from lakehub.scratch import temporary_folder

READ_FUNCTIONS = {
    ".csv": "read_csv($files, union_by_name = true, hive_partitioning = false)",
    ".jsonl": "read_json($files, format = 'newline_delimited', union_by_name = true, hive_partitioning = false, map_inference_threshold = -1)",
    ".parquet": "read_parquet($files, union_by_name = true, hive_partitioning = false)",
}
"""How a file with this ending is read; the parameter `files` is the list of files."""

_FIRST_ROWS = 1_000_000
_MANY_VALUES = 100_000
"""More different ones among the first rows are those of a key, or of times to the second."""
_ROWS_PER_VALUE = 20

_COLUMN_TYPES = {
    "VARCHAR": ColumnType.STRING,
    "DOUBLE": ColumnType.FLOAT,
    "FLOAT": ColumnType.FLOAT,
    "BOOLEAN": ColumnType.BOOLEAN,
    "DATE": ColumnType.DATE,
    "BLOB": ColumnType.BINARY,
    "TIME": ColumnType.TIME,
    "JSON": ColumnType.JSON,
}


def read_columns(files: Sequence[Path], ending: str) -> tuple[ColumnMetadata, ...]:
    with _connect() as db:
        rows = _execute(db, f"DESCRIBE SELECT * FROM {_read_function(files, ending)}", files).fetchall()
    return tuple(ColumnMetadata(name, _column_type(kind)) for name, kind, *_ in rows)


def _read_function(files: Sequence[Path], ending: str) -> str:
    """With the columns that only the names of their folders hold (`dt=2026-11-16/`), as texts."""
    function = READ_FUNCTIONS[ending]
    folders = folder_columns(files[0])
    if not folders:
        return function
    with _connect() as db:
        rows = _execute(db, f"DESCRIBE SELECT * FROM {function}", files[:1]).fetchall()
    if folders <= {name for name, *_ in rows}:
        return function
    return function.replace("hive_partitioning = false", "hive_partitioning = true, hive_types_autocast = false")


def folder_columns(file: Path) -> frozenset[str]:
    """The columns that the folders of a file are named after, as `dt` in `dt=2026-11-16/`."""
    parts = (part.partition("=") for part in file.parent.parts)
    return frozenset(name for name, equals, _ in parts if equals and name)


def read_key_evidence(files: Sequence[Path], ending: str, key: Sequence[str]) -> KeyEvidence:
    """Of all rows; where they are many, of all rows of the keys that a hash chooses, and of all rows that have a null in the key."""
    table = _read_function(files, ending)
    parts = [_quoted(part) for part in key]
    whole = " AND ".join(f"{part} IS NOT NULL" for part in parts)
    nulls = ", ".join(f"count(*) - count({part})" for part in parts)
    with _connect() as db:
        counted = _execute(db, f"SELECT count(*) FROM {table}", files).fetchone()
        assert counted is not None  # an aggregate always gives one row
        total: int = counted[0]
        one_in = 1 if total <= EVIDENCE_LIMIT else -(-total // SAMPLE_ROWS)
        chosen = "" if one_in == 1 else f" AND hash({SAMPLE_SEED}, {', '.join(parts)}) % {one_in} = 0"
        held = f"SELECT {', '.join(parts)}, count(*) AS n FROM {table} WHERE {whole}{chosen} GROUP BY ALL"
        query = (
            f"SELECT (SELECT count(*) FROM {table} WHERE NOT ({whole})), count(*), coalesce(sum(n), 0) FROM ({held})"
        )
        without, distinct, rows = _execute(db, query, files).fetchone() or (0, 0, 0)
        by_column = _execute(db, f"SELECT {nulls} FROM {table}", files).fetchone() if without else ()
    return KeyEvidence(
        rows=int(rows) + without,
        distinct=distinct,
        nulls=without,
        null_columns={name: count for name, count in zip(key, by_column or (), strict=False) if count},
        drawn=Drawn.ALL if one_in == 1 else Drawn.BY_KEY,
        total=None if one_in == 1 else total,
    )


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def read_newest_values(files: Sequence[Path], ending: str, columns: Sequence[str], limit: int) -> NewestValues:
    """Of all rows: files mostly begin with the oldest.

    Of columns such as keys, of which nearly every row has its own value, those of the greatest rows: to tell all values apart
    takes long.
    """
    quoted = [_quoted(column) for column in columns]
    table = _read_function(files, ending)
    first_rows = f"SELECT {', '.join(quoted)} FROM {table} LIMIT {_FIRST_ROWS}"
    whole = " AND ".join(f"{column} IS NOT NULL" for column in quoted)
    order = ", ".join(f"{column} DESC" for column in quoted)
    rows = f"SELECT {', '.join(quoted)} FROM {table} WHERE {whole}"
    with _connect() as db:
        different = _execute(db, f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({first_rows}))", files).fetchone()
        if different is not None and different[0] > _MANY_VALUES:
            rows = f"{rows} ORDER BY {order} LIMIT {limit * _ROWS_PER_VALUE:d}"
        query = f"SELECT DISTINCT * FROM ({rows}) ORDER BY {order} LIMIT {limit:d}"
        return NewestValues(_execute(db, query, files).fetchall())


@contextmanager
def _connect() -> Iterator[duckdb.DuckDBPyConnection]:
    """What does not fit the memory is spilled into a folder that is gone afterwards."""
    with temporary_folder("evidence") as spill, _database(str(spill)) as db:
        yield db


def _database(spill: str) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        config={
            "memory_limit": "512MB",
            "threads": "2",
            "temp_directory": spill,
            "autoinstall_known_extensions": "false",
            "python_enable_replacements": "false",
        }
    )


def _execute(db: duckdb.DuckDBPyConnection, sql: str, files: Sequence[Path]) -> duckdb.DuckDBPyConnection:
    try:
        return db.execute(sql, {"files": [str(file) for file in files]})
    except duckdb.Error as error:
        raise MetadataUnavailable(explain_damage(error, files, shown=f"The files {files[0].name}, ...")) from error


def _column_type(kind: str) -> ColumnType:
    if kind.endswith("]"):  # a list of times is no time
        return ColumnType.ARRAY
    if kind.startswith(("STRUCT(", "MAP(")):
        return ColumnType.STRUCT if kind.startswith("STRUCT") else ColumnType.MAP
    if kind.startswith("TIMESTAMP"):
        return ColumnType.TIMESTAMP
    if kind.startswith("DECIMAL"):
        return ColumnType.DECIMAL
    if kind.endswith("INT") or kind == "INTEGER":
        return ColumnType.INTEGER
    return _COLUMN_TYPES.get(kind, ColumnType.OTHER)
