"""A table of cells as a feed names it, and which of its columns is what: by their usual names, or as the feed says behind the table's name.

`trips?row_key=uuid&ref_key=version&delete=removed&text=notes,raw`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from lakehub.kernel.suggest import did_you_mean

_USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "row_key": ("row_key", "rowkey", "row_uuid", "row_id", "uuid"),
    "column": ("column_name", "column_key", "column", "col", "cell_column"),
    "ref_key": ("ref_key", "refkey", "reference_key", "ref", "version"),
    "body": ("body", "cell_body", "payload", "data", "cell", "value", "json"),
}
"""Of the parts of a cell, the likeliest first; case makes no difference."""
_FORM = "Write `table?row_key=...&column=...&ref_key=...&body=...`; what is left out is looked for by its usual names."


class NotCells(ValueError):
    """The table is not one of cells, or the feed does not say so correctly; the message says what to do."""


@dataclass(frozen=True)
class CellOptions:
    """What a feed says behind the name of its table; an empty name: by the usual ones. `delete`: the column whose cells delete their row; `text`: those
    whose bodies are kept as JSON text."""

    row_key: str = ""
    column: str = ""
    ref_key: str = ""
    body: str = ""
    delete: str = ""
    text: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellColumns:
    """The columns of a table of cells, by what they hold."""

    row_key: str
    column: str
    ref_key: str
    body: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.row_key, self.column, self.ref_key, self.body)

    @property
    def identity(self) -> tuple[str, ...]:
        """What no two cells share."""
        return self.names[:3]


def read_cell_object(text: str) -> tuple[str, CellOptions]:
    """The table, and what is said behind it. Raises NotCells."""
    table, _, behind = text.partition("?")
    names = [each.name for each in fields(CellOptions)]
    options = dict[str, str]()
    for part in filter(None, behind.split("&")):
        name, equals, value = part.partition("=")
        if name not in names or not equals or not value or name in options:
            raise NotCells(
                f"`{part}` behind the table `{table}` is not understood, or said twice.{did_you_mean(name, names)} {_FORM}"
            )
        options[name] = value
    as_text = tuple(sorted({each.strip() for each in options.pop("text", "").split(",") if each.strip()}))
    return table, CellOptions(**options, text=as_text)


def table_name_of(text: str) -> str:
    """Without what is said behind it."""
    return text.partition("?")[0]


def find_cell_columns(table: str, names: Iterable[str], options: CellOptions) -> CellColumns:
    """`names`: of the table's columns. Raises NotCells."""
    there = list(names)
    chosen = {part: _chosen(table, there, part, getattr(options, part)) for part in _USUAL_NAMES}
    if len({*chosen.values()}) < len(chosen):
        raise NotCells(f"In the table `{table}` one column cannot be two parts of a cell: {chosen}. {_FORM}")
    return CellColumns(**chosen)


def _chosen(table: str, names: Sequence[str], part: str, named: str) -> str:
    if named:
        if named in names:
            return named
        raise NotCells(
            f"The table `{table}` has no column `{named}`, which the feed names as `{part}`.{did_you_mean(named, names)}"
        )
    by_name = {name.casefold(): name for name in names}
    usual = next((by_name[each] for each in _USUAL_NAMES[part] if each in by_name), None)
    if usual is None:
        looked_for = ", ".join(f"`{each}`" for each in _USUAL_NAMES[part])
        raise NotCells(
            f"The table `{table}` is not known to hold cells: no column for `{part}` has one of the names {looked_for}. {_FORM}"
        )
    return usual


def has_cells(names: Iterable[str]) -> bool:
    """By the usual names."""
    try:
        find_cell_columns("", names, CellOptions())
    except NotCells:
        return False
    return True
