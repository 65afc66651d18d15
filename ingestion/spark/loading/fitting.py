"""Make rows fit a schema: whole columns at a time with Arrow, value by value only in a column of a chunk that does not cast.

What does not fit is no loss and no crash: the row goes to the error table with the column and the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.capture.null_instead import null_reason
from ingestion.domain.column_types import parse_type
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk
from ingestion.spark.file_groups.arrow_types import arrow_type
from ingestion.spark.loading.casting import python_value
from ingestion.spark.loading.column_fitting import Misfits, fit_column
from ingestion.spark.loading.partition_names import partition_names
from ingestion.spark.loading.raw_rows.as_json import raw_row_json
from lakehub.kernel.lake_names import names_fit_for_the_lake
from lakehub.kernel.partitions.form import PartitionForm

MAX_NAME_BYTES = 255
"""Of a folder, on the file systems that there are."""
MAX_KEY_BYTES = 30_000
"""Of the values of a record key; their names come on top."""
PLACEHOLDERS = ("__empty__", "__null__")
"""Hudi writes them into a key of several columns."""
_MAX_SHOWN = 300
"""Characters of a name that is too long."""


@dataclass(frozen=True)
class FitRules:
    """`required` columns (keys, partition, reference key) hold no null; the partition's value names a folder. `record_key`: the columns by
    which Hudi names a row in one text. It refuses an empty one; none is longer than its index can hold, and two keys may not have the same.

    With a `partition_form` the partition column is made from the columns that say the partition; `only` are the names of those
    that are wanted (None: all).
    """

    schema: Schema
    required: tuple[str, ...] = ()
    partition_column: str | None = None
    partition_form: PartitionForm | None = None
    only: frozenset[str] | None = None
    record_key: tuple[str, ...] = ()
    is_captured: bool = False
    """Changes find rows by their keys as texts, which an empty part has not."""
    nulls_misfits: bool = False
    """A value that does not fit is null, and noted, where its row can be stored without it."""

    @property
    def whole_columns(self) -> frozenset[str]:
        """A row is not stored without their values."""
        names = (*self.required, *self.record_key, *(self.partition_form.columns if self.partition_form else ()))
        return frozenset((*names, METADATA_COLUMN))


@dataclass(frozen=True)
class RejectedRow:
    """A row that was read but cannot be stored. `raw` is the row as JSON, or the text that was no row at all; `row` is its place in the
    chunk, None for such a text."""

    column: str
    reason: str
    raw: str
    row: int | None = None


@dataclass(frozen=True)
class FitResult:
    """`misplaced`: the values that are no partition, with their number of rows, which are rejected; `skipped` rows are of
    partitions that are not wanted; `nulls`: by required column the rows that are rejected since it is null there. `nulled`: of rows that are stored, with
    null in place of values that do not fit."""

    rows: pa.Table
    rejected: tuple[RejectedRow, ...]
    misplaced: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0
    nulls: Mapping[str, int] = field(default_factory=dict)
    nulled: tuple[RejectedRow, ...] = ()


def fit_rows(chunk: Chunk, rules: FitRules) -> FitResult:
    """The rows that fit, with exactly the schema's columns, and the others with the first reason against each."""
    reasons: Misfits = {}
    nulled: dict[int, list[tuple[str, str]]] = defaultdict(list)
    arrays = [
        _fit_or_null(chunk, column, nulled)
        if rules.nulls_misfits and column.name not in rules.whole_columns
        else _fit_column(chunk, column.name, column.type, reasons)
        for column in rules.schema
    ]
    table = pa.table(arrays, names=list(rules.schema.names))
    misplaced = Counter[str]()
    if rules.partition_form is not None and rules.partition_column is not None:
        table = _with_partition(table, chunk, rules.partition_column, rules.partition_form, reasons, misplaced)
    nulls = _reject_nulls(table, rules.required, reasons)
    _reject_empty_keys(table, rules, reasons)
    _reject_long_keys(table, rules.record_key, reasons)
    _reject_ambiguous_keys(table, rules.record_key, reasons)
    _reject_bad_partition_values(table, rules.partition_column, reasons)
    _reject_unknown_columns(chunk, rules.schema, reasons)
    unwanted = _unwanted_rows(table, rules)
    misfits = tuple(
        RejectedRow(column, reason, raw_row_json(chunk, row), row)
        for row, (column, reason) in sorted(reasons.items())
        if row not in unwanted
    )
    broken = tuple(RejectedRow("", unreadable_row.reason, unreadable_row.raw) for unreadable_row in chunk.unreadable)
    kept = _without_rows(table, reasons.keys() | unwanted)
    notes = (
        *_notes(chunk, nulled, without=reasons.keys() | unwanted),
        *(RejectedRow(each.column, each.reason, each.raw) for each in chunk.nulled),
    )
    return FitResult(kept, misfits + broken, {} if rules.only is not None else misplaced, len(unwanted), nulls, notes)


