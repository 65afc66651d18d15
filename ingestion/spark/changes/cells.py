"""Changes of cells: each is of one column of the source, and gives all columns of the lake that come from there, whatever version it was written by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ingestion.domain.merging.events import Operation
from ingestion.heatpipe.decoder import Decoded
from lakehub.kernel.cells.fields import lake_columns_of


def complete_cells(decoded: Sequence[Decoded], columns: Sequence[str]) -> list[Decoded]:
    """`columns`: of the table. A field that was not known when the cell was written is null: a cell replaces the whole body before it."""
    of_cells = {name: lake_columns_of(columns, name) for name in _cell_columns(decoded)}
    return [
        _complete(each, of_cells[each.source_column]) if each.source_column in of_cells else each for each in decoded
    ]


def siblings_of(decoded: Iterable[Decoded], columns: Sequence[str]) -> Mapping[str, Collection[str]]:
    """By column of the table those that come from the same column of the cells, of those that the changes are of."""
    groups = (lake_columns_of(columns, name) for name in _cell_columns(decoded))
    return {name: group for group in groups for name in group}


def _cell_columns(decoded: Iterable[Decoded]) -> set[str]:
    return {each.source_column for each in decoded if each.source_column}


def _complete(decoded: Decoded, columns: Collection[str]) -> Decoded:
    event = decoded.event
    if event.operation is Operation.DELETE:
        return decoded
    values = {**dict.fromkeys(columns), **event.values}
    return decoded if len(values) == len(event.values) else decoded._replace(event=replace(event, values=values))
