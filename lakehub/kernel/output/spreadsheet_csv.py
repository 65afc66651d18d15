"""CSV that is safe to open in a spreadsheet, written line by line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n")


class _EchoFile:
    """A file that hands back what is written to it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """One line a row."""
    writer = csv.writer(_EchoFile())
    return (writer.writerow(row) for row in rows)


def escape_formula(text: str) -> str:
    """What a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA_PREFIXES) else text
