"""What becomes of each event that was read. The sum holds for every commit: read = applied + superseded + redelivered + errors (RULES.md, Ingestion).

`fates_of` is the slow, obvious model; `ingestion.spark.loading.row_fates` computes the same with columns, and a test holds the two together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class RowFate(StrEnum):
    APPLIED = "applied"
    SUPERSEDED = "superseded"
    REDELIVERED = "redelivered"
    ERROR = "error"


@dataclass(frozen=True)
class RowCounts:
    """An associative sum: the counts of two batches add up."""

    read: int = 0
    applied: int = 0
    superseded: int = 0
    redelivered: int = 0
    errors: int = 0

    @classmethod
    def of(cls, fates: Iterable[RowFate]) -> RowCounts:
        """One fate for each event that was read."""
        events = Counter(fates)
        return cls(events.total(), *(events[fate] for fate in RowFate))

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def is_balanced(self) -> bool:
        return self.read == self.applied + self.superseded + self.redelivered + self.errors

    @property
    def unaccounted(self) -> int:
        return self.read - self.applied - self.superseded - self.redelivered - self.errors


@dataclass(frozen=True)
class Event:
    """One row as it was read. `reference` None: the dataset has no reference key, and what is read later wins."""

    key: Hashable
    reference: Any
    content: Hashable


def fates_of(
    events: Iterable[Event], stored: Mapping[Hashable, Event], since: Collection[Hashable] = ()
) -> tuple[RowFate, ...]:
    """The fate of each event, in order, against the rows that the table holds.

    Within a batch the greater reference key wins, and of equals the later. A loser that is the same row as the winner is redelivered, any other is superseded.
    `since`: the keys of stored rows that were written after the batch was read. They stand, unless the batch has a greater reference key.
    """
    batch = tuple(events)
    winners = _winners(batch)
    return tuple(
        _against_stored(event, stored.get(event.key), event.key in since)
        if winners[event.key] == place
        else _against_winner(event, batch[winners[event.key]])
        for place, event in enumerate(batch)
    )


def _winners(batch: tuple[Event, ...]) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for place, event in enumerate(batch):
        leader = places.get(event.key)
        if leader is None or event.reference is None or event.reference >= batch[leader].reference:
            places[event.key] = place
    return places


def _against_winner(event: Event, winner: Event) -> RowFate:
    return RowFate.REDELIVERED if _same_row(event, winner) else RowFate.SUPERSEDED


def _against_stored(event: Event, stored: Event | None, is_since: bool) -> RowFate:
    if stored is None:
        return RowFate.APPLIED
    if event.reference is not None and stored.reference is not None and stored.reference > event.reference:
        return RowFate.SUPERSEDED
    if _same_row(event, stored):
        return RowFate.REDELIVERED
    is_greater = event.reference is not None and stored.reference is not None and event.reference > stored.reference
    return RowFate.SUPERSEDED if is_since and not is_greater else RowFate.APPLIED


def _same_row(event: Event, other: Event) -> bool:
    return event.reference == other.reference and event.content == other.content
