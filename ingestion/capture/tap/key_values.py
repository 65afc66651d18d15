"""Which values of a key an ALTER TABLE may have changed in rows that are there already: the binlog says of no row that it has another key now."""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.tap.known_tables import RELOAD

_K = ColumnKind


def why_keys_may_differ(name: str, before: TableMap, after: TableMap, record_key: Sequence[str]) -> str:
    """Of texts that may have lost what they ended with, such as spaces, which no server asks about; empty: none has."""
    if not (shorter := _shortened(before, after, record_key)):
        return ""
    keys = ", ".join(f"`{column}`" for column in shorter)
    return f"Texts of {keys}, a part of the record key of {name}, may have become shorter with its new type, and the binlog does not say which. {RELOAD}"


def _shortened(before: TableMap, after: TableMap, record_key: Sequence[str]) -> list[str]:
    old, new = ({column.name: column for column in each.columns} for each in (before, after))
    return [name for name in record_key if name in old and name in new and _may_be_shorter(old[name], new[name])]


def _may_be_shorter(before: MappedColumn, after: MappedColumn) -> bool:
    if after.kind is _K.STRING:
        return before.kind in (_K.VARCHAR, _K.BLOB)
    if after.kind is _K.VARCHAR:
        return before.kind is _K.BLOB or (before.kind is _K.VARCHAR and _length(after) < _length(before))
    return False


def _length(column: MappedColumn) -> int:
    """In bytes, at most."""
    return int.from_bytes(bytes(column.metadata), "little")
