"""Takes what a server's binlog says, makes change events of it, and commits them to the changelog together with the place that was reached."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ingestion.capture.binlog.events import Begin, BinlogEvent, End, Gtid, RowChange, RowsChanged, Statement, Unreadable
from ingestion.capture.binlog.removals import Loss, Removal, removals
from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec, NotCaptured, SchemaVersions, Transaction
from ingestion.capture.tap.position import TapPosition, TapState
from ingestion.changelog import ChangelogWriter, Outgoing
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.encoder import Encoder

MAX_PENDING, MAX_PENDING_BYTES = 10_000, 8 * 2**20
"""Messages that wait for their commit."""
MIN_COMMIT_INTERVAL_S = 0.1
ERRORS_SUFFIX = ".errors"
"""Of the topic that has what could not be encoded."""


class BinlogReader(Protocol):
    def poll(self) -> list[BinlogEvent]: ...

    @property
    def is_drained(self) -> bool: ...


class Observer(Protocol):
    """Who is told what people should know."""

    def table_stopped(self, topic: str, reason: str) -> None: ...


@dataclass
class _Transaction:
    gtid: Gtid
    facts: Transaction
    taken: Counter[str]
    """By topic, how many rows were: all that were seen, and those of an earlier process that are to come again."""
    seen: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Encoded:
    table: CapturedTable
    encoder: Encoder


class Tap:
    """`specs`: what is captured. `new_encoder`: for a table of a version. `monotonic`: seconds of a clock that only grows; `pause` waits for seconds.

    A table that cannot be captured any more is stopped, alone, and stays so until its dataset is loaded again.
    """

    def __init__(
        self,
        reader: BinlogReader,
        writer: ChangelogWriter,
        specs: Iterable[CaptureSpec],
        *,
        start: TapState,
        versions: SchemaVersions,
        charsets: Mapping[int, str],
        new_encoder: Callable[[CapturedTable], Encoder],
        observer: Observer,
        monotonic: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self._reader, self._writer = reader, writer
        self._specs = {(spec.database, spec.table): spec for spec in specs}
        self._versions, self._charsets, self._new_encoder, self._observer = versions, charsets, new_encoder, observer
        self._monotonic, self._pause, self._committed_at = monotonic, pause, monotonic()
        self._tables: dict[str, _Encoded] = {}
        self._stopped = {
            spec.topic: spec.load for spec in self._specs.values() if start.stopped.get(spec.topic) == spec.load
        }
        self._position = start.position
        self._transaction: _Transaction | None = None
        self._pending: list[Outgoing] = []
        self._pending_bytes = 0
        self._has_moved = False

    def step(self) -> None:
        """Takes what has come and commits it where it is due. Raises BinlogError, ChangelogError."""
        for event in self._reader.poll():
            self._take(event)
            if len(self._pending) >= MAX_PENDING or self._pending_bytes >= MAX_PENDING_BYTES:
                self.commit()
        if self._has_moved and self._reader.is_drained:
            self._pause(max(0.0, self._committed_at + MIN_COMMIT_INTERVAL_S - self._monotonic()))
            self.commit()

    def commit(self) -> None:
        """All that was taken so far."""
        self._writer.commit(self._pending, TapState(self.position, self._stopped).as_json())
        self._pending, self._pending_bytes, self._has_moved = [], 0, False
        self._committed_at = self._monotonic()

    @property
    def position(self) -> TapPosition:
        transaction = self._transaction
        if transaction is None:
            return self._position
        return TapPosition(self._position.gtid, str(transaction.gtid), dict(transaction.taken))

    def _take(self, event: BinlogEvent) -> None:
        match event:
            case Begin(gtid, at):
                taken = Counter(self._position.rows_taken(gtid))
                self._transaction = _Transaction(gtid, Transaction(gtid.sequence, at), taken)
            case RowsChanged(table):
                self._take_rows(event, self._specs[table.database, table.table])
            case Unreadable(database, table, reason):
                self._stop(
                    self._specs[database, table], f"The binlog's rows of `{database}.{table}` cannot be read: {reason}"
                )
            case Statement():
                self._take_statement(event)
            case End():
                self._end_transaction()

    def _take_statement(self, statement: Statement) -> None:
        """Rows that go without a word about each would stay in the lake."""
        for removal in removals(statement):
            for (database, table), spec in self._specs.items():
                if database == removal.database and removal.table in ("", table):
                    self._stop(spec, _reason_of_loss(removal, f"`{database}.{table}`"))

    def _end_transaction(self) -> None:
        assert self._transaction is not None
        self._position, self._transaction = TapPosition(str(self._transaction.gtid)), None
        self._has_moved = True

    def _take_rows(self, event: RowsChanged, spec: CaptureSpec) -> None:
        transaction, table = self._transaction, self._table_of(spec, event.table)
        assert transaction is not None
        if table is None:
            return
        topic = spec.topic
        for number, change in enumerate(event.changes, transaction.seen[topic]):
            if number >= transaction.taken[topic]:
                self._take_row(table, transaction, number, change)
        transaction.seen[topic] += len(event.changes)
        transaction.taken[topic] = max(transaction.taken[topic], transaction.seen[topic])

    def _take_row(self, table: _Encoded, transaction: _Transaction, number: int, change: RowChange) -> None:
        topic = table.table.spec.topic
        try:
            events = [*table.table.events(transaction.facts, number, change)]
            messages = [Outgoing(topic, *table.encoder.encode(event)) for event in events]
        except UnfitEvent as problem:
            messages = [_rejected(topic, transaction.gtid, number, change, problem)]
        except ValueError as problem:
            unfit = UnfitEvent(Defect.TYPE, f"A value of the row cannot be read: {problem}")
            messages = [_rejected(topic, transaction.gtid, number, change, unfit)]
        self._pending += messages
        self._pending_bytes += sum(len(message.value or b"") for message in messages)

    def _table_of(self, spec: CaptureSpec, definition: TableMap) -> _Encoded | None:
        """By the definition that its rows have now; None: it is stopped."""
        known = self._tables.get(spec.topic)
        if spec.topic in self._stopped or (known is not None and known.table.definition == definition):
            return None if spec.topic in self._stopped else known
        try:
            table = CapturedTable.of(spec, definition, self._versions, self._charsets)
        except NotCaptured as problem:
            self._stop(spec, str(problem))
            return None
        self._tables[spec.topic] = _Encoded(table, self._new_encoder(table))
        return self._tables[spec.topic]

    def _stop(self, spec: CaptureSpec, reason: str) -> None:
        if spec.topic not in self._stopped:
            self._stopped[spec.topic] = spec.load
            self._has_moved = True
            self._observer.table_stopped(spec.topic, reason)


def _reason_of_loss(removal: Removal, table: str) -> str:
    match removal.loss:
        case Loss.EMPTIED:
            what = f"{table} was truncated: its rows are gone, and those in the lake are still there."
        case Loss.PARTITION_REMOVED:
            what = f"{table} has lost rows with a partition that was removed or exchanged; those in the lake are still there."
        case Loss.RENAMED:
            new_name = ".".join(removal.becomes or ())
            what = f"{table} was renamed to `{new_name}`, and what has its name now is another table."
        case Loss.DROPPED:
            what = f"{table} was dropped; its rows in the lake are still there."
    return f"{what} Load the dataset again, with `replace`, to go on with what is there now; off-board it if the table is gone for good."


def _rejected(topic: str, gtid: Gtid, number: int, change: RowChange, problem: UnfitEvent) -> Outgoing:
    """Bytes, and texts that are none, are written out."""
    facts: dict[str, Any] = {
        "transaction": str(gtid),
        "row": number,
        "defect": problem.defect,
        "column": problem.field,
        "reason": str(problem),
        "before": change.before,
        "after": change.after,
    }
    text = json.dumps(facts, default=lambda value: value.decode(errors="backslashreplace"))
    return Outgoing(topic + ERRORS_SUFFIX, f"{gtid}:{number}".encode(), text.encode(errors="backslashreplace"))
