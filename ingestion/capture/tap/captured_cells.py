"""One table of cells as it is captured: each new cell is a partial event of a row, which carries what comes from the cell's column, under its reference key.

The columns of the lake grow with what the bodies have: a field that is new, or needs a wider type, makes another version of the schema from that event on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ingestion.capture.binlog.column_values import ReadValue, UnfitColumn, lake_type_of, value_reader_of
from ingestion.capture.binlog.events import Row, RowChange
from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.tap.captured_table import CaptureSpec, NotCaptured, SchemaVersions, Transaction
from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.domain.schema import Schema
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.subject_schema import SubjectSchema
from lakehub.kernel.cells.bodies import BrokenBody
from lakehub.kernel.cells.cell_rows import Cell, plain_key, read_cell
from lakehub.kernel.cells.cell_tables import CellColumns, CellOptions, NotCells, find_cell_columns
from lakehub.kernel.cells.fields import is_column_of, lake_columns_of, needed_types, read_values

_KEY_TYPES = ("string", "int", "long")
_REF_KEY_TYPES = ("int", "long", "decimal(20,0)")
_BODY_TYPES = ("string", "binary")
_UPDATED = (
    "The cell was changed where it lies, and cells are never changed: the lake keeps what it had. Write the change as a new cell, with a greater "
    "reference key."
)


@dataclass
class CapturedCells:
    """By one definition of the table. `schema` is another one after a cell that needs it."""

    spec: CaptureSpec
    definition: TableMap
    columns: CellColumns
    options: CellOptions
    schema: SubjectSchema
    _key_type: str
    _versions: SchemaVersions
    _readers: Mapping[str, ReadValue]
    _of_column: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By column of the cells those of the lake."""
    misfits: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, spec: CaptureSpec, definition: TableMap, versions: SchemaVersions, charsets: Mapping[int, str]
    ) -> CapturedCells:
        """Raises NotCaptured."""
        assert spec.cells is not None
        owner = f"The table `{spec.database}.{spec.table}`"
        try:
            columns = find_cell_columns(spec.table, [column.name for column in definition.columns], spec.cells)
            mapped = {column.name: column for column in definition.columns if column.name in columns.names}
            types = {name: lake_type_of(column) for name, column in mapped.items()}
            readers = {name: value_reader_of(column, charsets, Counter()) for name, column in mapped.items()}
        except (NotCells, UnfitColumn) as problem:
            raise NotCaptured(f"{owner} is not captured: {problem}") from problem
        key_type = _checked_types(owner, columns, types)
        if spec.record_key not in ((), (columns.row_key,)):
            raise NotCaptured(
                f"{owner} is not captured: the record key of the dataset is {', '.join(spec.record_key)}, and its rows are named by `{columns.row_key}`."
            )
        schema = versions.version_of(spec.topic, Schema.of({columns.row_key: key_type}))
        return cls(spec, definition, columns, spec.cells, schema, key_type, versions, readers)

    @property
    def record_key(self) -> tuple[str, ...]:
        return (self.columns.row_key,)

    def events(self, transaction: Transaction, number: int, change: RowChange) -> Iterator[ChangeEvent]:
        """None of a cell that was purged. Raises UnfitEvent, NotCaptured."""
        self.misfits.clear()
        if change.after is None:
            return
        if change.before is not None:
            if self.shown(change.before) != self.shown(change.after):
                raise UnfitEvent(Defect.CORRUPT, _UPDATED, self.columns.body)
            return
        yield self.event_of(self.cell_of(change.after), transaction)

    def messages_of(self, change: RowChange) -> int:
        """None of a cell that was purged, or written as it was; one that was changed is put aside."""
        before, after = change
        if before is None or after is None:
            return int(after is not None)
        try:
            return int(self.shown(before) != self.shown(after))
        except ValueError:
            return 1

    def source_column(self, change: RowChange) -> str:
        """Of the cells; empty where it cannot be read."""
        column = None if change.after is None else self._read(change.after).get("column")
        return column if isinstance(column, str) else ""

    def event_of(self, cell: Cell, transaction: Transaction) -> ChangeEvent:
        """By a version of the schema that has room for it. Raises UnfitEvent, NotCaptured."""
        key, position = {self.columns.row_key: cell.row_key}, (transaction.sequence,)
        is_deleted = cell.column == self.options.delete
        operation = Operation.DELETE if is_deleted else Operation.UPDATE
        values = key if is_deleted else key | self.values_of(cell)
        return ChangeEvent(
            operation, (cell.row_key,), cell.ref_key, position, values, self.schema.version, transaction.at
        )

    def values_of(self, cell: Cell) -> dict[str, Any]:
        """All lake columns of the cell's column, null where the body lacks them. Raises UnfitEvent, NotCaptured."""
        self.misfits.clear()
        try:
            self._refuse_key_name(cell.column)
            types, fields = self._types_of(cell.column, cell.fields(self.options))
        except BrokenBody as problem:
            raise _unfit(problem) from problem
        self.take_types(types)
        return dict.fromkeys(self._columns_of(cell.column)) | read_values(types, fields)

    def _types_of(self, column: str, fields: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, Any]]:
        """That have room for the fields, and the fields, some of which may be null instead. Raises BrokenBody."""
        while True:
            try:
                return needed_types(self.types, column, fields), fields
            except BrokenBody as problem:
                is_type, name = problem.defect == Defect.TYPE.value, problem.field
                if not is_type or not self.spec.may_be_null(name) or fields.get(name) is None:
                    raise
                self.misfits[name], fields = str(problem), {**fields, name: None}

    def _columns_of(self, column: str) -> tuple[str, ...]:
        if column not in self._of_column:
            self._of_column[column] = lake_columns_of(self.types, column)
        return self._of_column[column]

    def sampled_types(self, sample: Iterable[Row]) -> Mapping[str, str]:
        """Of the columns that the schema has, and those that cells of the sample need besides."""
        types = self.types
        for row in sample:
            try:
                cell = self.cell_of(row)
                if cell.column != self.options.delete:
                    self._refuse_key_name(cell.column)
                    types = needed_types(types, cell.column, cell.fields(self.options))
            except (BrokenBody, UnfitEvent):
                continue
        return types

    def take_types(self, types: Mapping[str, str]) -> None:
        """Raises NotCaptured."""
        if types is not self.types and dict(types) != dict(self.types):
            self.schema = self._versions.version_of(self.spec.topic, Schema.of(types))
            self.__dict__.pop("types", None)
            self._of_column.clear()

    def _refuse_key_name(self, column: str) -> None:
        if is_column_of(self.columns.row_key, column):
            raise BrokenBody(
                "field", f"The cells of the column `{column}` have the name of the row key `{self.columns.row_key}`."
            )

    @cached_property
    def types(self) -> Mapping[str, str]:
        """By lake column."""
        return self.schema.row_columns.types

    def cell_of(self, row: Row) -> Cell:
        """Raises UnfitEvent."""
        try:
            parts = self._read(row)
            return read_cell(parts["row_key"], parts["column"], parts["ref_key"], parts["body"], self.options)
        except BrokenBody as problem:
            raise _unfit(problem) from problem

    def shown(self, row: Row | None) -> Mapping[str, Any] | None:
        """For a cell that is put aside: its parts, by their own names whatever the table calls them."""
        return None if row is None else self._read(row)

    def _read(self, row: Row) -> dict[str, Any]:
        """What cannot be read is as the decoder hands it over."""
        parts = ("row_key", "column", "ref_key", "body")
        values = {part: self._value(name, row[name]) for part, name in zip(parts, self.columns.names, strict=True)}
        key, ref_key = values["row_key"], values["ref_key"]
        column = _column_text(values["column"])
        return values | {
            "row_key": plain_key(key),
            "column": column,
            "ref_key": None if ref_key is None else int(ref_key),
        }

    def _value(self, name: str, value: Any) -> Any:
        try:
            return None if value is None else self._readers[name](value)
        except ValueError:
            return value


def _checked_types(owner: str, columns: CellColumns, types: Mapping[str, str]) -> str:
    """The type of the row key in the lake. Raises NotCaptured."""
    key_type = "string" if types[columns.row_key] == "binary" else types[columns.row_key]
    allowed = (
        (columns.row_key, key_type, _KEY_TYPES, "a text, bytes or a whole number"),
        (columns.column, types[columns.column], _BODY_TYPES, "a text"),
        (columns.ref_key, types[columns.ref_key], _REF_KEY_TYPES, "a whole number, such as BIGINT"),
        (columns.body, types[columns.body], _BODY_TYPES, "a text or bytes, such as JSON or LONGTEXT"),
    )
    for name, type_, fit, words in allowed:
        if type_ not in fit:
            raise NotCaptured(
                f"{owner} is not captured: its column `{name}` is {type_} in the lake, and this part of a cell is {words}. Name another column behind the "
                "table in the feed."
            )
    return key_type


def _column_text(column: Any) -> Any:
    return column.decode(errors="surrogateescape") if isinstance(column, bytes) else column


def _unfit(problem: BrokenBody) -> UnfitEvent:
    return UnfitEvent(Defect(problem.defect), str(problem), problem.field)
