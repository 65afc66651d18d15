"""The last 4,096 bytes of an HFile, where all else is, and the file information, a block of names and values."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import NamedTuple, Self

from ingestion.index.hfile.blocks import Input
from ingestion.index.hfile.protobuf import Field, delimited, message, parsed_delimited, parsed_message
from ingestion.index.hfile.unreadable import UnreadableHFile

TRAILER_BYTES = 4096
_MAGIC = b'TRABLK"$'
_MAJOR, _MINOR = 3, 3
_VERSION = bytes([_MINOR]) + _MAJOR.to_bytes(3, "big")
MESSAGE_MAGIC = b"PBUF"
_COMPARATOR = b"org.apache.hadoop.hbase.CellComparatorImpl"
_COMPARATOR_FIELD, _COMPRESSION_FIELD, _ENCRYPTION_FIELD = 11, 12, 13
_COMPRESSIONS = ("lzo", "gz", "none", "snappy", "lz4", "bzip2", "zstd", "lzma", "brotli")
_UNCOMPRESSED = _COMPRESSIONS.index("none")

LAST_KEY = b"hfile.LASTKEY"
_ENCODINGS = (b"DATA_BLOCK_ENCODING", b"INDEX_BLOCK_ENCODING")


class Trailer(NamedTuple):
    """In the order of the fields' numbers, from 1. Offsets and sizes are in bytes."""

    file_info: int
    load_on_open: int
    index_bytes: int
    data_bytes: int
    root_entries: int
    meta_entries: int
    cells: int
    levels: int
    first_data_block: int
    last_data_block: int

    def content(self) -> bytes:
        fields: list[Field] = list(enumerate(self, 1))
        fields += [(_COMPARATOR_FIELD, _COMPARATOR), (_COMPRESSION_FIELD, _UNCOMPRESSED)]
        start = _MAGIC + delimited(message(fields))
        return start.ljust(TRAILER_BYTES - len(_VERSION), b"\0") + _VERSION

    @classmethod
    def parsed(cls, content: bytes) -> Self:
        """Raises UnreadableHFile, also for a file that is compressed or encrypted."""
        if not content.startswith(_MAGIC) or len(content) < TRAILER_BYTES or content[-3:] != _VERSION[-3:]:
            raise UnreadableHFile(f"The file is no HFile of version {_MAJOR}, or its end is missing.")
        fields = parsed_message(parsed_delimited(content, len(_MAGIC))[0])
        numbers = [fields.get(number, [0])[-1] for number in range(1, len(cls._fields) + 1)]
        compression = fields.get(_COMPRESSION_FIELD, [_UNCOMPRESSED])[-1]
        if compression != _UNCOMPRESSED:
            raise UnreadableHFile(
                f"The file is compressed ({_compression_name(compression)}); ask HBase's own tools: hbase hfile -m -f FILE."
            )
        if _ENCRYPTION_FIELD in fields:
            raise UnreadableHFile("The file is encrypted; ask HBase's own tools: hbase hfile -m -f FILE.")
        if not all(isinstance(number, int) for number in numbers):
            raise UnreadableHFile("The file is damaged: its trailer has text where numbers should be.")
        return cls(*numbers)  # type: ignore[arg-type]  # numbers, as the line above shows


def _compression_name(compression: int | bytes) -> str:
    if isinstance(compression, int) and compression < len(_COMPRESSIONS):
        return _COMPRESSIONS[compression]
    return f"codec {compression!r}"


def read_trailer(source: Input) -> tuple[Trailer, int]:
    """And where it begins. Raises UnreadableHFile."""
    source.seek(0, io.SEEK_END)
    begin = source.tell() - TRAILER_BYTES
    source.seek(max(begin, 0))
    return Trailer.parsed(source.read(TRAILER_BYTES)), begin


def file_info_content(values: Mapping[bytes, bytes]) -> bytes:
    pairs = ((1, message([(1, name), (2, values[name])])) for name in sorted(values))
    return MESSAGE_MAGIC + delimited(message(pairs))


def parsed_file_info(content: bytes) -> Mapping[bytes, bytes]:
    """Raises UnreadableHFile, also for a file whose blocks are encoded."""
    if not content.startswith(MESSAGE_MAGIC):
        raise UnreadableHFile("The file is damaged: its file information does not begin as it should.")
    pairs = parsed_message(parsed_delimited(content, len(MESSAGE_MAGIC))[0]).get(1, [])
    values = dict(_parsed_pair(pair) for pair in pairs)
    for name in _ENCODINGS:
        encoding = values.get(name, b"NONE")
        if encoding != b"NONE":
            raise UnreadableHFile(
                f"The blocks of the file are encoded ({name.decode()} is {encoding.decode(errors='replace')}); ask HBase's own tools: hbase hfile -m -f FILE."
            )
    return values


def _parsed_pair(pair: int | bytes) -> tuple[bytes, bytes]:
    parts = parsed_message(pair) if isinstance(pair, bytes) else {}
    name, value = (parts.get(number, [b""])[-1] for number in (1, 2))
    if not isinstance(name, bytes) or not isinstance(value, bytes):
        raise UnreadableHFile("The file is damaged: its file information has a number where text should be.")
    return name, value
