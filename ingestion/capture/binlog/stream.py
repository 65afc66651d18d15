"""Reads the binlog of a server from a transaction on, and decodes the rows of the tables that are asked for.

The connection and the decoder of rows are mysql-event-stream's, which hides statements and the ends of transactions from those who use its stream, and
stops at a table that it cannot decode. So single events are read here, and the decoder is given those only that it is needed for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mysql_event_stream import (
    BinlogClient,
    CdcEngine,
    ChangeEvent,
    DecodeError,
    MesConnectionError,
    MesError,
    SslMode,
)

from ingestion.capture.binlog.column_values import UnfitColumn, lake_type_of
from ingestion.capture.binlog.events import (
    Begin,
    BinlogError,
    BinlogEvent,
    End,
    Ending,
    RolledBackTo,
    RowChange,
    RowsChanged,
    Savepoint,
    Statement,
    Unreadable,
)
from ingestion.capture.binlog.raw_events import (
    COMPRESSED,
    ROWS,
    Kind,
    RawEvent,
    gtid_of,
    next_file_of,
    raw_event,
    statement_of,
)
from ingestion.capture.binlog.table_map import (
    ColumnKind,
    TableMap,
    UnreadableTableMap,
    read_table_map,
    table_id,
    table_name,
)

_ENDS = {"COMMIT": Ending.COMMITTED, "ROLLBACK": Ending.ROLLED_BACK}
_SAVEPOINT = re.compile(r"SAVEPOINT `?(.*?)`?", re.DOTALL)
_ROLLBACK_TO = re.compile(r"ROLLBACK TO (?:SAVEPOINT )?`?(.*?)`?", re.DOTALL)
_PARTIAL_ROWS = "A session that writes with another `binlog_row_image` than FULL may be the reason."
_POLLED_AT_ONCE = 256
_HEARTBEAT_S = 2


@dataclass(frozen=True)
class ServerAddress:
    """`server_id`: of ours as a replica, which no other replica of the server may have. `ca_file`: None: encrypted where the server can, unless it is
    `plain`."""

    host: str
    port: int
    user: str
    password: str
    server_id: int
    ca_file: str | None = None
    plain: bool = False

    @property
    def ssl_mode(self) -> SslMode:
        if self.ca_file is not None:
            return SslMode.VERIFY_IDENTITY
        return SslMode.DISABLED if self.plain else SslMode.PREFERRED

    def __repr__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


class BinlogStream:
    """`after`: the last transaction that is not wanted any more, by its GTID; empty: from the oldest on. `wants`: whether rows of a table, named by
    database and table, are to be decoded. `charsets`: by the number of a collation; those of the sessions that gave statements."""

    def __init__(
        self,
        server: ServerAddress,
        after: str,
        wants: Callable[[str, str], bool],
        charsets: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._server, self._wants, self._charsets = server, wants, charsets
        self._client = BinlogClient(
            host=server.host,
            port=server.port,
            user=server.user,
            password=server.password,
            server_id=server.server_id,
            start_gtid=after,
            read_timeout_s=2 * _HEARTBEAT_S,
            ssl_mode=server.ssl_mode,
            ssl_ca=server.ca_file or "",
        )
        self._decoder = _RowDecoder()
        self._tables: dict[int, TableMap | Unreadable] = {}
        self._is_one_statement = False
        self.file, self.offset = "", 0
        """Which file of the binlog it is in, and up to where: for people, the server goes by the GTID. Empty: nothing has come yet."""

    def open(self) -> None:
        """Raises BinlogError."""
        try:
            self._client.connect()
            self._client.start()
        except (MesError, MesConnectionError) as problem:
            raise BinlogError(
                f"The binlog of {self._server!r} cannot be read: {_why(problem, self._server)}"
            ) from problem

    def close(self) -> None:
        self._client.close()
        self._decoder.close()

    @property
    def is_drained(self) -> bool:
        """Nothing more has come by now."""
        return self._client.queued_bytes == 0

    def poll(self) -> list[BinlogEvent]:
        """What comes next, after a while at the latest; nothing may have come. Raises BinlogError."""
        try:
            polled = self._client.poll_batch(_POLLED_AT_ONCE)
        except (MesError, MesConnectionError) as problem:
            raise BinlogError(f"The binlog of {self._server!r} broke off: {problem}") from problem
        return [
            event
            for result in polled
            if result.data is not None
            for event in self._events_of(result.data, has_checksum=result.checksum_enabled)
        ]

    def _events_of(self, data: bytes, *, has_checksum: bool) -> Iterator[BinlogEvent]:
        raw = raw_event(data, has_checksum=has_checksum)
        self.offset = raw.end or self.offset
        if raw.kind == Kind.ROTATE:
            self.file, self.offset = next_file_of(raw)
        elif raw.kind == Kind.FORMAT:
            self._decoder.begin(data, has_checksum=has_checksum)
            self._tables.clear()
        elif raw.kind == Kind.GTID:
            gtid, self._is_one_statement = gtid_of(raw)
            yield Begin(gtid, raw.at)
        elif raw.kind == Kind.XID:
            yield End()
        elif raw.kind in (Kind.QUERY, Kind.LOADED):
            yield from self._statement(statement_of(raw, self._charsets))
        elif raw.kind == Kind.TABLE_MAP:
            self._map_table(raw.body, data)
        elif raw.kind in ROWS:
            yield from self._rows(raw, data)
        elif raw.kind == Kind.XA_PREPARE:
            yield End(Ending.PREPARED)
        elif raw.kind in COMPRESSED:
            raise BinlogError(
                f"The binlog of {self._server!r} has an event {Kind(raw.kind).name}, which cannot be read. "
                "Set log_bin_compress=OFF on the server."
            )

    def _statement(self, statement: Statement) -> Iterator[BinlogEvent]:
        if statement.sql in _ENDS:
            yield End(_ENDS[statement.sql])
            return
        if match := _ROLLBACK_TO.fullmatch(statement.sql):
            yield RolledBackTo(_same_name(match[1]))
        elif match := _SAVEPOINT.fullmatch(statement.sql):
            yield Savepoint(_same_name(match[1]))
        elif statement.sql != "BEGIN" and not statement.sql.startswith(("XA START", "XA END")):
            yield statement
        if self._is_one_statement:
            yield End()

    def _map_table(self, body: bytes, data: bytes) -> None:
        database, table = table_name(body)
        number = table_id(body)
        if not self._wants(database, table):
            self._tables.pop(number, None)
            return
        try:
            self._tables[number] = mapped = read_table_map(body)
        except (UnreadableTableMap, ValueError, LookupError, RuntimeError) as problem:
            self._tables[number] = Unreadable(database, table, str(problem))
            return
        try:
            self._decoder.map_table(number, data)
        except MesError as problem:
            self._tables[number] = Unreadable(database, table, _reason_against(mapped, problem))

    def _rows(self, raw: RawEvent, data: bytes) -> Iterator[BinlogEvent]:
        table = self._tables.get(table_id(raw.body))
        if isinstance(table, Unreadable):
            yield table
        elif table is not None:
            try:
                yield RowsChanged(table, self._decoder.rows(data))
            except MesError as problem:
                yield Unreadable(table.database, table.table, _why_no_rows(table, problem))


def _same_name(name: str) -> str:
    """The server tells names of savepoints apart neither by case nor by accents, and the binlog has each as it was written."""
    letters = unicodedata.normalize("NFD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _why(problem: Exception, server: ServerAddress) -> str:
    """The client does not say what is wrong with the certificate."""
    if "TLS handshake failed" in str(problem) and server.ca_file is not None:
        return (
            f"{problem}. Either {server.ca_file}, which `ssl_ca` names, does not have the certificate of the authority that signed the server's, or that one "
            f"is for another host name than {server.host}."
        )
    return str(problem)


def _reason_against(table: TableMap, problem: MesError) -> str:
    places = [column.name for column in table.columns if column.kind is ColumnKind.GEOMETRY]
    if not places:
        return f"the decoder does not take its definition: {problem}"
    named = ", ".join(f"`{name}`" for name in places)
    return f"the decoder does not take a GEOMETRY before a text ({named}). Move it to the end, or load the table by its cursor column."


def _why_no_rows(table: TableMap, problem: MesError) -> str:
    """A column of a type that nobody can capture may be the reason, too."""
    try:
        for column in table.columns:
            lake_type_of(column)
    except UnfitColumn as unfit:
        return str(unfit)
    return f"{problem}. {_PARTIAL_ROWS}"


class _RowDecoder:
    """The engine of mysql-event-stream. What it could not read leaves it in an undefined state: it begins anew, with the tables that it knew."""

    def __init__(self) -> None:
        self._engine = CdcEngine()
        self._format: tuple[bytes, bool] = (b"", True)
        self._table_maps: dict[int, bytes] = {}

    def begin(self, format_event: bytes, *, has_checksum: bool) -> None:
        """A file of the binlog begins."""
        self._format = (format_event, has_checksum)
        self._table_maps.clear()
        self._begin_anew()

    def map_table(self, number: int, data: bytes) -> None:
        """Raises MesError; the rows of the table cannot be decoded then."""
        self._table_maps.pop(number, None)
        self._feed(data)
        self._table_maps[number] = data

    def rows(self, data: bytes) -> list[RowChange]:
        """Raises MesError."""
        changes = [RowChange(event.before, event.after) for event in self._feed(data)]
        if not changes:
            raise DecodeError("the decoder has found no rows in an event of rows")
        return changes

    def _feed(self, data: bytes) -> list[ChangeEvent]:
        try:
            return [*self._decoded(data)]
        except MesError:
            self._begin_anew()
            for known in self._table_maps.values():
                self._engine.feed(known)
            raise

    def _begin_anew(self) -> None:
        self._engine.reset()
        self._engine.set_checksum_enabled(self._format[1])
        self._engine.feed(self._format[0])

    def _decoded(self, data: bytes) -> Iterator[ChangeEvent]:
        place = 0
        while place < len(data) or self._engine.has_events():
            place += self._engine.feed(data[place:]) if place < len(data) else 0
            while (event := self._engine.next_event()) is not None:
                yield event

    def close(self) -> None:
        self._engine.close()
