"""A captured table with what makes messages of its rows, and what is kept of a row of which none can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ingestion.capture.binlog.events import Gtid, RowChange
from ingestion.capture.null_instead import encode_or_null
from ingestion.capture.tap.captured_rows import CapturedRows
from ingestion.capture.tap.open_transaction import OpenTransaction
from ingestion.heatpipe.broken_message import UnfitEvent
from ingestion.heatpipe.encoder import Encoder, Message
from ingestion.heatpipe.unencoded_row import UnencodedRow


class EncodedTable:
    """`rows`: by the definition that they have now. `new_encoder`: for the table of a version."""

    def __init__(self, rows: CapturedRows, new_encoder: Callable[[CapturedRows], Encoder]) -> None:
        self.rows, self._new_encoder, self._encoder = rows, new_encoder, new_encoder(rows)

    def messages(self, transaction: OpenTransaction, number: int, change: RowChange) -> Iterator[Message]:
        """Of the row by its `number` in the transaction. Raises UnfitEvent, NotCaptured; ValueError for a value that its column cannot have."""
        rows = self.rows
        events = [*rows.events(transaction.facts, number, change)]
        if rows.schema is not self._encoder.schema:
            self._encoder = self._new_encoder(rows)
        source_column = rows.source_column(change)
        if rows.spec.required is None:
            return (self._encoder.encode(event, source_column=source_column) for event in events)
        misfits, note_of = dict(rows.misfits), partial(self.put_aside, transaction.gtid, number, change)
        return (
            encode_or_null(
                self._encoder,
                event,
                misfits,
                note_of,
                required=rows.spec.required,
                source_column=source_column,
            )
            for event in events
        )

    def put_aside(self, gtid: Gtid, number: int, change: RowChange, problem: UnfitEvent) -> UnencodedRow:
        """With all that it takes to publish the row again when it was mended."""
        before, after = self.rows.shown(change.before), self.rows.shown(change.after)
        return UnencodedRow(str(gtid), number, problem.defect, problem.field, str(problem), before, after)
