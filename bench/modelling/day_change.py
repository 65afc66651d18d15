"""A day's change, as data: which partitions of the trips it touches, and how many of their rows."""

from __future__ import annotations

from dataclasses import dataclass

CHANGED = 0.04
"""Of the rows, where the partitions touched have as many to change."""
MOST_OF_A_PARTITION = 0.6
"""Of its rows may change, but for the newest, which gets as many as it had."""
NEW, GONE = 0.1, 0.05
"""Of the rows that change in an older partition. All others are updates."""


@dataclass(frozen=True)
class DayChange:
    """Partitions are days by number, the newest last. `late`: the older days that are touched, and `late_share` of their rows."""

    days: int
    rows: int
    late: tuple[int, ...]
    late_share: float

    @property
    def newest(self) -> int:
        return self.days - 1

    @property
    def rows_a_day(self) -> int:
        return self.rows // self.days

    @property
    def new_rows(self) -> int:
        """Those of the newest day, then those of the late ones, by turns."""
        return self.rows_a_day + round(NEW * self.late_rows)

    @property
    def late_rows(self) -> int:
        return round(self.late_share * self.rows_a_day * len(self.late))

    @property
    def share(self) -> float:
        """Of the rows of the table."""
        return (self.rows_a_day + self.late_rows) / self.rows


def day_change(*, days: int, rows: int, touched: float) -> DayChange:
    """`touched`: the share of the partitions. One is the newest; of the late ones half are just before it, half are anywhere."""
    older = max(0, round(touched * days) - 1)
    recent = older - older // 2
    before = days - 1 - recent
    anywhere = [before * place // (older // 2) for place in range(older // 2)]
    late = (*anywhere, *range(before, days - 1))
    left = max(0.0, CHANGED * rows - rows // days)
    share = min(MOST_OF_A_PARTITION, left / (len(late) * (rows // days))) if late else 0.0
    return DayChange(days, rows, late, share)
