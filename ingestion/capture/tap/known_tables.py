"""What a tap knows of a table since its load began: under which keys its rows are, and how wide the columns of these were, and others where that matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.tap.narrowing import changing_columns, narrower_columns

RELOAD = "Load the dataset again, with `replace`, to go on with what is there now; off-board it if the table is gone for good."


@dataclass(frozen=True)
class KnownTable:
    """`record_key`: of its events. `primary_key`: of the table; None: an earlier version of Lakehub has not kept it. `columns`: of the record key; of a
    dataset that stops where one becomes narrower all."""

    load: int
    record_key: tuple[str, ...]
    primary_key: tuple[str, ...] | None = None
    columns: tuple[MappedColumn, ...] = ()

    @classmethod
    def of(cls, load: int, definition: TableMap, record_key: tuple[str, ...], *, with_columns: bool) -> KnownTable:
        columns = [column for column in definition.columns if with_columns or column.name in record_key]
        return cls(load, record_key, definition.primary_key, tuple(columns))

    @property
    def has_unique_rows(self) -> bool:
        """No two rows of the table share the record key, as its primary key is within that."""
        return bool(self.primary_key) and frozenset(self.primary_key or ()) <= frozenset(self.record_key)

    def as_json(self) -> list[Any]:
        primary_key = None if self.primary_key is None else [*self.primary_key]
        return [self.load, [*self.record_key], primary_key, [_column_as_json(column) for column in self.columns]]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> KnownTable:
        """That of earlier versions says less."""
        load, record_key, primary_key, columns = (*stored, None, ()) if len(stored) == 2 else stored
        names = None if primary_key is None else tuple(primary_key)
        return cls(load, tuple(record_key), names, tuple(map(_column_from_json, columns)))


def why_not_followed(name: str, before: KnownTable, now: KnownTable) -> str:
    """What has become of a table that was `before`; empty: it is followed."""
    if before.record_key != now.record_key:
        return f"The record key of {name} was {_listed(before.record_key)} and is {_listed(now.record_key)}. {RELOAD}"
    if before.has_unique_rows and not now.has_unique_rows:
        becomes = f"is {_listed(now.primary_key)}" if now.primary_key else "is gone"
        return (
            f"The primary key of {name} was {_listed(before.primary_key or ())} and {becomes}: several rows may have one record key, {_listed(now.record_key)}, "
            "and would be one row in the lake. Give the table its key again, or onboard it under another name with a key that tells its rows apart; then load "
            "the dataset again, with `replace`."
        )
    if keys := [column for column in changing_columns(before.columns, now.columns) if column in now.record_key]:
        return (
            f"Values of {_listed(keys)}, a part of the record key of {name}, may have become shorter with its new type, and the binlog does not say which: "
            f"such a row would be in the lake under both keys. {RELOAD}"
        )
    if narrow := narrower_columns(before.columns, now.columns):
        return (
            f"{name} has narrower columns than before: {_listed(narrow)}. The server may have changed stored values, which is not in the binlog. {RELOAD} "
            "To keep going after such a change, set the feed option `on_narrowing` to `apply`."
        )
    return ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _column_as_json(column: MappedColumn) -> list[Any]:
    labels = [label.decode("latin-1") for label in column.labels]
    return [column.name, int(column.kind), [*column.metadata], column.is_unsigned, column.collation, labels]


def _column_from_json(stored: Sequence[Any]) -> MappedColumn:
    name, kind, metadata, is_unsigned, collation, labels = stored
    texts = tuple(label.encode("latin-1") for label in labels)
    return MappedColumn(name, ColumnKind(kind), tuple(metadata), is_unsigned, collation, texts)
