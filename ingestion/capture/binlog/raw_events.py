"""Single events of a binlog as a server sends them: the header, and the bodies of the kinds that say where a transaction begins and ends."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from enum import IntEnum
from typing import NamedTuple

from ingestion.capture.binlog.events import Gtid, Statement

_HEADER = struct.Struct("<IBIIIH")
_QUERY = struct.Struct("<IIBHH")
_GTID = struct.Struct("<QIB")
_ROTATION = struct.Struct("<Q")
_CHECKSUM_BYTES = 4
_LOADED_FILE_BYTES = 13
"""Which file, where its name begins and ends in the statement, and what becomes of duplicates."""
_STANDALONE = 1
"""The flag of a transaction that is one statement, after which no end is written."""


class Kind(IntEnum):
    QUERY = 2
    ROTATE = 4
    FORMAT = 15
    XID = 16
    LOADED = 18
    TABLE_MAP = 19
    WRITE_ROWS = 23
    UPDATE_ROWS = 24
    DELETE_ROWS = 25
    HEARTBEAT = 27
    XA_PREPARE = 38
    ANNOTATE_ROWS = 160
    CHECKPOINT = 161
    GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    COMPRESSED_QUERY = 165
    COMPRESSED_WRITE_ROWS = 166
    COMPRESSED_UPDATE_ROWS = 167
    COMPRESSED_DELETE_ROWS = 168


ROWS = frozenset((Kind.WRITE_ROWS, Kind.UPDATE_ROWS, Kind.DELETE_ROWS))
COMPRESSED = frozenset(kind for kind in Kind if kind.name.startswith("COMPRESSED_"))


class RawEvent(NamedTuple):
    """`body` is without header and checksum; `at` aware UTC, to the second; `kind` a number that Kind may lack."""

    kind: int
    at: datetime
    server: int
    body: bytes
    end: int = 0
    """Where the next one begins in its file; 0: it is in none."""


def raw_event(data: bytes, *, has_checksum: bool) -> RawEvent:
    seconds, kind, server, _, end, _ = _HEADER.unpack_from(data)
    body_end = len(data) - (_CHECKSUM_BYTES if has_checksum else 0)
    return RawEvent(kind, datetime.fromtimestamp(seconds, UTC), server, data[_HEADER.size : body_end], end)


def next_file_of(event: RawEvent) -> tuple[str, int]:
    """Of a rotation: the file that follows, and where it is read from."""
    (start,) = _ROTATION.unpack_from(event.body)
    return event.body[_ROTATION.size :].decode(errors="replace"), start


def gtid_of(event: RawEvent) -> tuple[Gtid, bool]:
    """Which transaction begins, and whether the statement that follows is all of it."""
    sequence, domain, flags = _GTID.unpack_from(event.body)
    return Gtid(domain, event.server, sequence), bool(flags & _STANDALONE)


def statement_of(event: RawEvent) -> Statement:
    """Of a query, or of a file that was loaded."""
    _, _, database_length, _, status_length = _QUERY.unpack_from(event.body)
    file_bytes = _LOADED_FILE_BYTES if event.kind == Kind.LOADED else 0
    names = event.body[_QUERY.size + file_bytes + status_length :]
    database, sql = names[:database_length], names[database_length + 1 :]
    return Statement(database.decode(errors="replace"), sql.decode(errors="replace"))