def _fit_column(chunk: Chunk, name: str, type_: str, misfits: Misfits) -> pa.Array:
    values = chunk.columns.get(name)
    if values is None:
        return pa.nulls(chunk.rows, arrow_type(type_))
    return fit_column(values, parse_type(type_), name, misfits)


def _fit_or_null(chunk: Chunk, column: SchemaColumn, nulled: dict[int, list[tuple[str, str]]]) -> pa.Array:
    """Null as a whole where a part of it does not fit."""
    misfits: Misfits = {}
    array = _fit_column(chunk, column.name, column.type, misfits)
    if not misfits:
        return array
    for row, misfit in misfits.items():
        nulled[row].append(misfit)
    values = [None if row in misfits else value for row, value in enumerate(chunk.columns[column.name])]
    return fit_column(values, parse_type(column.type), column.name, {})


def _notes(
    chunk: Chunk, nulled: Mapping[int, Sequence[tuple[str, str]]], *, without: Collection[int]
) -> Iterator[RejectedRow]:
    for row, misfits in sorted(nulled.items()):
        if row not in without:
            reason = null_reason([reason for _, reason in misfits])
            yield RejectedRow(misfits[0][0], reason, raw_row_json(chunk, row), row)


def _reject_nulls(table: pa.Table, required: Collection[str], reasons: Misfits) -> Mapping[str, int]:
    """How many rows each of the columns rejects; a row counts for the first column that is against it."""
    rejected = Counter[str]()
    for name in required:
        if table[name].null_count:
            for row in pc.indices_nonzero(table[name].is_null()).to_pylist():
                rejected[name] += row not in reasons
                reasons.setdefault(row, (name, f"`{name}` is null, but it is a key"))
    return rejected


def _reject_empty_keys(table: pa.Table, rules: FitRules, reasons: Misfits) -> None:
    """Hudi takes an empty text for a missing one where it is the whole key, and in each part of a key of a table without partitions."""
    key = rules.record_key
    if len(key) > 1 and rules.partition_column is not None and not rules.is_captured:
        return
    why = "it is the whole key" if len(key) == 1 else "it is a part of the key of a table without partitions"
    why = "it is a part of the key of a captured table" if len(key) > 1 and rules.is_captured else why
    for column in _texts(table, key):
        for row in pc.indices_nonzero(pc.equal(table[column], "")).to_pylist():
            reasons.setdefault(row, (column, f"`{column}` is an empty text, but {why}"))


def _texts(table: pa.Table, columns: Iterable[str]) -> list[str]:
    return [column for column in columns if pa.types.is_string(table[column].type)]


def _reject_long_keys(table: pa.Table, record_key: Sequence[str], reasons: Misfits) -> None:
    """A single one of them would damage the record index, which has 15 bits for the length of a key, and with it the table."""
    texts = [name for name in record_key if table[name].type in (pa.string(), pa.binary())]
    if not texts:
        return
    lengths = reduce(pc.add, (pc.fill_null(pc.binary_length(table[name]), 0) for name in texts))
    for row in pc.indices_nonzero(pc.greater(lengths, MAX_KEY_BYTES)).to_pylist():
        reason = f"`{texts[0]}` makes a record key of {lengths[row].as_py():,} bytes: it has {MAX_KEY_BYTES:,} at most"
        reasons.setdefault(row, (texts[0], reason))


