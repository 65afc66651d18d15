"""Counts the entries of a ledger. What else is asked of it, it says that it cannot tell."""

from __future__ import annotations

from collections.abc import Sequence

from lakehub.catalog.metadata.tables import StoredTable
from lakehub_ledger.storage import LedgerTable, entries_of
from quality.domain.bloom.keys import encode_key
from quality.domain.language.measures import ROWS
from quality.domain.language.values import error
from quality.engines import Engine
from quality.engines.endpoints.streamed import StreamedEndpoint
from quality.engines.scans.parts import CannotRead, Part
from quality.engines.scans.scan import Limits, Scan, ScanAnswers


class LedgerEngine(Engine):
    reads = (LedgerTable,)

    def measure(self, scan: Scan, limits: Limits) -> ScanAnswers:
        entries = _entries(scan.target)
        return ScanAnswers(
            {
                measure: len(entries) if measure == ROWS else error(f"a ledger is counted only, and {measure} is asked")
                for measure in scan.measures
            }
        )

    def endpoint(self, table: StoredTable, part: Part, columns: Sequence[str], limits: Limits) -> StreamedEndpoint:
        keys = [encode_key([int(entry[name]) for name in columns]) for entry in _entries(table)]
        return StreamedEndpoint(columns, lambda: len(keys), lambda: iter([keys]))


def _entries(table: StoredTable) -> list[dict[str, str]]:
    if not isinstance(table, LedgerTable) or not table.path.is_file():
        raise CannotRead(f"{table} is no ledger.")
    return list(entries_of(table))
