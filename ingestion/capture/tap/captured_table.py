"""One table of the source as its changes are captured: which columns, by which version of the schema, under which keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from ingestion.capture.binlog.column_changes import ColumnChange
from ingestion.capture.binlog.column_values import ReadValue, UnfitColumn, lake_type_of, value_reader_of
from ingestion.capture.binlog.events import Row, RowChange
from ingestion.capture.binlog.table_map import MappedColumn, TableMap
from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.capture.tap.position import reference_key, reference_key_after
from ingestion.domain.merging.events import ChangeEvent, Operation, RowKey
from ingestion.domain.schema import Schema
from ingestion.heatpipe.subject_schema import SubjectSchema
from lakehub.kernel.cells.cell_tables import CellOptions
from lakehub.kernel.lake_names import names_unfit_for_the_lake, unfit_names_text

PARTS = 2
"""A row whose key changes is two events, a delete and an insert."""


class NotCaptured(ValueError):
    """A table cannot be captured as it is now; the message says why, and what to do."""


class SchemaVersions(Protocol):
    def version_of(self, subject: str, columns: Schema) -> SubjectSchema:
        """That has these columns; registered where there is none yet. Raises NotCaptured where the subject's rules are against it."""

    def note_changes(self, subject: str, sequence: int, changes: Sequence[ColumnChange]) -> None:
        """Of the table's columns, in the transaction of this number; those that were noted before are noted once."""

    def note_emptied(self, subject: str, sequence: int) -> None:
        """The table, in the transaction of this number."""


@dataclass(frozen=True)
class CaptureSpec:
    """`database`: empty where a server has none: then `table` is a topic. `topic` is the subject of the schema too. `load` counts how often the dataset was loaded whole. `record_key`: of the dataset; empty: the primary key of the table."""

    topic: str
    database: str
    table: str
    load: int = 1
    record_key: tuple[str, ...] = ()
    hidden: HiddenColumns = field(default_factory=HiddenColumns)
    cells: CellOptions | None = None
    """Of a table of cells, each of which is a part of a row; None: each row of the table is one."""
    required: frozenset[str] | None = None
    """Where a value that does not fit becomes null: the columns of which none may, such as those of the key. None: a misfit puts its row aside."""

    follows_truncate: bool = False
    """The rows of the lake go where the table is emptied; otherwise the capture stops."""

    follows_drop: bool = False
    """The same where it is dropped, and rows of one that is made again under its name are captured."""

    stops_at_narrowing: bool = False
    """The capture stops where a column becomes narrower; otherwise it goes on."""

    def may_be_null(self, column: str) -> bool:
        return self.required is not None and column not in self.required


class Transaction(NamedTuple):
    """`at`: when it was committed."""

    sequence: int
    at: datetime


