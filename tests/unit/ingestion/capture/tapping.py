"""A server of made-up transactions, its tap, and a log that fails when it is asked to, for as many processes as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ingestion.capture.binlog.column_changes import ColumnChange
from ingestion.capture.binlog.events import (
    Begin,
    BinlogEvent,
    End,
    Gtid,
    RowChange,
    RowsChanged,
)
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.tap.captured_rows import CapturedRows
from ingestion.capture.tap.captured_table import CaptureSpec, NotCaptured
from ingestion.capture.tap.position import TapPosition, TapState
from ingestion.capture.tap.rename_notes import RenameNotes
from ingestion.capture.tap.tap import Tap
from ingestion.changelog import Outgoing, ProducerPosition
from ingestion.domain.schema import Schema, evolve_schema
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.encoder import Encoder
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.subject_schema import SubjectSchema

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
UTF8 = 45


def table(name: str, *more: MappedColumn, key: tuple[str, ...] = ("id",)) -> TableMap:
    columns = (
        MappedColumn("id", ColumnKind.LONG),
        MappedColumn("city", ColumnKind.VARCHAR, (40, 0), collation=UTF8),
        *more,
    )
    return TableMap("shop", name, columns, key)


TRIPS, RIDERS, NO_KEY = table("trips"), table("riders"), table("no_key", key=())
SPECS = [CaptureSpec(name, "shop", name) for name in ("trips", "riders", "no_key")]


@dataclass
class Server:
    """Its binlog, from which a reader gets a few events at a time."""

    transactions: Sequence[tuple[BinlogEvent, ...]]
    at_once: int = 3

    def reader(self, after: str) -> Reader:
        begun = [transaction for transaction in self.transactions if isinstance(transaction[0], Begin)]
        place = next((n for n, (begin, *_) in enumerate(begun, 1) if str(begin.gtid) == after), 0)  # type: ignore[union-attr]
        return Reader([event for transaction in begun[place:] for event in transaction], self.at_once)


@dataclass
class Reader:
    events: list[BinlogEvent]
    at_once: int

    def poll(self) -> list[BinlogEvent]:
        polled, self.events = self.events[: self.at_once], self.events[self.at_once :]
        return polled

    @property
    def is_drained(self) -> bool:
        return not self.events


@dataclass
class Log:
    """Whole commits only, as every changelog has them."""

    messages: list[Outgoing] = field(default_factory=list)
    logged_at: list[datetime] = field(default_factory=list)
    """Of each message."""
    stored: ProducerPosition | None = None
    commits: int = 0
    fails: bool = False

    def position(self) -> ProducerPosition | None:
        return self.stored

    def commit(self, messages: Sequence[Outgoing], position: ProducerPosition, at: datetime | None = None) -> None:
        if self.fails:
            raise OSError("the disk is full")
        self.messages += messages
        self.logged_at += [at or NOW] * len(messages)
        self.stored, self.commits = position, self.commits + 1


def holds(stored: Schema, columns: Schema) -> bool:
    return evolve_schema(stored, columns).target == stored and not evolve_schema(stored, columns).conflicts


@dataclass
class Versions:
    """Takes every schema, but for those with a column that it refuses."""

    known: list[tuple[SubjectSchema, Schema]] = field(default_factory=list)
    refuses: tuple[str, ...] = ()
    keeps: bool = False
    """As the registry's versions do: what goes from a table stays in its schema."""
    notes: dict[str, RenameNotes] = field(default_factory=dict)
    """By subject, of columns with another name."""
    emptied: dict[str, int] = field(default_factory=dict)

    def version_of(self, subject: str, columns: Schema) -> SubjectSchema:
        if self.keeps:
            before = [held for schema, held in self.known if schema.subject == subject]
            stored = before[-1] if before else Schema(())
            notes = self.notes_of(subject)
            self.notes[subject] = notes.kept(columns, notes.seen(stored, columns))
            evolution = evolve_schema(stored, columns)
            if evolution.conflicts:
                rooms = (
                    each for each, held in reversed(self.known) if each.subject == subject and holds(held, columns)
                )
                return next(rooms)
            columns = evolution.target
        if refused := [name for name in self.refuses if name in columns]:
            raise NotCaptured(f"The column `{refused[0]}` is not compatible.")
        for schema, held in self.known:
            if (schema.subject, held) == (subject, columns):
                return schema
        return self.register(subject, columns)

    def register(self, subject: str, columns: Schema) -> SubjectSchema:
        """By somebody, whatever the table has."""
        version = 1 + sum(schema.subject == subject for schema, _ in self.known)
        schema = SubjectSchema(subject, version, len(self.known) + 1, event_schema(subject, columns))
        self.known.append((schema, columns))
        return schema

    def note_changes(self, subject: str, sequence: int, changes: Sequence[ColumnChange]) -> None:
        self.notes[subject] = self.notes_of(subject).noted(sequence, changes)

    def note_emptied(self, subject: str, sequence: int) -> None:
        self.emptied[subject] = max(sequence, self.emptied.get(subject, 0))

    def notes_of(self, subject: str) -> RenameNotes:
        return self.notes.get(subject, RenameNotes())

    def of_id(self, schema_id: int) -> SubjectSchema:
        return self.known[schema_id - 1][0]


