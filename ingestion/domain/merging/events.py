"""One row change as a source's log reports it, after decoding: the only input of `ingestion.domain.merging.merge`.

The fields are those of Uber's DBEvents. A schema change (DDL) is not a ChangeEvent: it has no row, and `ingestion.domain.schema` decides it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

RowKey = tuple[Hashable, ...]
ReferenceKey = bytes | int
LogPosition = tuple[int, ...]
_LONG_BITS = 63


class Operation(StrEnum):
    """Inserts and updates merge alike: each gives the columns that it carries."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class Version(NamedTuple):
    """What decides between two changes of one row: the reference key, then the data center, then the position in the log.

    The order is total: no two events share a version, and an event that comes again has the version that it had.
    """

    reference_key: ReferenceKey | None
    data_center: str
    position: LogPosition


@dataclass(frozen=True)
class ChangeEvent:
    """A change of one row.

    `row_key`: the values of the key columns, in order, none of them None.
    `reference_key`: bytes or a signed 64-bit integer, the same type throughout a dataset; None throughout a dataset that has none.
    `position`: where the event is in the log of its data center, for example (file, offset, row). It increases along the log for all changes of one row,
    belongs to one event only, and is the same whenever that event is read again.
    `values`: the columns that the event carries, key columns included. None sets null; an absent column keeps its value. Ignored for a delete.
    `source_committed_at`: aware UTC, None if the source does not report it. The lag is measured from it; it decides nothing.
    """

    operation: Operation
    row_key: RowKey
    reference_key: ReferenceKey | None
    position: LogPosition
    values: Mapping[str, Any]
    schema_version: int
    source_committed_at: datetime | None = None
    force_update: bool = False
    data_center: str = ""

    @property
    def version(self) -> Version:
        return Version(self.reference_key, self.data_center, self.position)


def misfit(event: ChangeEvent, reference_type: type[ReferenceKey] | None) -> str | None:
    """Why an event cannot be merged, or None if it can. `reference_type` is that of the dataset's reference key, None if it has none."""
    if not event.row_key or None in event.row_key or not _is_hashable(event.row_key):
        return (
            f"The row key {event.row_key!r} is empty, or has a null or a nested value. Every key column needs a value."
        )
    if not _fits_type(event.reference_key, reference_type):
        wanted = "none" if reference_type is None else "bytes" if reference_type is bytes else "a 64-bit integer"
        return f"The reference key is {event.reference_key!r}, and the dataset's reference key is {wanted}."
    if not event.position:
        return "The event has no position in the log, so equal reference keys cannot be ordered."
    if event.source_committed_at is not None and event.source_committed_at.tzinfo is None:
        return f"The source commit time {event.source_committed_at} has no time zone. Convert it to UTC."
    if not event.values and event.operation is not Operation.DELETE:
        return f"The {event.operation} has no columns."
    return None


def _fits_type(key: ReferenceKey | None, reference_type: type[ReferenceKey] | None) -> bool:
    if reference_type is None:
        return key is None
    if reference_type is bytes:
        return isinstance(key, bytes)
    return isinstance(key, int) and not isinstance(key, bool) and -(2**_LONG_BITS) <= key < 2**_LONG_BITS


def _is_hashable(row_key: RowKey) -> bool:
    try:
        hash(row_key)
    except TypeError:
        return False
    return True
