"""`ledger:/books` is a folder of ledgers; `payments` is the file payments.ledger: `id:long|amount:double`, then `1|9.5`, ..."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehub.catalog.metadata import ColumnMetadata, ColumnType, KeyEvidence, NoSuchTable, TableMetadata
from lakehub.catalog.metadata.tables import StoredTable
from lakehub.catalog.storages import LocalPath, Storage, local_path

TYPES = {"long": ColumnType.INTEGER, "string": ColumnType.STRING, "timestamp": ColumnType.TIMESTAMP}


@dataclass(frozen=True)
class LedgerTable(StoredTable):
    path: Path


class LedgerStorage(Storage):
    table_hint = "the name of a ledger without its ending"

    def tables(self, limit: int) -> Sequence[str]:
        return sorted(file.stem for file in local_path(self.url, "ledger").glob("*.ledger"))[:limit]

    def describe(self, table: str) -> TableMetadata:
        columns = columns_of(self.table(table))
        return TableMetadata(tuple(ColumnMetadata(name, TYPES[kind]) for name, kind in columns.items()))

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        keys = [tuple(entry[part] for part in key) for entry in entries_of(self.table(table))]
        return KeyEvidence(len(keys), len(set(keys)), 0)

    def table(self, table: str) -> LedgerTable:
        return LedgerTable(local_path(self.url, "ledger") / f"{table}.ledger")

    def location(self) -> LocalPath:
        return LocalPath(local_path(self.url, "ledger"))


def columns_of(table: LedgerTable) -> dict[str, str]:
    """Raises NoSuchTable."""
    if not table.path.is_file():
        raise NoSuchTable(f"There is no ledger {table.path}.")
    head, *_ = table.path.read_text().splitlines()
    return dict(column.split(":") for column in head.split("|"))


def entries_of(table: LedgerTable) -> Iterator[dict[str, str]]:
    names = list(columns_of(table))
    for line in table.path.read_text().splitlines()[1:]:
        yield dict(zip(names, line.split("|"), strict=True))
