"""A cell that was put aside, mended: the event that it makes by the newest version of the schema, under the reference key that it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.subject_schema import SubjectSchema
from lakehub.kernel.cells.bodies import BrokenBody
from lakehub.kernel.cells.cell_rows import Cell, read_cell
from lakehub.kernel.cells.cell_tables import CellOptions
from lakehub.kernel.cells.fields import lake_columns_of, needed_types, read_values

PARTS = ("row_key", "column", "ref_key", "body")


def mended_cell(values: Mapping[str, Any], options: CellOptions) -> Cell:
    """`values`: the parts of the cell by their names, the body as JSON text, or as what it says. Raises UnfitEvent."""
    others = sorted(values.keys() - {*PARTS})
    if others:
        reason = f"A cell has the parts {', '.join(PARTS)}, and no `{others[0]:.80}`. To mend its fields replay it with another `body`."
        raise UnfitEvent(Defect.FIELD, reason, others[0])
    row_key, column, ref_key, body = (values.get(part) for part in PARTS)
    text = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
    try:
        return read_cell(row_key, column, ref_key, text, options)
    except BrokenBody as problem:
        raise _unfit(problem) from problem


def event_of_cell(
    cell: Cell, schema: SubjectSchema, row_key: str, options: CellOptions, committed_at: datetime | None
) -> ChangeEvent:
    """`row_key`: the name of its column. Raises UnfitEvent, also for a field that no version of the schema has yet."""
    values: dict[str, Any] = {row_key: cell.row_key}
    operation = Operation.DELETE if cell.column == options.delete else Operation.UPDATE
    if operation is Operation.UPDATE:
        known = schema.row_columns.types
        values |= dict.fromkeys(lake_columns_of(known, cell.column)) | _fields(cell, known, options)
    return ChangeEvent(operation, (cell.row_key,), cell.ref_key, (0,), values, schema.version, committed_at)


def _fields(cell: Cell, known: Mapping[str, str], options: CellOptions) -> dict[str, Any]:
    try:
        fields = cell.fields(options)
        needed = needed_types(known, cell.column, fields)
    except BrokenBody as problem:
        raise _unfit(problem) from problem
    for name, type_ in needed.items():
        if known.get(name) != type_:
            there = f"has the type {known[name]}" if name in known else "is not there"
            reason = f"`{name}` {there}, and the cell needs {type_}: new columns and types come with new cells. Write a new cell."
            raise UnfitEvent(Defect.FIELD, reason, name)
    return read_values(known, fields)


def _unfit(problem: BrokenBody) -> UnfitEvent:
    return UnfitEvent(Defect(problem.defect), str(problem), problem.field)
