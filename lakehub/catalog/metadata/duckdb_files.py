"""Asks DuckDB about the columns and keys of files; small, bounded, and off the network.

SQL is put together from our own words and quoted identifiers; file names are bound.
"""
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from lakehub.catalog.metadata import EVIDENCE_LIMIT, ColumnMetadata, ColumnType, KeyEvidence, MetadataUnavailable

READ_FUNCTIONS = {
    ".csv": "read_csv(?, union_by_name = true)",
    ".jsonl": "read_json(?, format = 'newline_delimited', union_by_name = true)",
    ".parquet": "read_parquet(?, union_by_name = true, hive_partitioning = false)",
}
"""How a file with this ending is read; the parameter is the list of files."""

_COLUMN_TYPES = {
    "VARCHAR": ColumnType.STRING,
    "DOUBLE": ColumnType.FLOAT,
    "FLOAT": ColumnType.FLOAT,
    "BOOLEAN": ColumnType.BOOLEAN,
    "DATE": ColumnType.DATE,
    "BLOB": ColumnType.BINARY,
}


def read_columns(files: Sequence[Path], ending: str) -> tuple[ColumnMetadata, ...]:
    with _connect() as db:
        rows = _execute(db, f"DESCRIBE SELECT * FROM {READ_FUNCTIONS[ending]}", files).fetchall()
    return tuple(ColumnMetadata(name, _column_type(kind)) for name, kind, *_ in rows)


def read_key_evidence(files: Sequence[Path], ending: str, key: Sequence[str]) -> KeyEvidence:
    parts = ", ".join('"' + part.replace('"', '""') + '"' for part in key)
    whole = " AND ".join(f'"{part.replace(chr(34), chr(34) * 2)}" IS NOT NULL' for part in key)
    first = f"SELECT {parts} FROM {READ_FUNCTIONS[ending]} LIMIT {EVIDENCE_LIMIT}"
    query = (
        f"WITH looked_at AS ({first}), held AS (SELECT * FROM looked_at WHERE {whole}) "
        "SELECT (SELECT count(*) FROM looked_at), (SELECT count(*) FROM (SELECT DISTINCT * FROM held)), (SELECT count(*) FROM held)"
    )
    with _connect() as db:
        row = _execute(db, query, files).fetchone()
    assert row is not None  # an aggregate always gives one row
    return KeyEvidence(rows=row[0], distinct=row[1], nulls=row[0] - row[2])


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        config={
            "memory_limit": "512MB",
            "threads": "2",
            "autoinstall_known_extensions": "false",
            "python_enable_replacements": "false",
        }
    )


def _execute(db: duckdb.DuckDBPyConnection, sql: str, files: Sequence[Path]) -> duckdb.DuckDBPyConnection:
    try:
        return db.execute(sql, [[str(file) for file in files]])
    except duckdb.Error as error:
        raise MetadataUnavailable(f"The files {files[0].name}, ... cannot be read: {error}") from error


def _column_type(kind: str) -> ColumnType:
    if kind.startswith("TIMESTAMP"):
        return ColumnType.TIMESTAMP
    if kind.startswith("DECIMAL"):
        return ColumnType.DECIMAL
    if kind.endswith("INT") or kind == "INTEGER":
        return ColumnType.INTEGER
    return _COLUMN_TYPES.get(kind, ColumnType.OTHER)
