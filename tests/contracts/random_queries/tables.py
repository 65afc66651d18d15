"""The tables of random queries: few rows and few values, so that joins meet and edges are hit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from incidents.domain.gate.sql_bounds import TableShape
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import partition_form

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "flights": {"flight_date": "day", "ts": "time", "carrier": "text", "id": "int"},
    "trips": {"ts": "time", "id": "int", "kind": "text"},
    "planes": {"id": "int", "built": "text"},
    "cities": {"id": "int", "trips": "text", "name": "text"},
    "ids": {"id": "int"},
    "stays": {"ds": "digits", "id": "int"},
    "nights": {"ds": "number", "id": "int"},
}
"""By table, the columns and their kinds. `cities.trips` is called as a table is; `digits` such as 20261103 have no type in SQLite."""
_ZONE = ZoneInfo("UTC")
_FORM = partition_form("ds", Grain.DAY, _ZONE, "%Y%m%d")
SHAPES = {
    "flights": TableShape("flight_date", Grain.DAY, _ZONE, "ts", frozenset(COLUMNS["flights"])),
    "trips": TableShape("", Grain.NONE, _ZONE, "ts", frozenset(COLUMNS["trips"])),
    **{name: TableShape("", Grain.NONE, _ZONE, "", frozenset(COLUMNS[name])) for name in ("planes", "cities", "ids")},
    "stays": TableShape("ds", Grain.DAY, _ZONE, "", frozenset(COLUMNS["stays"]), _FORM),
    "nights": TableShape("ds", Grain.DAY, _ZONE, "", frozenset(COLUMNS["nights"]), _FORM, has_numbers=True),
}
FIRST_DAY = datetime(2026, 11, 1)
DAYS = 8
TEXTS = ("AA", "BB", "flights", "trips")
_HOURS = (timedelta(), timedelta(hours=7), timedelta(hours=23, minutes=59, seconds=59, milliseconds=700))


_TIMED = frozenset({"time", "digits", "number"})


@dataclass(frozen=True)
class Row:
    """`at`: when it happened; None in a table without times, and of a row that has none."""

    values: tuple[object, ...]
    at: datetime | None = None


def random_row(table: str, random: Random, *, as_text: bool) -> Row:
    """`as_text`: times are written, with a blank or a T, as in SQLite."""
    at = None if random.random() < 0.05 else FIRST_DAY + timedelta(days=random.randrange(DAYS)) + random.choice(_HOURS)
    kinds = COLUMNS[table].values()
    written = None if at is None else at.isoformat(random.choice(" T"), "milliseconds") if as_text else at
    return Row(tuple(_value(kind, at, written, random) for kind in kinds), at if _TIMED.intersection(kinds) else None)


def _value(kind: str, at: datetime | None, written: object, random: Random) -> object:
    if kind == "day":
        return None if at is None else f"{at:%Y-%m-%d}"
    if kind in ("digits", "number"):
        return None if at is None else int(f"{at:%Y%m%d}") if kind == "number" else f"{at:%Y%m%d}"
    if kind == "time":
        return written
    return None if random.random() < 0.1 else random.choice(TEXTS) if kind == "text" else random.randrange(5)


def random_rows(table: str, random: Random, *, as_text: bool) -> list[Row]:
    return [random_row(table, random, as_text=as_text) for _ in range(random.randint(6, 11))]


Claim = Mapping[str, tuple[Interval, ...]]


def is_claimed(table: str, row: Row, claim: Claim) -> bool:
    """A row without a time lies in no range, but in the whole."""
    ranges = claim.get(table, ())
    if any(span.is_everything for span in ranges):
        return True
    at = None if row.at is None else row.at.replace(tzinfo=UTC)
    return at is not None and any(span.start <= at < span.end for span in ranges)


def changed_rows(
    rows: Mapping[str, list[Row]], claim: Claim, random: Random, *, as_text: bool
) -> Iterator[tuple[str, list[Row]]]:
    """The tables that may change, with what is claimed of them in its order, among others."""
    for table, before in rows.items():
        if any(span.is_everything for span in claim.get(table, ())):
            continue
        after = [row for row in before if is_claimed(table, row, claim) or random.random() < 0.4]
        for row in _strangers(table, claim, random, as_text=as_text):
            after.insert(random.randint(0, len(after)), row)
        yield table, after


def _strangers(table: str, claim: Claim, random: Random, *, as_text: bool) -> Collection[Row]:
    drawn = [random_row(table, random, as_text=as_text) for _ in range(random.choice((0, 8)))]
    return [row for row in drawn if not is_claimed(table, row, claim)]
