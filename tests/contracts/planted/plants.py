"""What can be wrong with a table, as changes of its rows. A change keeps what it does not concern, and is the same each time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tests.contracts.planted.calendar import Period
from tests.contracts.planted.layouts import StoredRow
from tests.contracts.planted.scenario import Damage

SURPLUS_FROM = 500_000
"""The numbers of rows that upstream does not have."""


def _some(rows: Sequence[StoredRow], period: Period, count: int, salt: int) -> list[StoredRow]:
    """Of the rows of a period, drawn by their numbers, so that two tables lose the same."""
    there = [row for row in rows if row.period == period]
    numbers = sorted({row.number for row in there})
    drawn = set(random.Random(salt).sample(numbers, min(count, len(numbers))))
    return [row for row in there if row.number in drawn]


def _next_number(rows: Sequence[StoredRow]) -> int:
    """Of a row that upstream does not have; no other row has it, however many were lost meanwhile."""
    return 1 + max((SURPLUS_FROM - 1, *(row.number for row in rows)))


def lose(period: Period, count: int, salt: int) -> Damage:
    def damage(rows: Sequence[StoredRow]) -> list[StoredRow]:
        lost = {row.number for row in _some(rows, period, count, salt)}
        return [row for row in rows if row.number not in lost]

    return damage


def lose_all(*periods: Period) -> Damage:
    return lambda rows: [row for row in rows if row.period not in periods]


def double(period: Period, count: int, salt: int) -> Damage:
    return lambda rows: [*rows, *_some(rows, period, count, salt)]


def add(period: Period, count: int) -> Damage:
    """Rows with keys of their own."""

    def damage(rows: Sequence[StoredRow]) -> list[StoredRow]:
        first = _next_number(rows)
        return [*rows, *(StoredRow(first + extra, period.start, period, extra) for extra in range(count))]

    return damage


def change(period: Period, count: int, salt: int) -> Damage:
    def damage(rows: Sequence[StoredRow]) -> list[StoredRow]:
        changed = {row.number for row in _some(rows, period, count, salt)}
        return [replace(row, amount=row.amount + 1) if row.number in changed else row for row in rows]

    return damage


def move(period: Period, to: Period) -> Damage:
    """What happened in one period lies in another."""
    return lambda rows: [replace(row, period=to) if row.period == period else row for row in rows]


def misplace(period: Period | None, count: int, at: datetime) -> Damage:
    """Rows of no period, or of one far ahead."""

    def damage(rows: Sequence[StoredRow]) -> list[StoredRow]:
        first = _next_number(rows)
        return [*rows, *(StoredRow(first + extra, at, period, extra) for extra in range(count))]

    return damage


def date_ahead(by: timedelta) -> Damage:
    """The last event is dated years later."""

    def damage(rows: Sequence[StoredRow]) -> list[StoredRow]:
        last = max((row for row in rows if row.number < SURPLUS_FROM), key=lambda row: row.number)
        return [replace(row, happened_at=row.at + by) if row is last else row for row in rows]

    return damage


def together(*damages: Damage) -> Damage:
    def damage(rows: Sequence[StoredRow]) -> list[StoredRow]:
        for each in damages:
            rows = each(rows)
        return list(rows)

    return damage
