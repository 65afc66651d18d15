"""A chunk of a table as one Avro file. Its metadata has the range of keys, the transaction after which the rows were so, and how many they are."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

from fastavro import block_reader, parse_schema, schemaless_writer

from ingestion.capture.snapshot.key_position import EncodedKey
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_schema import row_schema
from ingestion.heatpipe.plain_writing import append_bytes, append_long, append_text, write_row
from ingestion.heatpipe.subject_schema import SubjectSchema

METADATA_KEY = "lakehub.chunk"
_MAGIC = b"Obj\x01"
_BLOCK_BYTES = 2**20
"""Of rows as they are, after which another block begins."""
_THERE, _NOTHING = b"\x02", b"\x00"
"""The branches of a record's fields: a row, which may have a note, or what could not be read."""
_NOT_WRITABLE = (ValueError, TypeError, OverflowError, AttributeError, ArithmeticError)
"""What fastavro raises for a value that is not of its type."""


class DamagedChunk(ValueError):
    """The file is not a chunk, or not all of it is there."""


@dataclass(frozen=True)
class ChunkRange:
    """`key`: the columns of it. `after`: behind which key it begins; None: at the first row. `last_key`: of its last row; None: no row follows."""

    key: Sequence[str]
    after: EncodedKey | None
    last_key: EncodedKey | None


class NullNote(NamedTuple):
    """Of a row that has null in place of a value that could not be read: the column, why, and what the row was."""

    column: str
    reason: str
    raw: str


@dataclass(frozen=True)
class RawChunk:
    """`columns`: by column of the schema the values in order. `unreadable`: of each row that could not be read what it was, and why. `sequence`: of the
    transaction after which all were so. `nulled`: by place among the rows."""

    range: ChunkRange
    sequence: int
    read_at: datetime
    schema: Schema
    schema_version: int
    columns: Mapping[str, Sequence[Any]]
    unreadable: Sequence[tuple[str, str]]
    nulled: Mapping[int, NullNote] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return max((len(values) for values in self.columns.values()), default=0)


@dataclass
class ChunkWriter:
    """Takes the rows of one chunk, one after the other."""

    schema: SubjectSchema
    rows: int = 0
    unreadable: int = 0
    _block: bytearray = field(default_factory=bytearray)
    _in_block: int = 0
    _blocks: list[bytes] = field(default_factory=list)
    _crc: int = 0

    def add(self, values: Mapping[str, Any], note: NullNote | None = None) -> None:
        """Raises ValueError for a row that Avro cannot hold, and takes nothing of it."""
        begin = len(self._block)
        self._block += _THERE
        if not write_row(self._block, self.schema.writers, values):
            del self._block[begin:]
            self._block += _THERE + self._slowly(values)
        self._block += _NOTHING
        self._add_texts(note)
        self.rows += 1
        self._count()

    def add_unreadable(self, raw: str, reason: str) -> None:
        self._block += _NOTHING
        self._add_texts((raw, reason))
        self._block += _NOTHING
        self.unreadable += 1
        self._count()

    def _add_texts(self, texts: Sequence[str] | None) -> None:
        self._block += _NOTHING if texts is None else _THERE
        for text in texts or ():
            append_text(self._block, text.encode(errors="backslashreplace").decode())

    def content(self, chunk: ChunkRange, sequence: int, read_at: datetime) -> bytes:
        """The file."""
        self._end_block()
        facts = {
            "key": [*chunk.key],
            "after": chunk.after,
            "last_key": chunk.last_key,
            "sequence": sequence,
            "read_at": read_at.isoformat(),
            "rows": self.rows,
            "unreadable": self.unreadable,
            "schema": self.schema.row_columns.types,
            "schema_version": self.schema.version,
            "crc32": self._crc,
        }
        metadata = {"avro.schema": self._file_schema, "avro.codec": "deflate", METADATA_KEY: facts}
        out, sync = bytearray(_MAGIC), hashlib.sha256(b"".join(self._blocks)).digest()[:16]
        append_long(out, len(metadata))
        for name, value in metadata.items():
            append_text(out, name)
            append_text(out, value if isinstance(value, str) else json.dumps(value))
        out += _NOTHING + sync
        for block in self._blocks:
            out += block + sync
        return bytes(out)

    def _count(self) -> None:
        self._in_block += 1
        if len(self._block) >= _BLOCK_BYTES:
            self._end_block()

    def _end_block(self) -> None:
        if not self._in_block:
            return
        deflate = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
        out = bytearray()
        append_long(out, self._in_block)
        append_bytes(out, deflate.compress(self._block) + deflate.flush())
        self._crc = zlib.crc32(self._block, self._crc)
        self._blocks.append(bytes(out))
        self._block, self._in_block = bytearray(), 0

    def _slowly(self, values: Mapping[str, Any]) -> bytes:
        out = BytesIO()
        try:
            schemaless_writer(out, self._row_schema, {name: values.get(name) for name in self.schema.columns})
        except _NOT_WRITABLE as problem:
            raise ValueError(f"it cannot be written as Avro: {problem}") from problem
        return out.getvalue()

    @cached_property
    def _row_schema(self) -> Any:
        return parse_schema(row_schema(self.schema.avro))

    @cached_property
    def _file_schema(self) -> Any:
        return {
            "type": "record",
            "name": "ChunkRow",
            "namespace": "lakehub.raw",
            "fields": [
                {"name": "row", "type": ["null", row_schema(self.schema.avro)], "default": None},
                _texts_or_null("unreadable", ("raw", "reason")),
                _texts_or_null("nulled", NullNote._fields),
            ],
        }


def _texts_or_null(name: str, fields: Sequence[str]) -> Mapping[str, Any]:
    texts = [{"name": each, "type": "string"} for each in fields]
    return {
        "name": name,
        "type": ["null", {"type": "record", "name": name.capitalize(), "fields": texts}],
        "default": None,
    }


def read_chunk_file(content: bytes) -> RawChunk:
    """Raises DamagedChunk."""
    try:
        return _read(content)
    except DamagedChunk:
        raise
    except Exception as problem:  # whatever a decoder raises for bytes that mean nothing
        raise DamagedChunk(f"it cannot be read: {type(problem).__name__}: {problem}") from problem


def _read(content: bytes) -> RawChunk:
    blocks: Any = block_reader(BytesIO(content))  # whose types know only a part of it
    facts = json.loads(blocks.metadata[METADATA_KEY])
    rows: list[dict[str, Any]] = []
    unreadable: list[tuple[str, str]] = []
    nulled: dict[int, NullNote] = {}
    crc = 0
    for block in blocks:
        crc = zlib.crc32(block.bytes_.getvalue(), crc)
        for record in block:
            row, broken = record["row"], record["unreadable"]
            if record["nulled"] is not None:
                nulled[len(rows)] = NullNote(**record["nulled"])
            if row is not None:
                rows.append(row)
            if broken is not None:
                unreadable.append((broken["raw"], broken["reason"]))
    if (len(rows), len(unreadable), crc) != (facts["rows"], facts["unreadable"], facts["crc32"]):
        raise DamagedChunk(f"it has {len(rows):,} rows, and {facts['rows']:,} were written, or some were changed")
    schema = Schema.of(facts["schema"])
    return RawChunk(
        ChunkRange(tuple(facts["key"]), facts["after"], facts["last_key"]),
        facts["sequence"],
        datetime.fromisoformat(facts["read_at"]),
        schema,
        facts["schema_version"],
        {name: [row[name] for row in rows] for name in schema.names},
        unreadable,
        nulled,
    )
