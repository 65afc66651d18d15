"""Cells put together: of each row the newest cell of each of its columns, whatever the order in which they come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from lakehub.kernel.cells.bodies import Body, BrokenBody, read_body
from lakehub.kernel.cells.cell_tables import CellOptions
from lakehub.kernel.cells.fields import check_column_name, fields_of, needed_types

_UUID_BYTES = 16
SAMPLE_CELLS, MAX_SAMPLED_BYTES = 1_000, 64 * 1024
"""Of each end of a table, to see what bodies have; of a body that is looked at so."""


class Cell(NamedTuple):
    """`body`: as it was read; None: the cell deletes what its column has."""

    row_key: Any
    column: str
    ref_key: int
    body: Body | None

    def fields(self, options: CellOptions) -> dict[str, Any]:
        """By lake column. Raises BrokenBody."""
        return fields_of(self.column, self.body, self.ref_key, as_text=self.column in options.text)


def plain_key(row_key: Any) -> Any:
    """As the lake has it: of 16 bytes as a UUID is written, others in hexadecimal digits; texts and numbers as they are."""
    if not isinstance(row_key, bytes):
        return row_key
    return str(UUID(bytes=row_key)) if len(row_key) == _UUID_BYTES else row_key.hex()


def read_cell(row_key: Any, column: Any, ref_key: Any, body: Any, options: CellOptions) -> Cell:
    """Of values that a server hands over. Raises BrokenBody."""
    if row_key is None or row_key == "":
        raise BrokenBody("row_key", "The cell has no row key.")
    if isinstance(row_key, str):
        _check_text("row key", row_key)
    if not isinstance(column, str) or not column:
        raise BrokenBody("field", "The cell does not say its column.")
    _check_text("column", column)
    if column != options.delete:
        check_column_name(column)
    if not isinstance(ref_key, int) or not -(2**63) <= ref_key < 2**63:
        raise BrokenBody(
            "reference_key", f"The reference key of the cell is {ref_key!r:.60}: a 64-bit integer is needed."
        )
    return Cell(row_key, column, ref_key, None if column == options.delete else read_body(body))


def _check_text(part: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise BrokenBody(
            "invalid_utf8", f"The {part} of the cell is not a text of its character set: {text!r:.80}.", part
        ) from problem


class CellRow(NamedTuple):
    """`columns`: the newest cell of each. `deleted`: the reference key of the newest cell that deletes the row; None: there is none."""

    columns: Mapping[str, Cell]
    deleted: int | None

    @property
    def is_there(self) -> bool:
        return bool(self.columns)


def assembled(cells: Iterable[Cell], options: CellOptions) -> dict[Any, CellRow]:
    """By row key. A cell that deletes its row leaves what has a greater reference key."""
    newest: dict[Any, dict[str, Cell]] = defaultdict(dict)
    for cell in cells:
        of_row = newest[cell.row_key]
        if cell.column not in of_row or cell.ref_key > of_row[cell.column].ref_key:
            of_row[cell.column] = cell
    return {key: _row(of_row, options) for key, of_row in newest.items()}


def _row(newest: dict[str, Cell], options: CellOptions) -> CellRow:
    grave = newest.pop(options.delete, None)
    deleted = None if grave is None else grave.ref_key
    left = {name: cell for name, cell in newest.items() if deleted is None or cell.ref_key > deleted}
    return CellRow(left, deleted)


def sampled_types(key: str, key_type: str, cells: Iterable[Cell], options: CellOptions) -> Mapping[str, str]:
    """Of the columns of the lake, in the order in which they are met; cells that have no place are passed over."""
    types: Mapping[str, str] = {key: key_type}
    for cell in cells:
        if cell.column == options.delete:
            continue
        try:
            types = needed_types(types, cell.column, cell.fields(options))
        except BrokenBody:
            continue
    return types
