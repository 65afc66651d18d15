"""An object a line. Columns and their types are inferred from the first lines.

A name that the lake cannot hold makes no column, as one row with it would stop all others: the rows that have it are rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from ingestion.domain.column_types import in_lake
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk, UnreadableRow
from ingestion.sources.files.formats.json_types import JsonTypes
from ingestion.sources.files.formats.records import (
    MAX_CHUNK_CELLS,
    MAX_COLUMNS,
    MAX_RECORD_BYTES,
    Record,
    buffered,
    chunked,
    read_line,
    text_of,
    unreadable,
)
from lakehub.kernel.lake_names import names_fit_for_the_lake

MAX_DEPTH = 100
_MAX_INFERRED_ROWS = 5_000
_A_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_NO_BRACKETS = re.compile(rb"[^\[\]{}]+")


class JsonLinesFormat:
    def schema(self, file: Any, known_names: Collection[str] = (), /) -> Schema:
        met = JsonTypes()
        for record in islice(_records(file), _MAX_INFERRED_ROWS):
            if isinstance(record, Record):
                met.meet(record.values)
        types = met.column_types()
        fitting = names_fit_for_the_lake(types, known_names)
        return Schema(tuple(SchemaColumn(name, str(in_lake(types[name]))) for name in fitting))

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        for piece in chunked(_records(file), rows):
            broken = tuple(record for record in piece if isinstance(record, UnreadableRow))
            whole = [record.values for record in piece if isinstance(record, Record)]
            for some in _of_few_columns(whole):
                yield _chunk_of(some, broken)
                broken = ()
            if broken:
                yield Chunk({}, broken)


def _records(file: Any) -> Iterator[Record | UnreadableRow]:
    names: set[str] = set()
    lines = buffered(file)
    while True:
        line, whole = read_line(lines)
        if not line:
            return
        if line.strip():
            yield (
                _record_of(line, names)
                if whole
                else unreadable(text_of(line), f"longer than {MAX_RECORD_BYTES:,} bytes")
            )


def _record_of(line: bytes, names: set[str]) -> Record | UnreadableRow:
    """`names` are all columns that were met so far."""
    row = parse_row(line)
    if isinstance(row, str):
        return unreadable(text_of(line), row)
    if len(names.union(row)) > MAX_COLUMNS:
        return unreadable(text_of(line), f"with it the file has more than {MAX_COLUMNS:,} columns")
    names.update(row)
    return Record(row, len(row), len(line))


def parse_row(line: bytes) -> dict[str, Any] | str:
    """The row, or why it is none."""
    if _depth(line) > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH}"
    try:
        row = json.loads(text_of(line))
    except ValueError as problem:
        return f"not JSON: {problem}"
    if not isinstance(row, dict):
        return f"not an object, but {type(row).__name__}"
    if any(not _is_text(name) for name in row):
        return "a name in it is not UTF-8"
    return row


def _is_text(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def _depth(line: bytes) -> int:
    """How deep brackets are nested outside of texts, before anything goes into them by calling itself."""
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for bracket in _NO_BRACKETS.sub(b"", _A_TEXT.sub(b"", line)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _of_few_columns(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Cut where the columns of all rows, each with a value or none, would be too many cells."""
    piece: list[dict[str, Any]] = []
    names: set[str] = set()
    for row in rows:
        if piece and not row.keys() <= names and (len(piece) + 1) * len(names.union(row)) > MAX_CHUNK_CELLS:
            yield piece
            piece, names = [], set()
        piece.append(row)
        names.update(row)
    if piece:
        yield piece


def _chunk_of(rows: list[dict[str, Any]], broken: tuple[UnreadableRow, ...]) -> Chunk:
    names = dict.fromkeys(name for row in rows for name in row)
    return Chunk({name: [row.get(name) for row in rows] for name in names}, broken)
