"""Three tables with awkward types, what is written to them, and their rows as they must be in the lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

Statements = Iterator[str]
_TEXTS = ("", "Köln", "it''s", "😀", "a,b:c", "\\\\", "null", "1.50")
_DAYS = ("2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27")


@dataclass(frozen=True)
class Table:
    """`row`: the values of a row with a given number, in SQL. `key_of`: its key in SQL, as a condition. `loose`: columns that a writer changes alone."""

    name: str
    create: str
    key: tuple[str, ...]
    row: Callable[[int, Random], str]
    key_of: Callable[[int], str]
    loose: dict[str, Callable[[Random], str]]
    numbers: int = 300
    partition: str = ""
    sizes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Columns that become narrower and wider, with both types."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of its feed."""

    def random_statements(self, random: Random, extra: Sequence[str] = ()) -> Statements:
        """Of one transaction. `extra`: columns that the table has beside the usual ones."""
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            yield self._random_statement(random)
        if extra and random.random() < 0.3:
            value = random.choice(("NULL", str(random.randrange(2**31))))
            yield f"UPDATE {self.name} SET {random.choice(extra)} = {value} WHERE {self.key_of(random.randrange(self.numbers))}"

    def _random_statement(self, random: Random) -> str:
        number, name = random.randrange(self.numbers), random.choice([*self.loose])
        change = f"{name} = {self.loose[name](random)}"
        match random.randrange(10):
            case 0 | 1:
                return f"REPLACE INTO {self.name} VALUES ({self.row(number, random)})"
            case 2:
                numbers = random.sample(range(self.numbers), 20)
                rows = ", ".join(f"({self.row(each, random)})" for each in numbers)
                return f"INSERT IGNORE INTO {self.name} VALUES {rows}"
            case 3 | 4:
                return f"DELETE FROM {self.name} WHERE {self.key_of(number)}"
            case 5:
                return f"INSERT INTO {self.name} VALUES ({self.row(number, random)}) ON DUPLICATE KEY UPDATE {change}"
            case 6:
                return f"UPDATE {self.name} SET {change} ORDER BY {self.key[0]} LIMIT {random.choice((1, 30))}"
            case 7:
                return f"UPDATE IGNORE {self.name} SET {self.moved(number, random)} WHERE {self.key_of(number)}"
        return f"UPDATE {self.name} SET {change} WHERE {self.key_of(number)}"

    def moved(self, number: int, random: Random) -> str:
        """Another key."""
        return self.key_of(random.randrange(self.numbers)).replace(" AND ", ", ")


def _text(random: Random) -> str:
    return random.choice(("NULL", *(f"'{text}'" for text in _TEXTS)))


def _decimal(random: Random) -> str:
    return random.choice(("NULL", "0", "-0.01", "99999999.99", str(random.randrange(10**6) / 100)))


def _time(random: Random) -> str:
    return random.choice(
        (
            "NULL",
            "'0000-00-00'",
            "'9999-12-31 23:59:59.999999'",
            f"'2026-11-{random.randrange(1, 28):02} 02:30:00.{random.randrange(10**6):06}'",
        )
    )


TRIPS = Table(
    "trips",
    "id int PRIMARY KEY, day date NOT NULL, city varchar(40) CHARACTER SET utf8mb4, fare decimal(10,2), began datetime(6), is_shared bit(1)",
    ("id",),
    lambda n, r: f"{n}, '{r.choice(_DAYS)}', {_text(r)}, {_decimal(r)}, {_time(r)}, {r.choice(('NULL', '0', '1'))}",
    lambda n: f"id = {n}",
    {"city": _text, "fare": _decimal, "day": lambda r: f"'{r.choice(_DAYS)}'", "began": _time},
    partition="day",
    sizes={
        "city": ("varchar(40) CHARACTER SET utf8mb4", "varchar(400) CHARACTER SET utf8mb4"),
        "fare": ("decimal(10,2)", "decimal(12,2)"),
    },
    options={"on_truncate": "apply", "on_drop": "apply"},
)
RIDERS = Table(
    "riders",
    "country char(2), number bigint unsigned, kind enum('a','ü','zz'), tags set('x','y','z'), info json, note varchar(20) CHARACTER SET greek, PRIMARY KEY (country, number)",
    ("country", "number"),
    lambda n, r: (
        f"'{'DE' if n % 2 else 'FR'}', {18446744073709551615 - n}, {r.choice(('NULL', 1, 2, 3))}, {r.randrange(8)}, {_json(r)}, {r.choice(('NULL', chr(39) + 'α' + chr(39)))}"
    ),
    lambda n: f"country = '{'DE' if n % 2 else 'FR'}' AND number = {18446744073709551615 - n}",
    {"kind": lambda r: str(r.choice((1, 2, 3))), "tags": lambda r: str(r.randrange(8)), "info": lambda r: _json(r)},
    options={"history": True},
)
VISITS = Table(
    "visits",
    "token varchar(20) PRIMARY KEY, body blob, bits bit(12), y year, t time(3), score double, ts timestamp(3) NULL",
    ("token",),
    lambda n, r: (
        f"'t{n}', {_blob(r)}, {r.randrange(4096)}, {r.choice((1901, 2026))}, {r.choice(('NULL', chr(39) + '-838:59:59.999' + chr(39)))}, {r.choice(('-0.0', '1e300', '0.1'))}, {r.choice(('NULL', chr(39) + '2026-10-25 01:30:00.125' + chr(39)))}"
    ),
    lambda n: f"token = 't{n}'",
    {"body": lambda r: _blob(r), "bits": lambda r: str(r.randrange(4096)), "score": lambda r: str(r.random())},
    options={"chunk_rows": 1_000, "readers": 2, "commit_rows": 10_000, "rows_per_s": 8_000},
)
TABLES = (TRIPS, RIDERS, VISITS)
TABLE_OF_LARGE = VISITS
"""In which one transaction changes many rows, that no other writer does. Its load has several chunks, which take a while."""
EMPTIED_TABLE = TRIPS
TABLES_WITH_HISTORY = frozenset(table.name for table in TABLES if table.options.get("history"))
"""They are not loaded anew: changes that a load has read in the table are no versions."""


def _json(random: Random) -> str:
    return random.choice(("NULL", '\'{"a": [1, "é"]}\'', "'[]'", f"'{random.randrange(100)}'"))


def _blob(random: Random) -> str:
    return random.choice(("NULL", "''", "x'00ff'", f"x'{random.randbytes(9).hex()}'"))


def comparable(value: Any) -> Any:
    """Equal for the same value of the source and of the lake. A date that is none is null; a set's labels stand with commas."""
    match value:
        case bool():
            return int(value)
        case datetime():
            return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat()
        case date():
            return value.isoformat()
        case int() | Decimal():
            return Decimal(value)
        case bytes():
            return value.hex()
        case str() if value.startswith("0000-00-00"):
            return None
    return value
