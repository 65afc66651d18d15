"""A base file written anew with some of its rows changed, column by column by Arrow, which takes a fraction of what record by record does.

The file is as Hudi would leave it: the rows in their order and new ones behind them, Hudi's own columns, and what it keeps in a footer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from ingestion.spark.tables.hudi import META_COLUMNS

_INSTANT, _SEQUENCE, KEY, _PARTITION, _FILE = META_COLUMNS
REMOVED = "_lakehub_removed"
_META = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)
_LEAST_KEY, _GREATEST_KEY = b"hoodie_min_record_key", b"hoodie_max_record_key"
BLOOM_FILTER, FILTER_TYPE = b"org.apache.hudi.bloomfilter", b"hoodie_bloom_filter_type_code"
AVRO_SCHEMA = b"parquet.avro.schema"
_OWN_FOOTER = (b"hoodie", b"org.apache.hudi")
"""Others describe the columns, as the one that wrote the old file had them."""
_WIDENINGS = {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}
_NUMBERED_TEXTS = pa.dictionary(pa.int32(), pa.string())
_REPEATED_BYTES = 4
"""A text column that takes fewer bytes a row says the same again and again: its texts are read and written once, and numbered."""
_MANY_BYTES = 2**40
Row = Mapping[str, Any]


class RowsNotMet(RuntimeError):
    """A file does not hold each of the rows once that are to be changed in it."""


@dataclass(frozen=True)
class FileRewrite:
    """What becomes of a file of `partition`, the `number`-th of the commit `instant`. `old` and `new` are paths in the file system.

    `changed`: tables of rows as they will be, with their KEY and whether they are REMOVED; each key once. `added`: rows that the file does not have, with their KEY.
    Both have all `columns` besides. `footer`: in place of what the old file's says under the same names.
    """

    old: str
    new: str
    partition: str
    instant: str
    number: int
    columns: pa.Schema
    changed: pa.Table
    added: pa.Table
    footer: Mapping[bytes, bytes] = field(default_factory=dict)


def rows_by_key(rows: Mapping[str, Row | None], columns: pa.Schema) -> pa.Table:
    """As a rewrite takes them: of each key a row with all `columns`, in which dates are days and timestamps microseconds since 1970; None: it is removed."""
    values = [[None if row is None else row[name] for row in rows.values()] for name in columns.names]
    arrays = [
        pa.array([*rows], pa.string()),
        pa.array([row is None for row in rows.values()], pa.bool_()),
        *(pa.array(each, type_) for each, type_ in zip(values, columns.types, strict=True)),
    ]
    return pa.table(arrays, schema=pa.schema([(KEY, pa.string()), (REMOVED, pa.bool_()), *columns]))


class StoredFooter(NamedTuple):
    """`own`: what Hudi keeps in the footer of a file of so many `rows`."""

    rows: int
    own: Mapping[bytes, bytes]


def footer_to_rewrite(filesystem: fs.FileSystem, path: str, columns: pa.Schema) -> StoredFooter | None:
    """None: the file has columns that the table lacks, or in types that may not become the table's without a
    loss, and Hudi writes it anew."""
    with filesystem.open_input_file(path) as opened:
        parquet = pq.ParquetFile(opened)
        stored, rows = parquet.schema_arrow, parquet.metadata.num_rows
    types = {field.name: field.type for field in (*_META, *columns)}
    if not {*META_COLUMNS} <= {*stored.names} <= types.keys():
        return None
    return (
        StoredFooter(rows, _footer(stored))
        if all(_becomes(field.type, types[field.name]) for field in stored)
        else None
    )


def rewrite_file(filesystem: fs.FileSystem, rewrite: FileRewrite) -> int:
    """How many rows the new file has. Raises RowsNotMet."""
    with filesystem.open_input_file(rewrite.old) as opened:
        metadata = pq.read_metadata(opened)
        parquet = pq.ParquetFile(opened, metadata=metadata, read_dictionary=_repeated_texts(metadata))
        schema, rows = _schema(parquet.schema_arrow, rewrite), _Rows(rewrite)
        with filesystem.open_output_stream(rewrite.new) as sink, _writer(sink, schema, metadata) as writer:
            for group in range(parquet.num_row_groups - 1):
                writer.write_table(rows.changed(_read_group(parquet, group, schema)))
            last = _read_group(parquet, parquet.num_row_groups - 1, schema) if parquet.num_row_groups else None
            # A file all of whose rows were removed has no group of rows.
            writer.write_table(rows.last(schema.empty_table() if last is None else rows.changed(last)))
            writer.add_key_value_metadata(_new_footer(parquet.schema_arrow, rewrite))
    rows.check_all_met()
    return rows.written


def _becomes(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whatever the elements of lists are called, and whatever may be null."""
    if pa.types.is_list(stored) and pa.types.is_list(wanted):
        return _becomes(stored.value_type, wanted.value_type)
    if pa.types.is_struct(stored) and pa.types.is_struct(wanted):
        ours, theirs = [*stored], [*wanted]
        return [each.name for each in ours] == [each.name for each in theirs] and all(
            _becomes(our.type, their.type) for our, their in zip(ours, theirs, strict=True)
        )
    return bool(stored == wanted) or (stored, wanted) in _WIDENINGS


