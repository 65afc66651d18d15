"""Where a tap stands in a binlog, and the reference keys that it gives: both say the same of a row, whichever process reads it, and however often.

Rows are counted within their transaction and table: how they are cut into events is another server's affair.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ingestion.capture.binlog.events import Gtid
from ingestion.capture.source_counts import HourCounts
from ingestion.capture.tap.known_tables import KnownTable

_REFERENCE_KEY = struct.Struct(">HQQ")
_LAST = 2**64 - 1

KnownTables = Mapping[str, KnownTable]
"""By topic."""


@dataclass(frozen=True)
class TapPosition:
    """`gtid`: the last transaction that was taken whole, as the server names it; empty: none, from the oldest on. `begun`: the one after it, of
    which `taken` says by topic how many rows were taken; empty: none.

    By what else another server shows that it has the same transaction: `at`, when it was committed, and `before`, the one that came before it. Empty: not
    known, as it was not read."""

    gtid: str
    begun: str = ""
    taken: Mapping[str, int] = field(default_factory=dict)
    before: str = field(default="", compare=False)
    at: str = field(default="", compare=False)

    @property
    def sequence(self) -> int:
        return int(self.gtid.rpartition("-")[2] or 0)

    def rows_taken(self, gtid: Gtid) -> Mapping[str, int]:
        return self.taken if str(gtid) == self.begun else {}

    def as_json(self) -> dict[str, Any]:
        return {
            "gtid": self.gtid,
            "begun": self.begun,
            "taken": dict(self.taken),
            "before": self.before,
            "at": self.at,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TapPosition:
        """Those of earlier versions say less."""
        return cls(stored["gtid"], stored["begun"], stored["taken"], stored.get("before", ""), stored.get("at", ""))


def joined(places: Mapping[str, TapPosition]) -> tuple[TapPosition, dict[str, TapPosition]]:
    """By topic, where each goes on: the place from which one reading has what all of them lack, and those that are farther, or within a transaction."""
    first = min(places.values(), key=lambda place: place.sequence)
    start = replace(first, begun="", taken={})
    return start, {topic: place for topic, place in places.items() if place != start}


@dataclass(frozen=True)
class TapState:
    """What a tap keeps in the changelog. `stopped`: by topic the load of the dataset (`CaptureSpec.load`) in which it was stopped: the next one begins
    anew. `places`: by topic, where it is taken up to if that is not `position`: it has come
    from another server and is farther, or has left this one and waits. `moved`: by topic the load that the tap of another server has taken over. `counts`: of the messages that the rows up to there are,
    until they are kept elsewhere; None: nobody has counted."""

    position: TapPosition
    stopped: Mapping[str, int] = field(default_factory=dict)
    known: KnownTables = field(default_factory=dict)
    places: Mapping[str, TapPosition] = field(default_factory=dict)
    moved: Mapping[str, int] = field(default_factory=dict)
    counts: HourCounts | None = None

    def place_of(self, topic: str) -> TapPosition:
        """Where its changes go on."""
        if topic in self.places:
            return self.places[topic]
        rows = self.position.taken.get(topic, 0)
        return replace(self.position, begun=self.position.begun if rows else "", taken={topic: rows} if rows else {})

    def as_json(self) -> dict[str, Any]:
        return {
            **self.position.as_json(),
            "stopped": dict(self.stopped),
            "keys": {topic: table.as_json() for topic, table in self.known.items()},
            "places": {topic: place.as_json() for topic, place in self.places.items()},
            "moved": dict(self.moved),
            **({} if self.counts is None else {"counts": {hour: dict(of) for hour, of in self.counts.items()}}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TapState:
        """Those of earlier versions say less."""
        known = {topic: KnownTable.from_json(table) for topic, table in stored["keys"].items()}
        places = {topic: TapPosition.from_json(place) for topic, place in stored.get("places", {}).items()}
        moved, counts = stored.get("moved", {}), stored.get("counts")
        return cls(TapPosition.from_json(stored), stored["stopped"], known, places, moved, counts)


def reference_key(sequence: int, row: int, *, epoch: int = 0) -> bytes:
    """Of a change: transactions in the order of the server, and within one the rows of the table. `epoch` grows where the server's numbers begin anew."""
    return _REFERENCE_KEY.pack(epoch, sequence, row)


def reference_key_after(sequence: int, *, epoch: int = 0) -> bytes:
    """Of a row as it was read after a transaction: greater than those of its changes, less than those of the next one's."""
    return _REFERENCE_KEY.pack(epoch, sequence, _LAST)


def emptied_before(sequence: int) -> bytes:
    """All changes with a lesser reference key are of before the table was emptied in this transaction. Empty: it never was, which 0 says."""
    return reference_key(sequence, 0) if sequence else b""
