"""A batch of changes, a part of which are rows that the table does not have."""

from __future__ import annotations

from datetime import timedelta

from bench.writing.rows import FIRST_DAY, LOADED_AT, Order, changed

NEW = 5
"""One of so many rows is new."""
NEW_NOTE = "new"


def batch(
    table: int, count: int, *, days: int, spread: bool, number: int, last_days: int, new_before: int
) -> list[Order]:
    """`count` rows, the `number`th time: of a table that was loaded with `table`, and got `new_before` new ones since. All lie anywhere, or in the last days."""
    of_last = days if spread else last_days
    at = LOADED_AT + timedelta(hours=number)
    new = [
        Order(table + place, f"{_day(days - 1 - place % of_last)}", "customer 2", number + 0.5, NEW_NOTE, at)
        for place in range(new_before, new_before + count // NEW)
    ]
    known = changed(table, count - len(new), days=days, spread=spread, number=number, last_days=last_days)
    return known + new


def _day(number: int) -> str:
    return f"{FIRST_DAY + timedelta(days=number)}"
