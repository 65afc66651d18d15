"""How a table of a scenario is written: how its columns say the partition of a row, what its key is, Parquet or SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from tests.contracts.planted.calendar import Period

Value = Callable[[Period, datetime], Any]
"""What a column holds in a row of the period, of an event at a local time in it."""
COARSE = ("day", "week", "month", "quarter")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    value: Value


@dataclass(frozen=True)
class PartitionForm:
    """`text` is what is said of the columns at onboarding. `garbage` is a value that is no period."""

    text: str
    columns: tuple[Column, ...]
    tells_hours_apart: bool = True
    """Of two hours with one name, when clocks are put back."""
    garbage: Any = None
    databases: bool = True


def _text(pattern: str, period: Period, at: datetime) -> str:
    quarter = str((period.local.month + 2) // 3)
    return period.local.strftime(pattern.replace("%q", quarter))


def _number(pattern: str, period: Period, at: datetime) -> int:
    return int(_text(pattern, period, at))


def _hour_name(period: Period, at: datetime) -> str:
    name = f"{period.local:%Y-%m-%dT%H}"
    if period.again is None:
        return name
    minutes = int(period.again / timedelta(minutes=1))
    return f"{name}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"


def text(pattern: str) -> Value:
    return partial(_text, pattern)


def number(pattern: str) -> Value:
    return partial(_number, pattern)


def _local(period: Period, at: datetime) -> datetime:
    return at.replace(tzinfo=None)


def _instant(period: Period, at: datetime) -> datetime:
    return at.astimezone(UTC)


def _in_utc(period: Period, at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)


def _date(period: Period, at: datetime) -> date:
    return at.date()


def _seconds(period: Period, at: datetime) -> int:
    return int((period.start - _EPOCH).total_seconds())


def _days(period: Period, at: datetime) -> int:
    return (period.local.date() - _EPOCH.date()).days


NAMES = {"hour": _hour_name, "day": text("%Y-%m-%d"), "week": text("%G-W%V"), "month": text("%Y-%m"), "quarter": text("%Y-Q%q")}  # fmt: skip
PATTERNS = {"hour": "%Y-%m-%d %H", "day": "%d.%m.%Y", "week": "%GW%V", "month": "%b %Y", "quarter": "%YQ%q"}
NUMBERS = {"hour": "%Y%m%d%H", "day": "%Y%m%d", "week": "%G%V", "month": "%Y%m"}
SEVERAL = {
    "hour": PartitionForm("%Y%m%d, %H", (Column("ds", "text", text("%Y%m%d")), Column("hr", "integer", number("%H"))), False),
    "day": PartitionForm("%Y, %m, %d", tuple(Column(name, "integer", number(pattern)) for name, pattern in (("year", "%Y"), ("month", "%m"), ("day", "%d")))),
    "week": PartitionForm("%G, %V", (Column("year", "integer", number("%G")), Column("week", "text", text("%V")))),
    "month": PartitionForm("%Y, %m", (Column("year", "integer", number("%Y")), Column("month", "text", text("%m")))),
}  # fmt: skip


def partition_forms(grain: str) -> dict[str, PartitionForm]:
    """All that say periods of this grain."""
    apart = grain != "hour"
    forms = {
        "names": PartitionForm("", (Column("ds", "text", NAMES[grain]),), garbage="garbage"),
        "pattern": PartitionForm(PATTERNS[grain], (Column("ds", "text", text(PATTERNS[grain])),), apart, "31.02.2026"),
        "local time": PartitionForm("time", (Column("stored_at", "time", _local),), apart),
        "instant": PartitionForm("time", (Column("stored_at", "instant", _instant),), databases=False),
        "time in UTC": PartitionForm("time in UTC", (Column("stored_at", "time", _in_utc),)),
        "epoch seconds": PartitionForm("epoch seconds", (Column("epoch", "integer", _seconds),)),
    }
    if grain in NUMBERS:
        number_column = Column("ds", "integer", number(NUMBERS[grain]))
        forms["number"] = PartitionForm("", (number_column,), apart, 7)
    if grain in COARSE:
        forms["date"] = PartitionForm("", (Column("day", "date", _date),))
    if grain == "day":
        forms["epoch days"] = PartitionForm("epoch days", (Column("epoch", "integer", _days),))
    if grain in SEVERAL:
        forms["several columns"] = SEVERAL[grain]
    return forms


KEYS: dict[str, tuple[tuple[str, str, Callable[[int], Any]], ...]] = {
    "number": (("id", "integer", lambda row: row),),
    "text": (("id", "text", lambda row: f"R-{row:06}"),),
    "hostile text": (("id", "text", lambda row: f"Zürich'; -- \"{row}|\\ "),),
    "decimal": (("id", "decimal", Decimal),),
    "two columns": (("line", "text", lambda row: f"L{row % 7}"), ("number", "integer", lambda row: row // 7)),
}
"""By kind the columns, their types and what a row with a number of its own has in them."""


@dataclass(frozen=True)
class StoredRow:
    """A row as it lies in a table; `period` None: the partition column holds garbage."""

    number: int
    at: datetime
    period: Period | None
    amount: int
    happened_at: datetime | None = None
    """The time of the event, where it is not `at`."""


@dataclass(frozen=True)
class Layout:
    zone: str
    form: PartitionForm
    key: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.form.columns

    @property
    def key_columns(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in KEYS[self.key])

    def label(self, period: Period) -> object:
        """Periods with one label have the same rows: the table does not tell them apart."""
        return period if self.form.tells_hours_apart else period.local

    def write(self, rows: Iterable[StoredRow], kind: str, folder: Path) -> tuple[str, str, str]:
        """Plug-in and URL of the connection, and the name of the table."""
        columns = [*KEYS[self.key], *((column.name, column.type, None) for column in self.columns), *_FACTS]
        names, types = [column[0] for column in columns], [column[1] for column in columns]
        values = [self._values(row) for row in rows]
        folder.mkdir(parents=True, exist_ok=True)
        if kind == "sqlite":
            _write_database(folder / "ops.db", names, types, values)
            return "sql", f"sqlite:///{folder / 'ops.db'}", "events"
        _write_parquet(folder / "events.parquet", names, types, values)
        return "files", folder.as_uri(), "events.parquet"

    def _values(self, row: StoredRow) -> tuple[Any, ...]:
        key = (value(row.number) for _, _, value in KEYS[self.key])
        happened_at = (row.happened_at or row.at).astimezone(UTC).replace(tzinfo=None)
        return (*key, *self._partition(row), row.amount, f"ü{row.number % 5}" if row.number % 3 else None, happened_at)

    def _partition(self, row: StoredRow) -> tuple[Any, ...]:
        if row.period is None:
            return (self.form.garbage, *(None for _ in self.columns[1:]))
        at = row.at if row.period.holds(row.at) else row.period.start + timedelta(minutes=1)
        local = at.astimezone(ZoneInfo(self.zone))
        return tuple(column.value(row.period, local) for column in self.columns)


_FACTS = (("amount", "integer", None), ("note", "text", None), ("happened_at", "time", None))
_PARQUET = {
    "integer": pa.int64(),
    "text": pa.string(),
    "decimal": pa.decimal128(12, 2),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "instant": pa.timestamp("us", tz="UTC"),
}
_DATABASE = {
    "integer": "BIGINT",
    "text": "VARCHAR",
    "decimal": "NUMERIC(12, 2)",
    "date": "DATE",
    "time": "TIMESTAMP",
}


def _write_parquet(path: Path, names: Sequence[str], types: Sequence[str], values: Sequence[tuple[Any, ...]]) -> None:
    arrays = [pa.array([row[place] for row in values], _PARQUET[kind]) for place, kind in enumerate(types)]
    pq.write_table(pa.table(arrays, names=list(names)), path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def _write_database(path: Path, names: Sequence[str], types: Sequence[str], values: Sequence[tuple[Any, ...]]) -> None:
    columns = ", ".join(f"{name} {_DATABASE[kind]}" for name, kind in zip(names, types, strict=True))
    database = sqlite3.connect(path)
    with database:
        database.execute("DROP TABLE IF EXISTS events")
        database.execute(f"CREATE TABLE events ({columns})")
        marks = ", ".join("?" for _ in names)
        database.executemany(f"INSERT INTO events VALUES ({marks})", [tuple(map(_adapted, row)) for row in values])
    database.close()


def _adapted(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}"
    if isinstance(value, date):
        return value.isoformat()
    return int(value) if isinstance(value, Decimal) else value
