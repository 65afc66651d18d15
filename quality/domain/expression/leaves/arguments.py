"""Reading the arguments of a leaf: a table, a column of a table, or bare column names after a table."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.nodes import Name


def a_table(name: Name, signature: str) -> Name:
    if name.column:
        raise BadArguments(f"A table is wanted, not the column `{name.column}`: {signature}.")
    return name.table


def a_column(name: Name, signature: str) -> tuple[Name, str]:
    if not name.column:
        raise BadArguments(f"A column is wanted, as in {name.dataset}.some_column: {signature}.")
    return name.table, name.column


def bare_columns(names: Sequence[Name], signature: str) -> tuple[str, ...]:
    for name in names:
        if name.column or name.data_center:
            raise BadArguments(f"Only the name of a column is wanted here: {signature}.")
    return tuple(name.dataset for name in names)


def exactly(args: Sequence[Name], least: int, most: int, signature: str) -> None:
    if not least <= len(args) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise BadArguments(f"{len(args)} arguments, {wanted} wanted: {signature}.")
