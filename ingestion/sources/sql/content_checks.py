"""How often a process that looks at a table again and again compares rows by their content, of which the position has sums only.

To compare them all are read: 200,000 take more than a second. So the first look compares them, and those that follow only count them, which the database
does by itself, until it is time again. A job reads with a source of its own, and so compares them each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ingestion.domain.checkpoint import Position

_ROWS_PER_S = 200
"""Rows that are compared in a second, on average: about a thousandth of what a core can do."""
_LONGEST_S = 3600.0
"""However many there are, they are compared once in that time."""


@dataclass
class ContentChecks:
    """`clock`: seconds that only grow. The last time that rows were compared without a difference: from which position on, and how many there were."""

    clock: Callable[[], float]
    _position: Position | None = None
    _rows: int = 0
    _due_at: float = 0.0

    def is_due(self, position: Position) -> bool:
        return self._position != position or self.clock() >= self._due_at

    def has_as_many(self, rows: int) -> bool:
        """As when they were compared."""
        return rows == self._rows

    def note(self, position: Position, rows: int) -> None:
        """Of so many rows none had to be handed over."""
        self._position, self._rows = position, rows
        self._due_at = self.clock() + min(rows / _ROWS_PER_S, _LONGEST_S)
