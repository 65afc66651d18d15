"""Does a table keep cells as they can be captured? Its key, and some bodies, and what to do about each problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import sqlalchemy as sa

from lakehub.kernel.cells.bodies import BrokenBody, read_body
from lakehub.kernel.cells.cell_tables import CellColumns, CellOptions, NotCells, find_cell_columns

_SAMPLE = 100
_COLUMNS = sa.text(
    "SELECT column_name FROM information_schema.columns WHERE table_schema = :database AND table_name = :table ORDER BY ordinal_position"
)
_UNIQUE = sa.text(
    "SELECT index_name, column_name FROM information_schema.statistics "
    "WHERE table_schema = :database AND table_name = :table AND non_unique = 0 AND sub_part IS NULL ORDER BY index_name, seq_in_index"
)


def cell_table_problems(connection: sa.Connection, database: str, table: str, options: CellOptions) -> list[str]:
    """Empty: it can be captured as one of cells."""
    named = {"database": database, "table": table}
    names = [str(name) for name in connection.execute(_COLUMNS, named).scalars()]
    try:
        columns = find_cell_columns(table, names, options)
    except NotCells as problem:
        return [str(problem)]
    keys = [tuple(map(str, row)) for row in connection.execute(_UNIQUE, named)]
    unique = [tuple(column for _, column in rows) for _, rows in groupby(keys, lambda row: row[0])]
    bodies = connection.execute(_sample_query(database, table, columns)).scalars().all()
    return [*_key_problems(database, table, columns, unique), *_body_problems(database, table, columns, bodies)]


def _key_problems(database: str, table: str, columns: CellColumns, unique: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Two cells with one identity would have no order, and without an index by the row key nothing finds the cells of a row."""
    wanted = columns.identity
    if not any(key[0] == wanted[0] and {*key} <= {*wanted} for key in unique):
        parts = ", ".join(f"`{name}`" for name in wanted)
        yield (
            f"The table `{database}.{table}` has no unique key of {parts}: two cells of a row, column and reference key would have no order. "
            f"ALTER TABLE `{database}`.`{table}` ADD UNIQUE KEY ({parts})."
        )


def _body_problems(database: str, table: str, columns: CellColumns, bodies: Sequence[object]) -> Iterator[str]:
    """A few that are broken go to the error table, as they come."""
    reasons = [reason for body in bodies if (reason := _reason_against(body))]
    if reasons and len(reasons) == len(bodies):
        yield (
            f"None of {len(bodies):,} cells of `{database}.{table}` that were looked at has a JSON object in `{columns.body}`. {reasons[0]} "
            "Name the column of the bodies behind the table, as in `table?body=...`; compressed bodies are not read."
        )


def _reason_against(body: object) -> str:
    try:
        read_body(body if body is None or isinstance(body, bytes | str) else str(body))
    except BrokenBody as problem:
        return str(problem)
    return ""


def _sample_query(database: str, table: str, columns: CellColumns) -> sa.Select[tuple[object]]:
    return sa.select(sa.column(columns.body)).select_from(sa.table(table, schema=database)).limit(_SAMPLE)
