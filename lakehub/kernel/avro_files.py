"""Avro files that anybody may have written, read within bounds: a file says itself how much there is, and may not be believed.

The container is walked here, and each block is counted, decompressed up to a limit and only then handed to fastavro, whose C code
would follow a type that holds itself until the process dies. Format: https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import fastavro
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException, UnknownType

MAX_HEAD_BYTES = 4 * 2**20
MAX_BLOCK_BYTES = 64 * 2**20
"""As it is stored, and decompressed. Writers cut blocks at 16 kB to some MB."""
MAX_TYPES = 20_000
"""Of one schema, a named one wherever it is used."""
MAX_DEPTH = 64
MAX_DECIMAL_BYTES = 64
"""Twice what the widest decimal of any engine takes; to turn megabytes of digits into a number takes hours."""
_MAGIC, _SYNC_BYTES = b"Obj\x01", 16


class BadAvro(ValueError):
    """It is not Avro, not whole, or more than may be read; the message says which."""


class AvroFile:
    """`schema` is the one that it was written with, a record. Raises BadAvro where the head cannot be read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = io.BufferedReader(file) if isinstance(file, io.RawIOBase) else file
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise BadAvro("it does not begin like an Avro file")
        metadata = _read_metadata(self._file)
        self._sync = _exactly(self._file, _SYNC_BYTES)
        self._unpack = _unpacker(metadata.get("avro.codec", b"null").decode(errors="replace"))
        self.schema = _read_schema(metadata.get("avro.schema", b""))
        self._least_bytes = _Measure().least_bytes(self.schema)

    def row_count(self) -> int:
        """By the heads of the blocks from here on; no row is read."""
        return sum(count for count, _ in self._blocks())

    def records(self) -> Iterator[Any]:
        """The rows. A text that is not UTF-8 has its bytes as surrogates, and a time out of range is the number that is stored."""
        try:
            stream: Any = _Stream(self._plain_container())
            yield from fastavro.reader(stream, handle_unicode_errors="surrogateescape")
        except (EOFError, KeyError, IndexError, TypeError, OverflowError) as wrong:
            raise BadAvro(f"a block is not what the schema says ({type(wrong).__name__}: {wrong})") from wrong

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """(rows, bytes as stored)"""
        while (first := self._file.read(1)) != b"":
            count, size = _read_long(self._file, first), _read_long(self._file)
            if count < 0 or not 0 <= size <= MAX_BLOCK_BYTES:
                raise BadAvro(
                    f"a block says that it has {count:,} rows in {size:,} bytes; {MAX_BLOCK_BYTES:,} bytes are the most"
                )
            stored = _exactly(self._file, size)
            if _exactly(self._file, _SYNC_BYTES) != self._sync:
                raise BadAvro("a block does not end where it says")
            yield count, stored

    def _plain_container(self) -> Iterator[bytes]:
        """The same file, without compression and with blocks that can hold what they say."""
        yield _head_of(self.schema, self._sync)
        for count, stored in self._blocks():
            plain = self._unpack(stored)
            if count * self._least_bytes > len(plain):
                raise BadAvro(f"a block says that it has {count:,} rows, but {len(plain):,} bytes cannot hold them")
            yield _long(count) + _long(len(plain)) + plain + self._sync


def read_schema_text(text: str) -> Any:
    """Of a message, whose type need not be a record; as fastavro reads by it. Raises BadAvro."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        # A registry may keep a plain type by its name alone.
        schema = text
    schema = schema if isinstance(schema, str | list | dict) else {}
    parsed = _parsed(schema)
    types, _ = _Measure()._of(parsed, 0)
    if types > MAX_TYPES:
        raise BadAvro(f"it has {types:,} types; {MAX_TYPES:,} are the most")
    return parsed


class _Stream:
    """What fastavro reads from, over pieces that are made as it reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = io.BytesIO()

    def read(self, size: int) -> bytes:
        taken = self._buffer.read(size)
        while len(taken) < size and (piece := next(self._pieces, None)) is not None:
            self._buffer = io.BytesIO(piece)
            taken += self._buffer.read(size - len(taken))
        return taken


