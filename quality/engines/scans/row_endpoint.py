"""One side of an exact comparison: the rows of a part of a table, where they lie. Sums of cells leave it, and the rows that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from quality.domain.difference.agreement import Agreement, ColumnForm
from quality.domain.difference.reconcile import RowSide

MAX_ROWS_OF_KEY = 1_000
"""So many different rows of one key are fetched: more of them are nobody's record."""


MAX_TEXT = 200
"""Longer texts of fetched rows are shown by their beginning and their MD5."""


class RowEndpoint(Protocol):
    """All raise CannotRead."""

    native_hash: str
    """What hashes rows here, with its version: two sides with the same one agree without MD5. Empty: nothing of its own."""

    def columns(self) -> Mapping[str, ColumnForm] | None:
        """The columns of the rows; None: nothing was written here yet."""

    def count(self) -> int:
        """How many rows there are."""

    def side(self, agreement: Agreement, rows: int) -> RowSide:
        """The rows, hashed as agreed. `rows` is how many the larger side has."""