@dataclass
class CapturedTable:
    """By one definition of the table; another one is another CapturedTable."""

    spec: CaptureSpec
    definition: TableMap
    schema: SubjectSchema
    record_key: tuple[str, ...]
    _readers: Mapping[str, ReadValue]
    no_dates: Counter[str] = field(default_factory=Counter)
    """By column, how many dates were none and are null."""
    misfits: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, spec: CaptureSpec, definition: TableMap, versions: SchemaVersions, charsets: Mapping[int, str]
    ) -> CapturedTable:
        """Raises NotCaptured."""
        record_key = spec.record_key or definition.primary_key
        columns = {column.name: column for column in definition.columns if column.name not in spec.hidden.left_out}
        owner = f"The table `{spec.database}.{spec.table}`"
        _check_hidden(owner, spec, record_key, definition)
        _check_names(owner, record_key, columns)
        no_dates = Counter[str]()
        try:
            types = {name: _type_of(column, spec) for name, column in columns.items()}
            readers = {name: _reader_of(column, spec, charsets, no_dates) for name, column in columns.items()}
        except UnfitColumn as problem:
            raise NotCaptured(f"{owner} is not captured: {problem}") from problem
        schema = versions.version_of(spec.topic, Schema.of(types))
        return cls(spec, definition, schema, record_key, readers, no_dates)

    def events(self, transaction: Transaction, number: int, change: RowChange) -> Iterator[ChangeEvent]:
        """`number`: of the row, among those of the table in the transaction. Raises ValueError for a value that its column cannot have."""
        self.misfits.clear()
        before, after = self._values(change.before, self.record_key), self._values(change.after)
        old_key, new_key = self._key(before), self._key(after)
        if old_key is not None and old_key != new_key:
            yield self._event(Operation.DELETE, old_key, before, transaction, number * PARTS)
        if new_key is not None:
            operation = Operation.UPDATE if old_key == new_key else Operation.INSERT
            yield self._event(operation, new_key, after, transaction, number * PARTS + 1)

    def messages_of(self, change: RowChange) -> int:
        """A row whose key changes is two. One whose key cannot be read is put aside."""
        before, after = change
        if before is None or after is None or all(before[name] == after[name] for name in self.record_key):
            return 1
        try:
            return (
                1
                if self._key(self._values(before, self.record_key)) == self._key(self._values(after, self.record_key))
                else PARTS
            )
        except ValueError:
            return 1

    def source_column(self, change: RowChange) -> str:
        """Of a source that changes column by column: none, as each change is of the row."""
        return ""

    def snapshot_event(self, sequence: int, row: Row) -> ChangeEvent:
        """Of a row that was read as it was after a transaction. Raises ValueError for a value that its column cannot have."""
        values = self.values_of(row)
        key, reference = tuple(values[name] for name in self.record_key), reference_key_after(sequence)
        return ChangeEvent(Operation.UPDATE, key, reference, (sequence,), values, self.schema.version)

    def values_of(self, row: Row) -> Mapping[str, Any]:
        """By column of the schema. Raises ValueError for a value that its column cannot have."""
        self.misfits.clear()
        values = self._values(row)
        assert values is not None
        return values

    def _values(self, row: Row | None, names: tuple[str, ...] | None = None) -> Mapping[str, Any] | None:
        if row is None:
            return None
        readers = self._readers
        try:
            values = {
                name: None if row[name] is None else readers[name](row[name])
                for name in (readers if names is None else names)
            }
        except ValueError:
            if names is not None or self.spec.required is None:
                raise
            values = {name: self._value_or_null(name, row[name]) for name in readers}
        return values if names is not None else values | self._gone

    def _value_or_null(self, name: str, value: Any) -> Any:
        try:
            return None if value is None else self._readers[name](value)
        except ValueError as problem:
            if not self.spec.may_be_null(name):
                raise
            self.misfits[name] = f"`{name}` cannot be read: {problem}"
            return None

    @cached_property
    def _gone(self) -> dict[str, Any]:
        """Columns of the schema that the table has no more: null from now on."""
        return dict.fromkeys(name for name in self.schema.columns if name not in self._readers)

    def shown(self, row: Row | None) -> Mapping[str, Any] | None:
        """For a row that is put aside: the values as they would be captured; one that cannot be read as the decoder hands it over, but for what
        nobody may see."""
        if row is None:
            return None
        # Published again, it is to leave no old value in a column that is gone.
        return {name: self._shown(name, row[name]) for name in self._readers} | self._gone

    def _shown(self, name: str, value: Any) -> Any:
        try:
            return None if value is None else self._readers[name](value)
        except ValueError:
            return None if name in self.spec.hidden.names else value

    def _key(self, values: Mapping[str, Any] | None) -> RowKey | None:
        return None if values is None else tuple(values[name] for name in self.record_key)

    def _event(
        self, operation: Operation, key: RowKey, values: Mapping[str, Any] | None, transaction: Transaction, row: int
    ) -> ChangeEvent:
        reference = reference_key(transaction.sequence, row)
        position = (transaction.sequence, row)
        return ChangeEvent(operation, key, reference, position, values or {}, self.schema.version, transaction.at)


def _check_hidden(owner: str, spec: CaptureSpec, record_key: tuple[str, ...], definition: TableMap) -> None:
    """A key says which row it is, also in messages and places that are not hidden. A column that has got another name would be seen under that."""
    hidden, names = spec.hidden, {column.name for column in definition.columns}
    for name in (*record_key, *definition.primary_key):
        if name in hidden.names:
            key = "record key" if name in record_key else "primary key"
            raise NotCaptured(
                f"{owner} is not captured: its column `{name}`, a part of the {key}, is to be {hidden.how(name)}. Take it from that list of the dataset, or "
                "name another key."
            )
    if missing := sorted(hidden.names - names):
        gone = ", ".join(f"`{name}` ({hidden.how(name)})" for name in missing)
        raise NotCaptured(
            f"{owner} is not captured: it does not have {gone} any more, and under another name the values would be seen. Say in the settings of the "
            "dataset which columns are left out, hashed and masked now."
        )


def _check_names(owner: str, record_key: tuple[str, ...], columns: Mapping[str, MappedColumn]) -> None:
    if not record_key:
        raise NotCaptured(
            f"{owner} is not captured: it has no primary key. Give it one, or name a record key that no two rows share."
        )
    for name in record_key:
        if name not in columns:
            raise NotCaptured(f"{owner} is not captured: its column `{name}`, a part of the record key, is not there.")
    if unfit := names_unfit_for_the_lake(columns):
        raise NotCaptured(
            f"{owner} is not captured: {unfit_names_text(unfit)} Rename them, leave them out, or load a view without them by its cursor column, from a "
            "connection with the plug-in `sql`."
        )


def _type_of(column: MappedColumn, spec: CaptureSpec) -> str:
    return "string" if column.name in spec.hidden.hashed else lake_type_of(column)


def _reader_of(
    column: MappedColumn, spec: CaptureSpec, charsets: Mapping[int, str], no_dates: Counter[str]
) -> ReadValue:
    if column.name in spec.hidden.masked:
        return _masked
    read = value_reader_of(column, charsets, no_dates)
    return _hashed(column.name, read, spec.hidden) if column.name in spec.hidden.hashed else read


def _masked(value: Any) -> None:
    return None


def _hashed(name: str, read: ReadValue, hidden: HiddenColumns) -> ReadValue:
    def digest(value: Any) -> str | None:
        try:
            return hidden.digest(read(value))
        except ValueError:
            # What is wrong with it may say what it is.
            raise ValueError(f"that of `{name}`, which is hashed, is none of its type") from None

    return digest