@dataclass
class Tapping:
    """A server, its tap and the log, for as many processes as it takes."""

    server: Server
    log: Log = field(default_factory=Log)
    versions: Versions = field(default_factory=Versions)
    stopped: dict[str, str] = field(default_factory=dict)
    stops: list[str] = field(default_factory=list)
    """Each time that somebody heard of one."""
    altered: list[str] = field(default_factory=list)
    by_statement: list[str] = field(default_factory=list)
    at: float = 0.0
    """Seconds, for the tap; each look at them takes `look_s`."""
    look_s: float = 0.0
    wall_s: float = 0.0
    """So far the wall's clock goes on with each commit."""

    def clock(self) -> datetime:
        return NOW + timedelta(seconds=self.wall_s * self.log.commits)

    def monotonic(self) -> float:
        self.at += self.look_s
        return self.at

    def table_stopped(self, topic: str, reason: str) -> None:
        self.stopped[topic] = reason
        self.stops.append(topic)

    def table_altered(self, topic: str) -> None:
        self.altered.append(topic)

    def written_by_statement(self, transaction: str) -> None:
        self.by_statement.append(transaction)

    def tap(self, specs: Sequence[CaptureSpec] = SPECS[:2]) -> Tap:
        start = TapState(TapPosition("")) if self.log.stored is None else TapState.from_json(self.log.stored)
        self.reader = self.server.reader(start.position.gtid)
        return Tap(
            self.reader,
            self.log,
            specs,
            start=start,
            versions=self.versions,
            charsets={UTF8: "utf8mb4"},
            new_encoder=self._encoder,
            observer=self,
            clock=self.clock,
            monotonic=self.monotonic,
            pause=lambda seconds: None,
        )

    def run(self, specs: Sequence[CaptureSpec] = SPECS[:2]) -> None:
        tap = self.tap(specs)
        while not self.reader.is_drained:
            tap.step()

    def events(self, topic: str = "trips") -> list[tuple[str, Any]]:
        decoder = Decoder(topic, ("id",), bytes, self.versions.of_id)
        decoded = (decoder.decode(each.value or b"", (0,)).event for each in self.log.messages if each.topic == topic)
        return [(event.operation.value, dict(event.values)) for event in decoded]

    @staticmethod
    def _encoder(table: CapturedRows) -> Encoder:
        return Encoder(table.schema, table.record_key, "mysql:test", "dc1", lambda: NOW)


def row(key: int, city: str = "Ulm", **more: Any) -> dict[str, Any]:
    return {"id": key, "city": city, **more}


def inserted(of: TableMap, *rows: dict[str, Any]) -> RowsChanged:
    return RowsChanged(of, [RowChange(None, each) for each in rows])


def transaction(sequence: int, *events: BinlogEvent) -> tuple[BinlogEvent, ...]:
    return (Begin(Gtid(0, 1, sequence), NOW), *events, End())


def keys(events: Sequence[tuple[str, Any]]) -> list[int]:
    return [values["id"] for _, values in events]
