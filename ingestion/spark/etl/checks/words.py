"""How errors say which rows are refused: by a problem and the number of rows that have it, never by their values."""

from __future__ import annotations

from collections.abc import Mapping


def in_rows(counts: Mapping[str, int]) -> str:
    """`counts`: the rows by problem."""
    return ", ".join(f"{problem} in {rows:,} {'row' if rows == 1 else 'rows'}" for problem, rows in counts.items())


def misfits_in_rows(counts: Mapping[str, int], types: Mapping[str, str]) -> str:
    """`counts`: the rows by column whose values do not fit."""
    return in_rows({f"`{name}` does not fit {types[name]}": rows for name, rows in counts.items()})