def _footer(stored: pa.Schema) -> dict[bytes, bytes]:
    return {name: value for name, value in (stored.metadata or {}).items() if name.startswith(_OWN_FOOTER)}


def _repeated_texts(metadata: pq.FileMetaData) -> list[str]:
    """Columns of a few texts that are there again and again."""
    bytes_of: Counter[str] = Counter()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            is_text = chunk.physical_type == "BYTE_ARRAY" and "." not in chunk.path_in_schema
            is_numbered = is_text and chunk.has_dictionary_page
            bytes_of[chunk.path_in_schema] += chunk.total_uncompressed_size if is_numbered else _MANY_BYTES
    return sorted(name for name, size in bytes_of.items() if size < _REPEATED_BYTES * metadata.num_rows)


def _schema(stored: pa.Schema, rewrite: FileRewrite) -> pa.Schema:
    """Of the new file."""
    numbered = {_FILE, *(each.name for each in stored if each.type == _NUMBERED_TEXTS)}
    fields = [
        each.with_type(_NUMBERED_TEXTS) if each.name in numbered and each.type == pa.string() else each
        for each in (*_META, *rewrite.columns)
    ]
    return pa.schema(fields)


def _new_footer(stored: pa.Schema, rewrite: FileRewrite) -> dict[bytes, bytes]:
    footer = _footer(stored)
    known = [footer[name].decode() for name in (_LEAST_KEY, _GREATEST_KEY) if name in footer]
    if keys := [*known, *rewrite.added[KEY].to_pylist()]:
        # Of keys that were removed they may stay: between them are all that there are.
        footer[_LEAST_KEY], footer[_GREATEST_KEY] = (end(keys, key=_order_of_java).encode() for end in (min, max))
    return {**footer, **rewrite.footer}


