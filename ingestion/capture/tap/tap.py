"""Takes what a server's binlog says, makes change events of it, and commits them to the changelog together with the place that was reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from ingestion.capture.binlog.column_changes import Alteration, alteration
from ingestion.capture.binlog.events import (
    Begin,
    BinlogError,
    BinlogEvent,
    End,
    Ending,
    Gtid,
    RolledBackTo,
    RowChange,
    RowsChanged,
    Savepoint,
    Statement,
    Unreadable,
)
from ingestion.capture.binlog.removals import Loss, Removal, removals
from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.source_counts import HourCounts, SourceCounts, as_logged
from ingestion.capture.tap.captured_rows import CapturedRows, captured_rows, known_table
from ingestion.capture.tap.captured_table import CaptureSpec, NotCaptured, SchemaVersions
from ingestion.capture.tap.encoded_table import EncodedTable
from ingestion.capture.tap.hidden_columns import shows_hidden
from ingestion.capture.tap.known_tables import RELOAD, why_not_followed
from ingestion.capture.tap.losses import is_followed, is_of, reason_of_loss
from ingestion.capture.tap.open_transaction import OpenTransaction
from ingestion.capture.tap.position import TapPosition, TapState
from ingestion.changelog import ChangelogError, ChangelogWriter, Outgoing
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.encoder import Encoder
from ingestion.heatpipe.reading import ERRORS_SUFFIX

MAX_PENDING, MAX_PENDING_BYTES = 10_000, 8 * 2**20
"""Messages that wait for their commit."""
MIN_COMMIT_INTERVAL_S, MAX_COMMIT_INTERVAL_S = 0.1, 1.0


class BinlogReader(Protocol):
    def poll(self) -> list[BinlogEvent]: ...

    @property
    def is_drained(self) -> bool: ...


class Observer(Protocol):
    """Who is told what people should know."""

    def table_stopped(self, topic: str, reason: str) -> None: ...

    def table_altered(self, topic: str) -> None:
        """Its definition may be another one now; rows that come have it by themselves."""

    def written_by_statement(self, transaction: str) -> None:
        """By a session with another binlog_format than ROW. The tables that it names are stopped; those that a view or a trigger has changed are not known."""


class Tap:
    """`specs`: what is captured. `new_encoder`: for a table of a version. `clock`: aware UTC; `monotonic`: seconds of a clock that only grows; `pause` waits for seconds.

    A table that cannot be captured any more is stopped, alone, and stays so until its dataset is loaded again. Several datasets may capture one table.
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
        new_encoder: Callable[[CapturedRows], Encoder],
        observer: Observer,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self._reader, self._writer = reader, writer
        self._specs = tuple(specs)
        self._specs_of = defaultdict[tuple[str, str], list[CaptureSpec]](list)
        for spec in self._specs:
            self._specs_of[spec.database, spec.table].append(spec)
        self._versions, self._charsets, self._new_encoder, self._observer = versions, charsets, new_encoder, observer
        self._clock, self._monotonic, self._pause, self._committed_at = clock, monotonic, pause, monotonic()
        self._tables: dict[str, EncodedTable] = {}
        self._loads = loads = {spec.topic: spec.load for spec in self._specs}
        # What is not captured just now may be again.
        self._stopped = {topic: load for topic, load in start.stopped.items() if loads.get(topic, load) == load}
        self._known = {
            topic: known for topic, known in start.known.items() if loads.get(topic, known.load) == known.load
        }
        self._position, self._places, self._moved = start.position, dict(start.places), start.moved
        self._source = SourceCounts(start.counts or {})
        self._transaction: OpenTransaction | None = None
        self._passed: set[str] = set()
        """Topics that have taken the transaction already."""
        self._pending: list[Outgoing] = []
        self._pending_bytes = 0
        self._has_moved = self._is_broken = False
        self.event_at: datetime | None = None
        """When the last transaction that was seen was committed at the server, aware UTC, to the second."""

    def step(self) -> None:
        """Takes what has come and commits it where it is due. Raises BinlogError, ChangelogError; another tap goes on then."""
        if self._is_broken:
            raise ChangelogError(
                "This tap has failed, and what it had taken is gone. Begin another, which goes on from the changelog."
            )
        self._is_broken = True
        for event in self._reader.poll():
            self._take(event)
            if len(self._pending) >= MAX_PENDING or self._pending_bytes >= MAX_PENDING_BYTES:
                self._commit(len(self._pending), self.position, with_open=True)
        waits = self._committed_at + MIN_COMMIT_INTERVAL_S - self._monotonic()
        if self._has_moved and (self._reader.is_drained or waits < MIN_COMMIT_INTERVAL_S - MAX_COMMIT_INTERVAL_S):
            self._pause(max(0.0, waits))
            self._commit_whole_transactions()
        self._is_broken = False

    def _commit_whole_transactions(self) -> None:
        """One that is open may still be rolled back."""
        transaction = self._transaction
        if transaction is None or transaction.committed:
            self._commit(len(self._pending), self.position, with_open=True)
        else:
            self._commit(transaction.begins_at, self._position, with_open=False)

    def _commit(self, messages: int, position: TapPosition, *, with_open: bool) -> None:
        """So many of those that wait. `with_open`: those of the transaction that is open are among them."""
        outgoing, self._pending = self._pending[:messages], self._pending[messages:]
        places, at = self._places_beside(position), as_logged(self._clock())
        counts = self._source.after_commit(at, with_open=with_open)
        state = TapState(position, self._stopped, self._known, places, self._moved, counts)
        self._writer.commit(outgoing, state.as_json(), at)
        self._source.note_committed(counts, with_open=with_open)
        self._pending_bytes -= _bytes_of(outgoing)
        self._has_moved, self._committed_at = False, self._monotonic()
        if self._transaction is not None:
            self._transaction.note_committed(messages)

    @property
    def counts(self) -> HourCounts:
        """How many messages the rows are that were taken, as far as that is committed."""
        return self._source.hours

    def forget_counts_before(self, hour: str) -> None:
        """Somebody keeps them."""
        self._source.forget_before(hour)

    @property
    def position(self) -> TapPosition:
        transaction = self._transaction
        if transaction is None:
            return self._position
        return replace(self._position, begun=str(transaction.gtid), taken=dict(transaction.taken))

    def _places_beside(self, position: TapPosition) -> dict[str, TapPosition]:
        """Within a transaction the position itself says how far those are in it that are not beyond it."""
        if not position.begun or self._transaction is None:
            return self._places
        begun, loads = self._transaction.gtid.sequence, self._loads
        return {topic: place for topic, place in self._places.items() if topic not in loads or place.sequence >= begun}

    def _take(self, event: BinlogEvent) -> None:
        match event:
            case Begin():
                self._begin_transaction(event)
            case RowsChanged(table):
                for spec in self._waiting(table.database, table.table):
                    self._take_rows(event, spec)
            case Unreadable(database, table, reason):
                why = f"The binlog's rows of `{database}.{table}` cannot be read: {reason}"
                for spec in self._waiting(database, table):
                    self._stop(spec, why)
            case Statement():
                self._take_statement(event)
            case Savepoint(name) if self._transaction is not None:
                self._transaction.savepoints[name] = len(self._pending)
                self._source.set_savepoint(name)
            case RolledBackTo(name) if self._transaction is not None:
                self._forget_from(self._transaction.place_of(name))
                self._source.roll_back(name if name in self._transaction.savepoints else None)
            case End(ending):
                self._end_transaction(ending)

    def _begin_transaction(self, begin: Begin) -> None:
        _require_domain(self._position.gtid, begin.gtid)
        if self._transaction is not None:
            # The server died while it wrote it: it was rolled back when that came back.
            self._forget_all(self._transaction)
        taken = self._rows_taken(begin.gtid)
        self._transaction = OpenTransaction.begun(begin, taken, begins_at=len(self._pending))
        self._passed = {topic for topic, place in self._places.items() if place.sequence >= begin.gtid.sequence}
        self.event_at = begin.at

    def _rows_taken(self, gtid: Gtid) -> Mapping[str, int]:
        """By topic, of an earlier process."""
        taken: dict[str, int] = {}
        own = [place for topic, place in self._places.items() if topic in self._loads]
        for place in (self._position, *own):
            if place.begun and place.sequence < gtid.sequence:
                self._require_begun(place, gtid)
                taken |= place.rows_taken(gtid)
        return taken

    def _require_begun(self, place: TapPosition, gtid: Gtid) -> None:
        """Another server that has taken over need not have got the transaction: whoever reads the log cannot be told that a part of it never was."""
        for spec in self._specs:
            if str(gtid) != place.begun and spec.topic in place.taken:
                self._stop(
                    spec,
                    f"The transaction {place.begun} was captured in part, and the server does not have it: {gtid} comes after {place.gtid} there. {RELOAD}",
                )

    def _waiting(self, database: str, table: str) -> list[CaptureSpec]:
        """What the transaction is new to."""
        return [spec for spec in self._specs_of[database, table] if spec.topic not in self._passed]

    def _take_statement(self, statement: Statement) -> None:
        """Rows that go without a word about each would stay in the lake."""
        removed = removals(statement)
        named = [(spec, removal) for removal in removed for spec in self._specs if is_of(removal, spec)]
        for spec, removal in named:
            if spec.topic not in self._passed:
                self._take_removal(spec, removal)
        if any(removal.loss is Loss.WRITTEN_BY_STATEMENT for removal in removed):
            self._observer.written_by_statement("" if self._transaction is None else str(self._transaction.gtid))
        if (altered := alteration(statement)) is not None:
            for spec in self._waiting(altered.database, altered.table):
                self._note_alteration(spec, altered)

    def _take_removal(self, spec: CaptureSpec, removal: Removal) -> None:
        """That all of its rows are gone is kept before the position moves on: nothing else says it."""
        if not is_followed(spec, removal) or self._transaction is None:
            self._stop(spec, reason_of_loss(removal, f"`{spec.database}.{spec.table}`"))
        elif spec.topic not in self._stopped:
            self._versions.note_emptied(spec.topic, self._transaction.facts.sequence)

    def _note_alteration(self, spec: CaptureSpec, altered: Alteration) -> None:
        """What columns are called from now on is kept before the position moves on: nothing else says it."""
        if spec.topic in self._stopped:
            return
        hidden = {name.casefold() for name in spec.hidden.names}
        for change in altered.changes:
            if change.old.casefold() in hidden and change.old.casefold() != change.new.casefold():
                name = f"`{spec.database}.{spec.table}`"
                self._stop(
                    spec,
                    f"{name} has changed its column `{change.old}`, which nobody is to see, and its values may be seen under another name. Say in the settings "
                    f"of the dataset which columns are left out, hashed and masked now. {RELOAD}",
                )
                return
        if why := shows_hidden(spec.hidden, altered):
            self._stop(spec, f"`{spec.database}.{spec.table}` was altered. {why} {RELOAD}")
            return
        if altered.changes and self._transaction is not None:
            self._versions.note_changes(spec.topic, self._transaction.facts.sequence, altered.changes)
        self._observer.table_altered(spec.topic)

    def _end_transaction(self, ending: Ending) -> None:
        transaction = self._transaction
        assert transaction is not None
        if ending is not Ending.COMMITTED:
            self._forget_all(transaction)
        if ending is Ending.PREPARED:
            for spec in self._specs:
                if transaction.seen[spec.topic]:
                    self._stop(
                        spec,
                        "A distributed transaction (XA) has changed the table; these cannot be captured. " + RELOAD,
                    )
        at = transaction.facts.at.isoformat()
        self._position = TapPosition(str(transaction.gtid), before=self._position.gtid, at=at)
        self._places = {topic: place for topic, place in self._places.items() if self._is_elsewhere(topic, place)}
        self._transaction, self._has_moved = None, True
        self._source.end_transaction()

    def _is_elsewhere(self, topic: str, place: TapPosition) -> bool:
        """Than at the position: those that have left stay where they were."""
        reached = self._position.sequence
        return topic not in self._loads or place.sequence > reached or (place.sequence == reached and place.begun != "")

    def _forget_all(self, transaction: OpenTransaction) -> None:
        self._forget_from(None if transaction.committed else transaction.begins_at)
        self._source.roll_back()

    def _forget_from(self, place: int | None) -> None:
        """Messages that were rolled back. None: some of them are committed, and whoever reads them cannot be told otherwise."""
        transaction = self._transaction
        assert transaction is not None
        if place is None:
            for spec in self._specs:
                if spec.topic in transaction.committed:
                    self._stop(
                        spec,
                        f"The transaction {transaction.gtid} was rolled back after a part of it was captured. {RELOAD}",
                    )
            place = transaction.begins_at
        self._pending_bytes -= _bytes_of(self._pending[place:])
        del self._pending[place:]

    def _take_rows(self, event: RowsChanged, spec: CaptureSpec) -> None:
        transaction, table = self._transaction, self._table_of(spec, event.table)
        assert transaction is not None
        if table is None:
            return
        topic, rows = spec.topic, table.rows
        new = event.changes[max(0, transaction.taken[topic] - transaction.seen[topic]) :]
        self._source.add(topic, sum(map(rows.messages_of, new)))
        for number, change in enumerate(event.changes, transaction.seen[topic]):
            if number >= transaction.taken[topic]:
                self._take_row(table, transaction, number, change)
        transaction.seen[topic] += len(event.changes)
        transaction.taken[topic] = max(transaction.taken[topic], transaction.seen[topic])

    def _take_row(self, table: EncodedTable, transaction: OpenTransaction, number: int, change: RowChange) -> None:
        topic = table.rows.spec.topic
        try:
            messages = [Outgoing(topic, *message) for message in table.messages(transaction, number, change)]
        except NotCaptured as problem:
            self._stop(table.rows.spec, str(problem))
            return
        except UnfitEvent as problem:
            messages = [self._rejected(table, transaction.gtid, number, change, problem)]
        except ValueError as problem:
            unfit = UnfitEvent(Defect.TYPE, f"A value of the row cannot be read: {problem}")
            messages = [self._rejected(table, transaction.gtid, number, change, unfit)]
        self._pending += messages
        self._pending_bytes += _bytes_of(messages)

    def _rejected(
        self, table: EncodedTable, gtid: Gtid, number: int, change: RowChange, problem: UnfitEvent
    ) -> Outgoing:
        """One message, whatever the row would have been."""
        topic = table.rows.spec.topic
        self._source.add(topic, 1 - table.rows.messages_of(change))
        row = table.put_aside(gtid, number, change, problem)
        return Outgoing(topic + ERRORS_SUFFIX, f"{gtid}:{number}".encode(), row.to_json())

    def _table_of(self, spec: CaptureSpec, definition: TableMap) -> EncodedTable | None:
        """By the definition that its rows have now; None: it is stopped."""
        known = self._tables.get(spec.topic)
        if spec.topic in self._stopped or (known is not None and known.rows.definition == definition):
            return None if spec.topic in self._stopped else known
        try:
            rows = captured_rows(spec, definition, self._versions, self._charsets)
        except NotCaptured as problem:
            self._stop(spec, str(problem))
            return None
        now = known_table(rows)
        before = self._known.get(spec.topic, now)
        if why := why_not_followed(f"`{spec.database}.{spec.table}`", before, now):
            self._stop(spec, why)
            return None
        self._known[spec.topic] = now
        self._tables[spec.topic] = EncodedTable(rows, self._new_encoder)
        return self._tables[spec.topic]

    def _stop(self, spec: CaptureSpec, reason: str) -> None:
        if spec.topic not in self._stopped:
            self._stopped[spec.topic] = spec.load
            self._has_moved = True
            self._source.stop(spec.topic)
            self._observer.table_stopped(spec.topic, reason)


def _bytes_of(messages: Sequence[Outgoing]) -> int:
    return sum(len(message.value or b"") for message in messages)


def _require_domain(position: str, gtid: Gtid) -> None:
    """Within one domain the numbers of transactions grow; of another nobody could say what came before."""
    domains = {each.partition("-")[0].strip() for each in position.split(",") if each.strip()}
    if domains and domains != {str(gtid.domain)}:
        raise BinlogError(
            f"The transaction {gtid} is in another GTID domain than {position}, which was captured last. "
            "Write with one `gtid_domain_id`; then load the datasets of this server again."
        )
