"""Blocks, of which an HFile consists: a header, the data, and a checksum of each 64 KiB of both."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ingestion.index.hfile.unreadable import UnreadableHFile

DATA, LEAF_INDEX, INTERMEDIATE_INDEX, ROOT_INDEX = b"DATABLK*", b"IDXLEAF2", b"IDXINTE2", b"IDXROOT2"
BLOOM_CHUNK, BLOOM_META, FILE_INFO = b"BLMFBLK2", b"BLMFMET2", b"FILEINF2"

_HEADER = struct.Struct(">8siiqBii")
"""Which block, bytes on disk and of data, offset of the block before of its kind, kind of checksum, bytes that each covers, header and data in bytes."""
_CHECKSUM = struct.Struct(">I")
_BYTES_PER_CHECKSUM = 64 * 1024
_BUFFERED_BYTES = 2**20
"""Handed to the output at once: a block of data is so small that each would cost as much to hand over as to make."""
_NO_CHECKSUM, _CRC32, _CRC32C = 0, 1, 2
_CRC32C_POLYNOMIAL = 0x82F63B78

Bytes = bytes | memoryview


class Output(Protocol):
    """A binary file that is open for writing: of Python, or of pyarrow on any file system."""

    def write(self, data: bytes, /) -> Any: ...


class Input(Protocol):
    """A binary file that is open for reading at any place."""

    def seek(self, offset: int, whence: int = 0, /) -> Any: ...

    def tell(self) -> int: ...

    def read(self, size: int, /) -> bytes: ...


class BlockAddress(NamedTuple):
    """`size`: in bytes, with header and checksums."""

    offset: int
    size: int


@dataclass
class BlockWriter:
    """Writes one block behind the other; what `flush` has not written yet is in memory. `position`: how many bytes there are. `data_bytes`: those with headers,
    without checksums."""

    out: Output
    position: int = 0
    data_bytes: int = 0
    _last_offsets: dict[bytes, int] = field(default_factory=dict)
    _pending: list[Bytes] = field(default_factory=list)
    _pending_bytes: int = 0

    def write_block(self, kind: bytes, parts: Sequence[Bytes]) -> BlockAddress:
        """Raises what the output raises, and OSError where it takes a part only."""
        data_size = sum(map(len, parts))
        checked_size = _HEADER.size + data_size
        checksums_size = _CHECKSUM.size * -(-checked_size // _BYTES_PER_CHECKSUM)
        before = self._last_offsets.get(kind, -1)
        header = _HEADER.pack(
            kind, data_size + checksums_size, data_size, before, _CRC32, _BYTES_PER_CHECKSUM, checked_size
        )
        address = BlockAddress(self.position, checked_size + checksums_size)
        self._pending += (header, *parts, _checksums_of(header, parts, checked_size))
        self._last_offsets[kind] = address.offset
        self.data_bytes += checked_size
        self._advance(address.size)
        return address

    def write(self, data: bytes) -> None:
        """What is no block."""
        self._pending.append(data)
        self._advance(len(data))

    def _advance(self, size: int) -> None:
        self.position += size
        self._pending_bytes += size
        if self._pending_bytes >= _BUFFERED_BYTES:
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._pending)
        self._pending, self._pending_bytes = [], 0
        written = self.out.write(data)
        if written is not None and written != len(data):
            raise OSError(f"The output took {written:,} of {len(data):,} bytes; open it buffered.")


def _checksums_of(header: bytes, parts: Sequence[Bytes], size: int) -> bytes:
    """Of a block of so many bytes."""
    if size > _BYTES_PER_CHECKSUM:
        return _checksums(b"".join((header, *parts)), _BYTES_PER_CHECKSUM, zlib.crc32)
    checksum = zlib.crc32(header)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return _CHECKSUM.pack(checksum)


def read_block(source: Input, offset: int, kind: bytes, end: int) -> bytes:
    """The data of the block that begins at `offset` and ends before `end`. Raises UnreadableHFile."""
    if not 0 <= offset <= end - _HEADER.size:
        raise UnreadableHFile(f"The file is damaged: a block is said to be at {offset:,}, but blocks end at {end:,}.")
    source.seek(offset)
    header = _read(source, _HEADER.size)
    name, on_disk, data_size, _, checksum, per_checksum, checked_size = _HEADER.unpack(header)
    if name != kind:
        raise UnreadableHFile(f"The file is damaged: {name!r} is at {offset:,} instead of {kind!r}.")
    if (
        not _HEADER.size <= checked_size <= _HEADER.size + on_disk <= end - offset
        or data_size != checked_size - _HEADER.size
    ):
        raise UnreadableHFile(f"The file is damaged: the block {kind!r} at {offset:,} has impossible sizes.")
    block = header + _read(source, on_disk)
    stored = block[checked_size:]
    if checksum != _NO_CHECKSUM:
        if checksum not in _CHECKSUM_FUNCTIONS or per_checksum <= 0:
            raise UnreadableHFile(f"The block {kind!r} at {offset:,} has checksums of an unknown kind, {checksum}.")
        if stored != _checksums(block[:checked_size], per_checksum, _CHECKSUM_FUNCTIONS[checksum]):
            raise UnreadableHFile(f"The file is damaged: a checksum of the block {kind!r} at {offset:,} is wrong.")
    return block[_HEADER.size : checked_size]


def _read(source: Input, size: int) -> bytes:
    content = source.read(size)
    if len(content) < size:
        raise UnreadableHFile(f"The file ended while it was read: {len(content):,} of {size:,} bytes came.")
    return content


def _checksums(block: bytes, per_checksum: int, function: Callable[[memoryview], int]) -> bytes:
    view = memoryview(block)
    sums = [function(view[begin : begin + per_checksum]) for begin in range(0, len(block), per_checksum)]
    return struct.pack(f">{len(sums)}I", *sums)


def _crc32c(data: memoryview) -> int:
    """Castagnoli's polynomial, HBase's default; byte by byte, for an index root of 128 KiB that takes 10 ms."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _crc32c_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_CRC32C_POLYNOMIAL if byte & 1 else 0)
    return byte


_CRC32C_TABLE = tuple(_crc32c_of_byte(byte) for byte in range(256))
_CHECKSUM_FUNCTIONS: dict[int, Callable[[memoryview], int]] = {_CRC32: zlib.crc32, _CRC32C: _crc32c}