def _order_of_java(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _writer(sink: pa.NativeFile, schema: pa.Schema, old: pq.FileMetaData) -> pq.ParquetWriter:
    # Arrow would keep a dictionary of values that are all different: twice the bytes.
    plain = _plain_columns(old)
    numbered = [path for each in schema for path in _leaves(each.name, each.type) if path not in plain]
    return pq.ParquetWriter(
        sink, schema, compression="zstd", compression_level=3, use_dictionary=numbered, store_schema=False
    )


def _leaves(path: str, type_: pa.DataType) -> Iterator[str]:
    """The columns of a Parquet file that a column is stored in."""
    if pa.types.is_struct(type_):
        for each in type_:
            yield from _leaves(f"{path}.{each.name}", each.type)
    elif pa.types.is_list(type_):
        yield from _leaves(f"{path}.list.element", type_.value_type)
    else:
        yield path


def _plain_columns(old: pq.FileMetaData) -> set[str]:
    """Those of whose values a dictionary was not worth while."""
    groups = map(old.row_group, range(old.num_row_groups))
    chunks = (group.column(place) for group in groups for place in range(group.num_columns))
    return {chunk.path_in_schema for chunk in chunks if not chunk.has_dictionary_page and not _is_empty(chunk)}


def _is_empty(chunk: pq.ColumnChunkMetaData) -> bool:
    statistics = chunk.statistics
    return statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values


def _read_group(parquet: pq.ParquetFile, group: int, schema: pa.Schema) -> pa.Table:
    there = [name for name in schema.names if name in parquet.schema_arrow.names and name != _FILE]
    rows = parquet.read_row_group(group, columns=there)
    columns = [
        rows[each.name].cast(each.type) if each.name in there else pa.nulls(rows.num_rows, each.type) for each in schema
    ]
    return pa.table(columns, schema=schema)


class _Rows:
    """Of one file, row group by row group: as they will be, how many were met of those that change, and how many are written."""

    def __init__(self, rewrite: FileRewrite) -> None:
        self._rewrite, self._wanted = rewrite, rewrite.changed[KEY].combine_chunks()
        self.written = self._met = self._numbered = 0

    def changed(self, group: pa.Table) -> pa.Table:
        places = pc.index_in(group[KEY], self._wanted).combine_chunks()
        met = len(places) - places.null_count
        self._met += met
        rows = self._with_changes(group, places) if met else group
        self.written += rows.num_rows
        return self._of_new_file(rows)

    def last(self, group: pa.Table) -> pa.Table:
        """With the rows that are added."""
        added = self._rewrite.added
        if not added.num_rows:
            return group
        self.written += added.num_rows
        return _joined(group, self._of_new_file(self._with_own_columns(added, group.schema)))

    def check_all_met(self) -> None:
        if self._met != (expected := self._rewrite.changed.num_rows):
            raise RowsNotMet(
                f"{self._rewrite.old} holds {self._met} rows with {expected} keys that are to be changed in it. Nothing was committed. "
                "Bootstrap the dataset with `replace`."
            )

    def _with_changes(self, group: pa.Table, places: pa.Array) -> pa.Table:
        """`places`: of each row of the group, in what changes; null: it stays as it is."""
        at = np.asarray(pc.indices_nonzero(pc.is_valid(places)))
        changes = self._rewrite.changed.take(places.drop_null())
        is_removed = changes[REMOVED].to_numpy()
        updated = changes.filter(pc.invert(changes[REMOVED]))
        order, is_kept = np.arange(group.num_rows), np.ones(group.num_rows, dtype=bool)
        order[at[~is_removed]] = group.num_rows + np.arange(updated.num_rows)
        is_kept[at[is_removed]] = False
        return _joined(group, self._with_own_columns(updated, group.schema)).take(order[is_kept])

    def _with_own_columns(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """With those of Hudi, as `schema` has them."""
        rewrite, first, count = self._rewrite, self._numbered, rows.num_rows
        self._numbered += count
        numbers = pa.array(np.arange(first, self._numbered)).cast(pa.string())
        begin = pa.scalar(f"{rewrite.instant}_{rewrite.number}_")
        own = {
            _INSTANT: pa.repeat(rewrite.instant, count),
            _SEQUENCE: pc.binary_join_element_wise(begin, numbers, ""),
            KEY: rows[KEY],
            _PARTITION: pa.repeat(rewrite.partition, count),
            _FILE: pa.nulls(count, pa.string()),
        }
        arrays = [_as_type(own[each.name] if each.name in own else rows[each.name], each.type) for each in schema]
        return pa.table(arrays, schema=schema)

    def _of_new_file(self, rows: pa.Table) -> pa.Table:
        numbers = pa.array(np.zeros(rows.num_rows, np.int32))
        name = pa.DictionaryArray.from_arrays(numbers, pa.array([self._rewrite.new.rpartition("/")[2]]))
        return rows.set_column(rows.schema.get_field_index(_FILE), rows.schema.field(_FILE), name)


def _as_type(values: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return values.dictionary_encode() if type_ == _NUMBERED_TEXTS else values.cast(type_)


def _joined(above: pa.Table, below: pa.Table) -> pa.Table:
    return pa.concat_tables([above, below]).unify_dictionaries().combine_chunks()
