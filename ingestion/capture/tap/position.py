"""Where a tap stands in a binlog, and the reference keys that it gives: both say the same of a row, whichever process reads it, and however often.

Rows are counted within their transaction and table: how they are cut into events is another server's affair.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingestion.capture.binlog.events import Gtid

_REFERENCE_KEY = struct.Struct(">HQQ")
_LAST = 2**64 - 1


@dataclass(frozen=True)
class TapPosition:
    """`gtid`: the last transaction that was taken whole, as the server names it; empty: none, from the oldest on. `begun`: the one after it, of
    which `taken` says by topic how many rows were taken; empty: none."""

    gtid: str
    begun: str = ""
    taken: Mapping[str, int] = field(default_factory=dict)

    def rows_taken(self, gtid: Gtid) -> Mapping[str, int]:
        return self.taken if str(gtid) == self.begun else {}

    def as_json(self) -> dict[str, Any]:
        return {"gtid": self.gtid, "begun": self.begun, "taken": dict(self.taken)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TapPosition:
        return cls(stored["gtid"], stored["begun"], stored["taken"])


@dataclass(frozen=True)
class TapState:
    """What a tap keeps in the changelog. `stopped`: by topic the load of the dataset (`CaptureSpec.load`) in which it was stopped: the next one begins
    anew. `keys`: by topic the load, and the record key of its events."""

    position: TapPosition
    stopped: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        keys = {topic: [load, [*key]] for topic, (load, key) in self.keys.items()}
        return {**self.position.as_json(), "stopped": dict(self.stopped), "keys": keys}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TapState:
        keys = {topic: (load, tuple(key)) for topic, (load, key) in stored["keys"].items()}
        return cls(TapPosition.from_json(stored), stored["stopped"], keys)


def reference_key(sequence: int, row: int, *, epoch: int = 0) -> bytes:
    """Of a change: transactions in the order of the server, and within one the rows of the table. `epoch` grows where the server's numbers begin anew."""
    return _REFERENCE_KEY.pack(epoch, sequence, row)


def reference_key_after(sequence: int, *, epoch: int = 0) -> bytes:
    """Of a row as it was read after a transaction: greater than those of its changes, less than those of the next one's."""
    return _REFERENCE_KEY.pack(epoch, sequence, _LAST)


def emptied_before(sequence: int) -> bytes:
    """All changes with a lesser reference key are of before the table was emptied in this transaction. Empty: it never was, which 0 says."""
    return reference_key(sequence, 0) if sequence else b""
