"""Single events of a binlog as a server sends them: the header, and the bodies of the kinds that say where a transaction begins and ends."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import NamedTuple

from ingestion.capture.binlog.charsets import codec_of
from ingestion.capture.binlog.events import Gtid, Statement

_HEADER = struct.Struct("<IBIIIH")
_QUERY = struct.Struct("<IIBHH")
_GTID = struct.Struct("<QIB")
_ROTATION = struct.Struct("<Q")
_CHECKSUM_BYTES = 4
_LOADED_FILE_BYTES = 13
"""Which file, where its name begins and ends in the statement, and what becomes of duplicates."""
_CLIENT_CHARSET = 4
_VARIABLE_BYTES = {0: 4, 1: 8, 3: 4}
"""Flags, `sql_mode`, and the steps of AUTO_INCREMENT."""
_TEXT_VARIABLES = {2: 1, 5: 0, 6: 0}
"""Catalog, with a zero byte, zone, and catalog without it."""
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


def statement_of(event: RawEvent, charsets: Mapping[int, str]) -> Statement:
    """Of a query, or of a file that was loaded. `charsets`: by the number of a collation."""
    _, _, database_length, _, status_length = _QUERY.unpack_from(event.body)
    file_bytes = _LOADED_FILE_BYTES if event.kind == Kind.LOADED else 0
    begin = _QUERY.size + file_bytes
    status, names = event.body[begin : begin + status_length], event.body[begin + status_length :]
    database, sql = names[:database_length], names[database_length + 1 :]
    codec = codec_of(charsets.get(_client_collation(status), "")) or "utf-8"
    return Statement(database.decode(errors="replace"), sql.decode(codec, errors="replace"))


def _client_collation(status: bytes) -> int:
    """Of the session that gave a statement, which is in the binlog as that had sent it; 0: it is not said. `status`: each variable has a number and a
    value, in the order of the server, which writes those first whose lengths are known here."""
    place = 0
    while place < len(status):
        variable, place = status[place], place + 1
        if variable == _CLIENT_CHARSET:
            return int.from_bytes(status[place : place + 2], "little")
        if variable in _TEXT_VARIABLES:
            place += 1 + status[place] + _TEXT_VARIABLES[variable]
        elif variable in _VARIABLE_BYTES:
            place += _VARIABLE_BYTES[variable]
        else:
            break
    return 0
