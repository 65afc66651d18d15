"""Which transactions the binlog of a server still has, and whether a place in it can be gone on from.

GTIDs are MariaDB's, `domain-server-sequence`, of one domain; an empty one is the place before the first transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import sqlalchemy as sa

_BEGINNING = 4
"""The offset of the first event in each file."""


class Place(Enum):
    KEPT = "what comes after it is there"
    NEXT_TO_GO = "what comes after it is in the oldest file, which is removed before all others"
    PURGED = "some of what came after it was removed"
    UNKNOWN = "the server does not know it: it is another one, or was set up anew or restored"


class _Gtid(NamedTuple):
    domain: str
    sequence: int


@dataclass(frozen=True)
class BinlogFiles:
    """`oldest`: the GTID before the first transaction that is kept; `second`: before the second file, None where there is one file; `newest`: the last one.
    `written`: the last one by each server that has written to it, commas between them."""

    oldest: str
    newest: str
    second: str | None = None
    written: str = ""

    def may_have(self, gtid: str) -> bool:
        """Whether the server has had that transaction or a later one of the server that made it: no transaction is later there than it is itself."""
        origin, _, sequence = gtid.rpartition("-")
        newest = dict(each.strip().rpartition("-")[::2] for each in self.written.split(",") if each.strip())
        return int(newest.get(origin, 0)) >= int(sequence or 0)

    def place_of(self, gtid: str) -> Place:
        """`gtid`: the last transaction that was taken."""
        taken, newest = _parsed(gtid), _parsed(self.newest)
        if taken.sequence > newest.sequence or (gtid and newest.domain != taken.domain):
            return Place.UNKNOWN
        if taken.sequence < _parsed(self.oldest).sequence:
            return Place.PURGED
        if self.second is not None and taken.sequence < _parsed(self.second).sequence:
            return Place.NEXT_TO_GO
        return Place.KEPT


def read_newest_gtid(connection: sa.Connection) -> str:
    """Of the last transaction in the binlog; of several domains one of each."""
    return str(connection.exec_driver_sql("SELECT @@gtid_binlog_pos").scalar() or "")


def read_binlog_files(connection: sa.Connection) -> BinlogFiles:
    """The account needs the right BINLOG MONITOR."""
    newest = read_newest_gtid(connection)
    starts = [_start_of(connection, name) for name in _names(connection)[:2]]
    written = str(connection.exec_driver_sql("SELECT @@gtid_binlog_state").scalar() or "")
    return BinlogFiles(starts[0] if starts else newest, newest, starts[1] if len(starts) > 1 else None, written)


def read_start_before(connection: sa.Connection, gtid: str) -> str:
    """The GTID before the first transaction of the file that has `gtid`; that itself where its file was removed and the next one is there."""
    for name in reversed(_names(connection)):
        start = _start_of(connection, name)
        if start == gtid or _parsed(start).sequence < _parsed(gtid).sequence:
            return start
    return ""


def _names(connection: sa.Connection) -> list[str]:
    return [str(row[0]) for row in connection.exec_driver_sql("SHOW BINARY LOGS")]


def _start_of(connection: sa.Connection, file: str) -> str:
    return str(connection.scalar(sa.select(sa.func.BINLOG_GTID_POS(file, _BEGINNING))) or "")


def _parsed(gtid: str) -> _Gtid:
    if not gtid:
        return _Gtid("", 0)
    domain, _, sequence = gtid.split("-")
    return _Gtid(domain.strip(), int(sequence))