def _reject_ambiguous_keys(table: pa.Table, key: Sequence[str], reasons: Misfits) -> None:
    """Hudi writes a key of several columns as `a:1,b:2`. So a value of `a` that has `,b:` in it may make the text of another key."""
    for column, following in pairwise(key):
        separator = f",{following}:"
        if not pa.types.is_string(table[column].type):
            continue
        for row in pc.indices_nonzero(pc.fill_null(pc.match_substring(table[column], separator), False)).to_pylist():
            reason = f"`{column}` has the text `{separator}` in it, which separates the columns of a key"
            reasons.setdefault(row, (column, reason))
    for column in _texts(table, key) if len(key) > 1 else ():
        stands_for = pc.is_in(table[column], pa.array(PLACEHOLDERS))
        for row in pc.indices_nonzero(stands_for).to_pylist():
            reason = f"`{column}` is {table[column][row].as_py()!r}, which stands for a missing part of a key"
            reasons.setdefault(row, (column, reason))


def _reject_bad_partition_values(table: pa.Table, column: str | None, reasons: Misfits) -> None:
    """A single one of them would stop the whole batch: Hudi takes what is before a colon for the scheme of a URI."""
    if column is None:
        return
    values, most = table[column], MAX_NAME_BYTES - len(f"{column}=".encode())
    unfit = pc.or_(pc.match_substring_regex(values, r"^$|[/:\x00]"), pc.greater(pc.binary_length(values), most))
    for row in pc.indices_nonzero(pc.fill_null(unfit, False)).to_pylist():
        shown = repr(values[row].as_py()[:_MAX_SHOWN])
        rule = f"is not empty, has no slash, colon or NUL, and at most {most} bytes"
        reasons.setdefault(row, (column, f"`{column}` is {shown}: a partition's name {rule}"))


def _reject_unknown_columns(chunk: Chunk, schema: Schema, reasons: Misfits) -> None:
    """A value in a column that nobody knows would be lost in silence."""
    unknown = sorted(set(chunk.columns) - set(schema.names))
    fitting = frozenset(names_fit_for_the_lake(unknown, schema.names)) if unknown else frozenset()
    for name in unknown:
        why = "" if name in fitting else f"the lake cannot hold the name `{name}`, so "
        for row, value in enumerate(chunk.columns[name]):
            if python_value(value) is not None:
                reasons.setdefault(row, (name, f"{why}`{name}` is no column of the source's schema"))


def _with_partition(
    table: pa.Table,
    chunk: Chunk,
    target: str,
    form: PartitionForm,
    reasons: Misfits,
    misplaced: Counter[str],
) -> pa.Table:
    names = partition_names([table[column] for column in form.columns], chunk.columns.get(form.columns[0]), form)
    for row in pc.indices_nonzero(names.is_null()).to_pylist():
        if row in reasons:
            continue
        values = [table[column][row].as_py() for column in form.columns]
        value = "/".join(map(str, values))[:200]
        misplaced[value] += 1
        shown = "null" if values == [None] else repr(value)
        reasons[row] = (form.columns[0], f"`{form.columns[0]}` is {shown}, which is no {form.grain}")
    return table.set_column(table.schema.get_field_index(target), target, names)


def _unwanted_rows(table: pa.Table, rules: FitRules) -> frozenset[int]:
    if rules.only is None or rules.partition_column is None:
        return frozenset()
    wanted = pc.is_in(table[rules.partition_column], pa.array(sorted(rules.only), pa.string()))
    return frozenset(pc.indices_nonzero(pc.invert(wanted)).to_pylist())


def _without_rows(table: pa.Table, rows: Collection[int]) -> pa.Table:
    if not rows:
        return table
    keep_mask = [True] * table.num_rows
    for row in rows:
        keep_mask[row] = False
    return table.filter(pa.array(keep_mask))
