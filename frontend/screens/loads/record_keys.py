"""Record keys as people paste them: one a line, as a spreadsheet or a client of the database copies them."""

from __future__ import annotations

from collections.abc import Sequence

from lakehub.kernel.errors import Refused


def parse_record_keys(text: str, key_columns: Sequence[str]) -> list[list[str]]:
    """Raises Refused, by the number of the line: what is in it is for members of the team, and a refusal may be logged."""
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise Refused("No record key was given: write one a line.")
    return [_parse_line(number, line, key_columns) for number, line in lines]


def _parse_line(number: int, line: str, key_columns: Sequence[str]) -> list[str]:
    if len(key_columns) == 1:
        return [line]
    values = [value.strip() for value in line.split("\t" if "\t" in line else ",")]
    if len(values) != len(key_columns):
        raise Refused(
            f"Line {number} has {len(values)} values, and the record key has {len(key_columns)}: {', '.join(key_columns)}. "
            "Separate them by commas, or by tabs where a value has a comma."
        )
    return values
