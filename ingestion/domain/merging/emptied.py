"""A table that was emptied as a whole, such as by TRUNCATE: a delete of all of its rows at one place in the order of changes, also of those that nobody has met yet."""

from __future__ import annotations

from ingestion.domain.merging.events import Version
from ingestion.domain.merging.row_state import RowState


def emptied(row: RowState, at: Version | None) -> RowState:
    """As a delete of this version leaves it, whatever came before and whenever it comes. None: the table was never emptied."""
    if at is None or (row.tombstone is not None and at <= row.tombstone):
        return row
    columns = {name: column for name, column in row.columns.items() if column.version > at}
    return RowState(columns, at, row.forced)
