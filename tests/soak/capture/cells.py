"""A table of cells beside the tables: a row comes in pieces, of each of which the newest by its reference key counts, in whatever order they are added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from tests.soak.capture.source import CapturedSource
from tests.soak.capture.tables import comparable

CELLS, CELL_KEY = "profiles", "row_key"
_CREATE = (
    "added_id bigint AUTO_INCREMENT PRIMARY KEY, row_key varchar(20) NOT NULL, column_name varchar(20) NOT NULL, "
    "ref_key bigint NOT NULL, body longtext, UNIQUE KEY (row_key, column_name, ref_key)"
)
_ROWS, _REFERENCES = 200, 100_000
_FIELDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "base": {"city": ("Köln", "😀", "", None), "trips": (0, 7, 2**40, None)},
    "contact": {"mail": ("a@b.c", "it's", None), "score": (0.5, -1e300, None), "is_open": (True, False, None)},
}
"""By column of the cells, the fields of their bodies and what these may have."""


class Cell(NamedTuple):
    row_key: str
    column: str
    ref_key: int


def create_cells(source: CapturedSource, random: Random) -> None:
    source.execute(
        f"CREATE TABLE {CELLS} ({_CREATE})", *(statement for _ in range(40) for statement in add_cells(random))
    )


def add_cells(random: Random) -> Iterator[str]:
    """Of one transaction."""
    for _ in range(random.choice((1, 1, 2, 5))):
        column = random.choice([*_FIELDS])
        values = f"'r{random.randrange(_ROWS)}', '{column}', {random.randrange(_REFERENCES)}, {_body(column, random)}"
        yield f"INSERT IGNORE INTO {CELLS} (row_key, column_name, ref_key, body) VALUES ({values})"


def _body(column: str, random: Random) -> str:
    """In SQL. One in ten deletes what its column has."""
    if random.random() < 0.1:
        return random.choice(("NULL", "'null'"))
    fields = {name: random.choice(values) for name, values in _FIELDS[column].items() if random.random() < 0.8}
    return "'" + json.dumps(fields, ensure_ascii=False).replace("\\", "\\\\").replace("'", "''") + "'"


def cells_of(source: CapturedSource) -> dict[Cell, str | None]:
    """With their bodies."""
    with source.session() as cursor:
        cursor.execute(f"SELECT row_key, column_name, ref_key, body FROM {CELLS}")
        return {Cell(*cell): body for *cell, body in cursor.fetchall()}


def merged(cells: Mapping[Cell, str | None]) -> dict[tuple[str], dict[str, Any]]:
    """The rows that they make."""
    rows: dict[tuple[str], dict[str, Any]] = {}
    for cell, body in sorted(cells.items()):
        # Each replaces the whole body before it.
        fields = json.loads(body or "null") or {}
        row = rows.setdefault((cell.row_key,), {CELL_KEY: cell.row_key})
        row |= {f"{cell.column}__{name}": comparable(fields.get(name)) for name in _FIELDS[cell.column]}
        row[f"{cell.column}__ref_key"] = comparable(cell.ref_key)
    return rows


def cell_problems(logged: Iterable[Cell], there: Iterable[Cell], new: Iterable[Cell]) -> Iterator[str]:
    """`logged`: as often as they are in the changelog. `new`: those of `there` that are to be in it; others may have been loaded."""
    logged = [*logged]
    known = {*there}
    wrong = {"has too often": len(logged) - len({*logged}), "has invented": len({*logged} - known)}
    wrong["lacks"] = len({*new} - {*logged})
    yield from (f"the changelog of {CELLS} {what} {count} cells" for what, count in wrong.items() if count)
