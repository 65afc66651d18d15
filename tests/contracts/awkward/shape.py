"""What an awkward table is: its rows as SQL, how its columns say time, and what onboarding is told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PARQUET, HUDI, SQLITE, POSTGRESQL, MARIADB = "parquet", "hudi", "sqlite", "postgresql", "mariadb"
FILES = (PARQUET,)
DATABASES = (SQLITE, POSTGRESQL, MARIADB)
EVERYWHERE = (PARQUET, *DATABASES)
KNOWING_ZONES = (PARQUET, POSTGRESQL)
"""A time with a zone is one of its types."""
LAKE = (HUDI, *EVERYWHERE)
"""Also a table of a lake, which is cut by the names of partitions."""


@dataclass(frozen=True)
class Shape:
    """`rows`, `other` and `upstream` are queries of DuckDB: of the copy in dc1, of the one in dc2, of the table upstream.

    `local` is SQL over a row that says the local time in whose partition the row lies, NULL where it says none; `event` the
    instant of the row's event as a time in UTC. Both are for the oracle alone: the product is told `column`, `form`, `grain` and
    `event_time`, as an owner would write them.
    """

    rows: str
    column: str = ""
    form: str = ""
    grain: str = "none"
    zone: str = "UTC"
    key: tuple[str, ...] = ("id",)
    event_time: str = ""
    other: str = ""
    upstream: str = ""
    upstream_cut: tuple[str, str, str, str] | None = None
    """Column, form, grain and `local` of an upstream that is cut otherwise."""
    by: str = ""
    """A person's test: completeness for each value of this column."""
    comparable: bool = True
    """False: engines write the key differently, so that records of two copies are not compared."""
    local: str = ""
    offset: str = ""
    """Of hours: how many seconds the clock of `local` is ahead of UTC."""
    event: str = ""
    kinds: tuple[str, ...] = FILES
    table: str = "orders"
    folders: tuple[str, ...] = ()
    """Columns that only the names of folders hold."""
    more: dict[str, Any] = field(default_factory=dict)
    """What else onboarding is told."""
    refused: tuple[str, str] | None = None
    """The field and the sentence with which onboarding refuses it."""
    errors: dict[str, str] = field(default_factory=dict)
    """Tests that cannot be answered, by key, and the cause that is told."""


def series(first: str, last: str, step: str) -> str:
    """A query for times, `ts`, so far apart."""
    return f"SELECT unnest(generate_series(TIMESTAMP '{first}', TIMESTAMP '{last}', INTERVAL '{step}')) AS ts"


def grid(times: str, values: str, *, lost: str = "", doubled: str = "", rows: int = 10) -> str:
    """So many rows for each time, with keys of their own. `lost` has none, and in `doubled` the last has the key of the one before."""
    last = f"ts = TIMESTAMP '{doubled}' AND n = {rows - 1}" if doubled else "false"
    there = f"ts <> TIMESTAMP '{lost}'" if lost else "true"
    return (
        f"SELECT (CASE WHEN {last} THEN {rows - 2} ELSE n END + 1000 * place)::BIGINT AS id, {values} FROM "
        f"(SELECT ts, row_number() OVER (ORDER BY ts) AS place FROM ({times})), range({rows}) AS numbers(n) WHERE {there}"
    )
