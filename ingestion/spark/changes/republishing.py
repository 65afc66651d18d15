"""Rejected events once more, mended: as new messages of the topic, each of which says what was wrong with the one before.

So they come to the table by the way of every event, in each data center. A mended event has the place in the order of changes that it had before: what
was changed since stands. Of a message that says nothing of its order it is that of the message before it in the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import takewhile
from typing import Any

from ingestion.capture.tap.captured_table import PARTS
from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.capture.tap.position import reference_key
from ingestion.changelog import ChangelogError, Outgoing
from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import run_of_commit
from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, reference_type_of
from ingestion.domain.schema import Schema
from ingestion.heatpipe.broken_message import BrokenMessage, UnfitEvent
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.encoder import MENDED_SOURCE, Encoder, Mended
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import ERRORS_SUFFIX
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.sources import Chunk
from ingestion.spark.changes.broken_raw import is_broken_raw
from ingestion.spark.changes.mended_cells import event_of_cell, mended_cell
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.secret_refs import resolved_options
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading import staging, write_path
from ingestion.spark.loading.fitting import FitRules, fit_rows
from ingestion.spark.loading.raw_rows.replayed import ReplayedRow
from ingestion.spark.rejected import error_table
from ingestion.spark.rejected.error_table import ErrorFacts
from ingestion.spark.tables import hudi
from ingestion.spark.write_permit import hold_write_permit
from lakehub.kernel.cells.cell_tables import read_cell_object

SOURCE = MENDED_SOURCE
_LOOK_BACK = 1_000
"""Messages before a broken one among which the order of its change is looked for."""
_REASON_IN_ERROR_TABLE = "The row was rejected; the error table says why."
_BEFORE_ALL: Mapping[type[bytes | int], bytes | int] = {bytes: reference_key(0, 0), int: -(2**63)}


class _Misfit(ValueError):
    """A value that the schema has no place for."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(reason)
        self.column = column


@dataclass(frozen=True)
class _Order:
    """Where a change is among all changes of its row, when it was committed, and of which column of the source it was, of one that changes column by column.
    `data_center`: of an event that is applied but for some values, which is not to be older than itself."""

    reference: bytes | int
    committed_at: datetime | None = None
    source_column: str = ""
    data_center: str = ""


def row_of_event(raw: str) -> str:
    """The row in the raw text of an event that was rejected, for `replayed_row`; the text itself where it is the row. Empty: it is not there whole."""
    unencoded = UnencodedRow.from_json(raw.encode(errors="backslashreplace"))
    if unencoded is not None and unencoded.is_cut:
        return ""
    if unencoded is not None:
        return json.dumps(unencoded.after if unencoded.after is not None else unencoded.before)
    return "" if is_broken_raw(raw) else raw


def republish(job: Job, rows: Sequence[ReplayedRow]) -> JobReport:
    """What does not fit stays in the error table with the new reason."""
    options = resolved_options(job.source_spec, job.secrets)
    publishing = _Publishing(job, EventTopic.from_options(options), HiddenColumns.from_options(options))
    messages, published, errors = publishing.mended(rows)
    publishing.commit(messages)
    with write_path.staging_folder(job) as uri:
        _note(job, uri, "errors", errors, is_resolved=False)
        resolved = [row.error(row.column, row.reason) for row in published]
        _note(job, uri, "resolved", resolved, is_resolved=True)
    counts = RowCounts(read=len(rows), applied=len(published), errors=len(errors))
    job.tell_rows(len(rows))
    return JobReport(run_of_commit(job.spec.run_id), SUCCEEDED, counts=counts)


