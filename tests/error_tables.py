"""Error tables made by hand, as jobs write them, with no JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests import hudi_tables
from tests.factories import NOW

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("error_key", "column", "reason", "raw", "source", "run")),
        ("read_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""Of a table that an older version made."""
WITH_RESOLUTION = pa.schema(
    [*SCHEMA, ("fixed", pa.string()), ("resolved_at", pa.timestamp("us", tz="UTC")), ("resolved_by", pa.string())]
)


def error_row(number: int, **fields: Any) -> dict[str, Any]:
    """Row `number`, read so many seconds before NOW."""
    row = {
        "error_key": f"{sha256(str(number).encode()).hexdigest()}-0",
        "column": "amount",
        "reason": f"`amount` is {number}.125 (float), which is no decimal(12,2)",
        "raw": f'{{"amount": {number}.125}}',
        "source": "orders",
        "run": None,
        "read_at": NOW - timedelta(seconds=number),
    }
    return row | fields


def error_table(folder: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """A table with one commit; returns its URI."""
    return hudi_tables.hudi_table(folder, {None: pa.Table.from_pylist(list(rows), SCHEMA)}, key="error_key")


def add_rows(folder: Path, rows: Sequence[Mapping[str, Any]], instant: str = "20261116130000000") -> None:
    hudi_tables.commit(folder, {None: pa.Table.from_pylist(list(rows), SCHEMA)}, instant=instant)


def resolve(folder: Path, row: Mapping[str, Any], *, by: str, fixed: str | None = None) -> None:
    """As a replay appends it."""
    resolved = {**row, "fixed": fixed, "resolved_at": NOW, "resolved_by": by, "read_at": NOW}
    rows = pa.Table.from_pylist([resolved], WITH_RESOLUTION)
    hudi_tables.commit(folder, {None: rows}, instant="20261116140000000")


def key_of(number: int) -> str:
    return str(error_row(number)["error_key"])


def at(seconds_ago: int) -> datetime:
    return NOW - timedelta(seconds=seconds_ago)
