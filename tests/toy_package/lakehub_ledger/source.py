"""Entries are only ever added at the end: a position is how many lines were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, EventBatch, SourceConfig, SourceReading
from lakehub_ledger.storage import LedgerStorage, columns_of, entries_of


class LedgerSource:
    def __init__(self, config: SourceConfig) -> None:
        self._table = LedgerStorage(config.url).table(config.object)

    def schema(self) -> Schema:
        return Schema.of(columns_of(self._table))

    def snapshot(
        self,
        *,
        upto: datetime | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
        after: Position | None = None,
        limits: BatchLimits = UNLIMITED,
    ) -> SourceReading:
        return self._reading(0, only or {})

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading:
        return self._reading(position["entries"], {}, limits.rows)

    def _reading(self, first: int, only: Mapping[str, Sequence[str]], most: int | None = None) -> SourceReading:
        entries = list(entries_of(self._table))
        end = len(entries) if most is None else min(len(entries), first + most)
        read = [row for row in entries[first:end] if all(row[name] in values for name, values in only.items())]
        rows = Chunk({name: [row[name] for row in read] for name in columns_of(self._table)})
        batches = iter([EventBatch.of(rows, self.schema())] if read else [])
        return SourceReading(batches, lambda: {"entries": end}, has_more=lambda: end < len(entries))
