"""What a tap makes events of: rows of a table that are whole, or cells that are parts of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ingestion.capture.binlog.events import Row, RowChange
from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.tap.captured_cells import CapturedCells
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec, SchemaVersions, Transaction
from ingestion.capture.tap.known_tables import KnownTable
from ingestion.domain.merging.events import ChangeEvent
from ingestion.heatpipe.subject_schema import SubjectSchema


class CapturedRows(Protocol):
    """By one definition of the table."""

    spec: CaptureSpec
    definition: TableMap
    schema: SubjectSchema
    """Of the next event; it may be another one after a change."""
    misfits: dict[str, str]
    """By column of the events that were made last, why it is null in place of what it had (`CaptureSpec.required`)."""

    @property
    def record_key(self) -> tuple[str, ...]: ...

    def events(self, transaction: Transaction, number: int, change: RowChange) -> Iterator[ChangeEvent]:
        """`number`: of the row, among those of the table in the transaction. Raises UnfitEvent, NotCaptured; ValueError for a value that its column
        cannot have."""

    def messages_of(self, change: RowChange) -> int:
        """How many it is, one of which may be that the row was put aside: told by the row alone, and not by the events that are made of it."""

    def source_column(self, change: RowChange) -> str:
        """The column of the source that changed, of one that changes column by column; else empty."""

    def shown(self, row: Row | None) -> Mapping[str, Any] | None:
        """For a row that is put aside."""


def captured_rows(
    spec: CaptureSpec, definition: TableMap, versions: SchemaVersions, charsets: Mapping[int, str]
) -> CapturedRows:
    """Raises NotCaptured."""
    kind = CapturedTable if spec.cells is None else CapturedCells
    return kind.of(spec, definition, versions, charsets)


def known_table(rows: CapturedRows) -> KnownTable:
    """What is kept of their table."""
    spec = rows.spec
    return KnownTable.of(spec.load, rows.definition, rows.record_key, with_columns=spec.stops_at_narrowing)