@dataclass(frozen=True)
class _Publishing:
    job: Job
    topic: EventTopic
    hidden: HiddenColumns

    @cached_property
    def schema(self) -> SubjectSchema:
        if not self.topic.event_schemas:
            raise JobError(
                f"{self.topic.topic} has no schema yet, so nothing can be published. Wait until its table was captured."
            )
        return self.topic.event_schemas[-1]

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self.topic.topic, self.job.table.record_key, self._reference_type, self.topic.schema_of)

    @cached_property
    def _reference_type(self) -> type[bytes | int]:
        """As the table has them."""
        return reference_type_of(hudi.stored_schema(self.job.spark, self.job.table).types[METADATA_COLUMN])

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.schema, self.job.table.record_key, SOURCE, "", lambda: datetime.now(UTC))

    def mended(
        self, rows: Sequence[ReplayedRow]
    ) -> tuple[list[Outgoing], list[ReplayedRow], list[dict[str, str | None]]]:
        """The messages, the rows that they are made of, and the rows that do not fit."""
        messages, published = list[Outgoing](), list[ReplayedRow]()
        errors = [row.error("", row.problem) for row in rows if row.problem]
        for row in rows:
            if row.problem:
                continue
            self.job.check_deadline()
            try:
                messages += self._messages(row)
                published.append(row)
            except _Misfit as misfit:
                errors.append(row.error(misfit.column, str(misfit)))
            except UnfitEvent as problem:
                errors.append(row.error(problem.field, str(problem)))
        return messages, published, errors

    def _messages(self, row: ReplayedRow) -> Iterator[Outgoing]:
        """Raises _Misfit, UnfitEvent."""
        unencoded = UnencodedRow.from_json(row.raw.encode(errors="backslashreplace"))
        if unencoded is not None and self._reference_type is int:
            yield self._cell_message(row, unencoded)
            return
        values, order = self._fitted(row.values), self._order(row, unencoded)
        is_delete = unencoded is not None and unencoded.after is None
        yield self._message(row, values, order, is_delete=is_delete)
        if unencoded is not None and unencoded.before is not None and not is_delete:
            key = {name: unencoded.before.get(name) for name in self.job.table.record_key}
            before = self._fitted(key)
            if any(before[name] != values[name] for name in key):
                yield self._message(row, before, order, is_delete=True)

    def _fitted(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """In the types of the schema, with what is hidden now. Raises _Misfit."""
        row = self.hidden.concealed(row)
        key, columns = self.job.table.record_key, self.schema.row_columns
        arriving = Schema(tuple(column for column in columns if column.name in {*row, *key}))
        chunk = Chunk({name: [value] for name, value in row.items()})
        fitted = fit_rows(chunk, FitRules(arriving, key, record_key=key))
        if fitted.rejected:
            raise _Misfit(fitted.rejected[0].column, fitted.rejected[0].reason)
        return dict(fitted.rows.to_pylist()[0])

    def _message(self, row: ReplayedRow, values: dict[str, Any], order: _Order, *, is_delete: bool) -> Outgoing:
        event = ChangeEvent(
            Operation.DELETE if is_delete else Operation.UPDATE,
            tuple(values[name] for name in self.job.table.record_key),
            order.reference,
            (0,),
            values,
            self.schema.version,
            order.committed_at,
        )
        return self._outgoing(row, event, order)

    def _cell_message(self, row: ReplayedRow, unencoded: UnencodedRow) -> Outgoing:
        """Raises UnfitEvent."""
        _, options = read_cell_object(self.job.source_spec.object)
        cell = mended_cell(row.values, options)
        event = event_of_cell(cell, self.schema, self.job.table.record_key[0], options, None)
        center = self._order(row, unencoded).data_center if unencoded.is_nulled else ""
        return self._outgoing(row, event, _Order(cell.ref_key, source_column=cell.column, data_center=center))

    def _outgoing(self, row: ReplayedRow, event: ChangeEvent, order: _Order) -> Outgoing:
        mended, encoder = self._mended(row), replace(self._encoder, data_center=order.data_center)
        message = encoder.encode(event, source_column=order.source_column, mended=mended)
        return Outgoing(self.topic.topic, *message)

    def _mended(self, row: ReplayedRow) -> Mended:
        """What it was may have what is hidden by now, and so may the reason; both are in the error table."""
        if self.hidden:
            return Mended(_REASON_IN_ERROR_TABLE, b"")
        return Mended(row.reason or "", row.raw.encode(errors="backslashreplace"))

    def _order(self, row: ReplayedRow, unencoded: UnencodedRow | None) -> _Order:
        if unencoded is not None and not unencoded.is_nulled:
            sequence = int(unencoded.transaction.rpartition("-")[2])
            return _Order(reference_key(sequence, unencoded.row * PARTS + (unencoded.after is not None)))
        topic, partition, offset = (row.source or "").rsplit(":", 2)
        orders = self._orders_upto(topic.removesuffix(ERRORS_SUFFIX), partition, int(offset))
        return next(orders, _Order(_BEFORE_ALL[self._reference_type]))

    def _orders_upto(self, topic: str, partition: str, offset: int) -> Iterator[_Order]:
        """That of the message, where it can be read; else of those before it, the nearest first."""
        bounds = self.topic.reader.bounds(topic)
        first = max(offset - _LOOK_BACK, bounds[partition].first if partition in bounds else 0)
        start = {name: each.next for name, each in bounds.items()} | {partition: first}
        try:
            read = takewhile(lambda message: message.offset <= offset, self.topic.reader.read(topic, start))
            messages = [message for message in read if message.partition == partition]
        except ChangelogError:
            return  # gone by now
        for message in reversed(messages):
            try:
                decoded = self._decoder.decode(message.value or b"", (0,))
            except BrokenMessage:
                continue
            event = decoded.event
            assert event.reference_key is not None
            center = event.data_center if message.offset == offset else ""
            yield _Order(event.reference_key, event.source_committed_at, decoded.source_column, center)

    def commit(self, messages: Sequence[Outgoing]) -> None:
        """Each time that the job is tried: an event that comes again changes nothing, and which rows were chosen may be others by then."""
        if messages:
            run = {"run": run_of_commit(self.job.spec.run_id)}
            self.topic.writer(f"republish:{self.topic.topic}").commit(messages, run)


def _note(job: Job, uri: str, name: str, rows: Sequence[Mapping[str, str | None]], *, is_resolved: bool) -> None:
    """In the error table."""
    assert job.spec.replay is not None
    if not rows:
        return
    staged, now = staging.error_rows_table(rows), job.started_at + job.clock_ahead
    staging.write_staged_table(f"{uri}/{name}", staged)
    run = run_of_commit(job.spec.run_id)
    facts = ErrorFacts(run, now, "", now, job.spec.replay.asked_by) if is_resolved else ErrorFacts(run, now)
    batch = f"{staging.add_digests(0, staged):064x} {name} {run}"
    with hold_write_permit(job), job.phase("errors"):
        error_table.append_errors(job.spark, job.table, f"{uri}/{name}", len(rows), facts, batch=batch)