class _Measure:
    """How large a schema is, its names in full, and the fewest bytes that a value of it takes. Raises BadAvro where there is no bound."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[int, int] | None] = {}
        """(types, fewest bytes); None while the type is being measured."""

    def least_bytes(self, record: Any) -> int:
        types, least = self._of(record, 0)
        if types > MAX_TYPES:
            raise BadAvro(f"its schema has {types:,} types; {MAX_TYPES:,} are the most")
        if not least:
            raise BadAvro("a row of its schema takes no bytes, so that any number of them may follow")
        return least

    def _of(self, schema: Any, depth: int) -> tuple[int, int]:
        if depth > MAX_DEPTH:
            raise BadAvro(f"its schema is nested deeper than {MAX_DEPTH}")
        if isinstance(schema, str):
            return self._of_name(schema)
        if isinstance(schema, list):
            # A union says in a byte which of its types follows.
            return 1 + sum(self._of(branch, depth + 1)[0] for branch in schema), 1
        return self._of_complex(schema, depth)

    def _of_name(self, name: str) -> tuple[int, int]:
        if name not in self._named:
            return 1, {"null": 0, "float": 4, "double": 8}.get(name, 1)
        measured = self._named[name]
        if measured is None:
            raise BadAvro(f"its type `{name}` holds itself, so that a row may be nested without end")
        return measured

    def _of_complex(self, schema: dict[str, Any], depth: int) -> tuple[int, int]:
        kind = schema.get("type")
        if kind in ("array", "map"):
            types, least = self._of(schema.get("items" if kind == "array" else "values"), depth + 1)
            if kind == "array" and not least:
                raise BadAvro("it has an array of what takes no bytes, so that any number of them may follow")
            return types + 1, 1
        if kind not in ("record", "error", "fixed", "enum"):
            return self._of(kind, depth + 1)
        name = str(schema.get("name"))
        self._named[name] = None
        if kind == "fixed":
            measured = 1, _fixed_size(schema)
        elif kind == "enum":
            measured = 1, 1
        else:
            fields = [self._of(field.get("type"), depth + 1) for field in schema.get("fields", ())]
            measured = 1 + sum(types for types, _ in fields), sum(least for _, least in fields)
        self._named[name] = measured
        return measured


def _fixed_size(schema: dict[str, Any]) -> int:
    size = schema.get("size")
    if not isinstance(size, int) or not 0 <= size <= MAX_BLOCK_BYTES:
        raise BadAvro(f"its fixed type `{schema.get('name')}` has a size of {size}")
    return size


def _read_schema(text: bytes) -> Any:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise BadAvro(f"its schema cannot be read ({type(wrong).__name__}: {wrong})") from wrong
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BadAvro("its schema is not a record, so its values have no columns")
    return {name: value for name, value in _parsed(schema).items() if not name.startswith("__")}


def _parsed(schema: Any) -> Any:
    try:
        _check_depth(schema)
        return fastavro.parse_schema(schema)
    except (
        RecursionError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
        SchemaParseException,
        UnknownType,
    ) as wrong:
        if isinstance(wrong, BadAvro):
            raise
        raise BadAvro(f"its schema cannot be read ({type(wrong).__name__}: {wrong})") from wrong


def _check_depth(schema: Any) -> None:
    """Before anything goes through it by calling itself."""
    level = [schema]
    for _ in range(3 * MAX_DEPTH):
        level = [
            part
            for each in level
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
        if not level:
            return
    raise BadAvro(f"its schema is nested deeper than {MAX_DEPTH}")


def _read_metadata(file: BinaryIO) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    left = MAX_HEAD_BYTES
    while count := _read_long(file):
        if count < 0:
            count, _ = -count, _read_long(file)
        for _ in range(count):
            name, left = _read_text(file, left)
            value, left = _read_text(file, left)
            metadata[name.decode(errors="replace")] = value
    return metadata


def _read_text(file: BinaryIO, left: int) -> tuple[bytes, int]:
    """(the bytes, how many more its head may have)"""
    size = _read_long(file)
    if not 0 <= size < left:
        raise BadAvro(f"its head has more than {MAX_HEAD_BYTES:,} bytes")
    return _exactly(file, size), left - size - 1


def _exactly(file: BinaryIO, size: int) -> bytes:
    piece = file.read(size)
    if len(piece) != size:
        raise BadAvro("it ends in the middle: it was cut off")
    return bytes(piece)


def _read_long(file: BinaryIO, first: bytes = b"") -> int:
    """Zigzag, seven bits a byte."""
    number = 0
    for place in range(10):
        byte = (first if place == 0 and first else _exactly(file, 1))[0]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)
    raise BadAvro("a number in it takes more than ten bytes")


def _long(number: int) -> bytes:
    zigzag, written = number << 1 if number >= 0 else ~(number << 1), bytearray()
    while zigzag > 0x7F:
        written.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    written.append(zigzag)
    return bytes(written)


def _head_of(schema: Any, sync: bytes) -> bytes:
    text = json.dumps(schema).encode()
    return _MAGIC + _long(1) + _long(11) + b"avro.schema" + _long(len(text)) + text + _long(0) + sync


def _unpacker(codec: str) -> Callable[[bytes], bytes]:
    if codec == "null":
        return bytes
    if codec not in _DECOMPRESSORS:
        raise BadAvro(f"it is compressed by `{codec}`; {', '.join(('null', *_DECOMPRESSORS))} can be read")
    return _DECOMPRESSORS[codec]


def _inflate(stored: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=-15)
    return _whole(unpacker.decompress(stored, MAX_BLOCK_BYTES + 1), unpacker.eof)


def _bunzip(stored: bytes) -> bytes:
    unpacker = bz2.BZ2Decompressor()
    return _whole(unpacker.decompress(stored, MAX_BLOCK_BYTES + 1), unpacker.eof)


def _unxz(stored: bytes) -> bytes:
    unpacker = lzma.LZMADecompressor(memlimit=4 * MAX_BLOCK_BYTES)
    return _whole(unpacker.decompress(stored, MAX_BLOCK_BYTES + 1), unpacker.eof)


def _checked(unpack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def unpack_or_refuse(stored: bytes) -> bytes:
        try:
            return unpack(stored)
        except (zlib.error, lzma.LZMAError, OSError, EOFError) as wrong:
            raise BadAvro(f"a block cannot be decompressed ({wrong})") from wrong

    return unpack_or_refuse


def _whole(plain: bytes, ended: bool) -> bytes:
    if len(plain) > MAX_BLOCK_BYTES:
        raise BadAvro(f"a block has more than {MAX_BLOCK_BYTES:,} bytes once it is decompressed")
    if not ended:
        raise BadAvro("a block cannot be decompressed: it was cut off")
    return plain


_DECOMPRESSORS = {"deflate": _checked(_inflate), "bzip2": _checked(_bunzip), "xz": _checked(_unxz)}


def _decimal_within_bounds(read: Callable[..., Any]) -> Callable[..., Any]:
    def read_decimal(data: bytes, writer_schema: Any = None, reader_schema: Any = None) -> Any:
        return data if len(data) > MAX_DECIMAL_BYTES else read(data, writer_schema, reader_schema)

    return read_decimal


def _value_or_as_stored(read: Callable[..., Any]) -> Callable[..., Any]:
    def read_value(data: Any, writer_schema: Any = None, reader_schema: Any = None) -> Any:
        try:
            return read(data, writer_schema, reader_schema)
        except (OverflowError, ValueError, OSError):
            return data

    return read_value


# What fastavro documents for types of one's own. One value that is none must not stop all the rows after it.
for _name in ("bytes-decimal", "fixed-decimal"):
    LOGICAL_READERS[_name] = _decimal_within_bounds(LOGICAL_READERS[_name])
for _name in tuple(LOGICAL_READERS):
    if _name.startswith(("int-", "long-", "string-")):
        LOGICAL_READERS[_name] = _value_or_as_stored(LOGICAL_READERS[_name])
