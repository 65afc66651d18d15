"""The transaction that a tap is in: how far its rows are taken, and which messages never were if it is rolled back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestion.capture.binlog.events import Begin, Gtid
from ingestion.capture.tap.captured_table import Transaction


@dataclass
class OpenTransaction:
    """Places are those in the list of messages that wait for their commit."""

    gtid: Gtid
    facts: Transaction
    begins_at: int
    taken: Counter[str]
    """By topic, how many rows were: all that were seen, and those of an earlier process that are to come again."""
    committed: set[str]
    """Topics in which messages of it are committed already, as it is large, or a process was ended within it."""
    seen: Counter[str] = field(default_factory=Counter)
    savepoints: dict[str, int] = field(default_factory=dict)

    @classmethod
    def begun(cls, begin: Begin, taken: Mapping[str, int], *, begins_at: int) -> OpenTransaction:
        rows = Counter(taken)
        return cls(begin.gtid, Transaction(begin.gtid.sequence, begin.at), begins_at, rows, set(rows))

    def note_committed(self, messages: int) -> None:
        """The first ones of those that waited are."""
        if messages > self.begins_at:
            self.committed |= set(self.seen)
        self.begins_at = max(0, self.begins_at - messages)
        places = {name: place - messages for name, place in self.savepoints.items()}
        self.savepoints = {name: place for name, place in places.items() if place >= 0}

    def place_of(self, savepoint: str) -> int | None:
        """What comes from there on never was; None: some of it may be committed."""
        return self.savepoints.get(savepoint, None if self.committed else self.begins_at)
