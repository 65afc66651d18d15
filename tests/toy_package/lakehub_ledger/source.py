"""Entries are only ever added at the end: a position is how many lines were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, SourceConfig, SourceReading
from lakehub_ledger.storage import LedgerStorage, columns_of, entries_of


class LedgerSource:
    def __init__(self, config: SourceConfig) -> None:
        self._table = LedgerStorage(config.url).table(config.object)

    def schema(self) -> Schema:
        return Schema.of(columns_of(self._table))

    def snapshot(
        self, *, upto: datetime | None = None, only: Mapping[str, Sequence[str]] | None = None
    ) -> SourceReading:
        return self._reading(0, only or {})

    def changes(self, position: Position, *, upto: datetime | None = None) -> SourceReading:
        return self._reading(position["entries"], {})

    def _reading(self, first: int, only: Mapping[str, Sequence[str]]) -> SourceReading:
        entries = list(entries_of(self._table))
        read = [row for row in entries[first:] if all(row[name] in values for name, values in only.items())]
        chunk = Chunk({name: [row[name] for row in read] for name in columns_of(self._table)})
        return SourceReading(iter([chunk] if read else []), lambda: {"entries": len(entries)})
