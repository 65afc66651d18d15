"""Reads a whole HFile byte by byte, with nothing of the writer's code, and asserts everything that HBase relies on."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from tests.unit.ingestion.index.hfile.slow_bloom import SlowBloom

TRAILER_BYTES, HEADER_BYTES, BYTES_PER_CHECKSUM = 4096, 33, 65536
INLINE = {b"DATABLK*", b"IDXLEAF2", b"BLMFBLK2"}


class Cell(NamedTuple):
    row: bytes
    family: bytes
    qualifier: bytes
    timestamp_ms: int
    kind: int
    value: bytes


class Block(NamedTuple):
    kind: bytes
    offset: int
    size: int
    data: bytes


@dataclass
class SlowHFile:
    content: bytes

    def __post_init__(self) -> None:
        trailer = self.content[-TRAILER_BYTES:]
        assert trailer[:8] == b'TRABLK"$'
        assert trailer[-4:] == b"\x03\x00\x00\x03"
        length, begin = slow_varint(trailer, 8)
        assert set(trailer[begin + length : -4]) <= {0}
        self.trailer = {number: values[0] for number, values in slow_message(trailer[begin : begin + length]).items()}
        self.blocks = self._walk()
        self.at = {block.offset: block for block in self.blocks}
        self.data_blocks = [block for block in self.blocks if block.kind == b"DATABLK*"]
        self.cells_by_block = [list(_cells(block.data)) for block in self.data_blocks]
        self.cells = [cell for cells in self.cells_by_block for cell in cells]
        self.info = self._file_info()
        self._check_layout()
        self._check_index()
        self.bloom = self._bloom()

    @property
    def rows(self) -> list[bytes]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    def _walk(self) -> list[Block]:
        """Each byte before the trailer belongs to a block; checksums are right; each block knows the one before of its kind."""
        blocks: list[Block] = []
        last_of_kind: dict[bytes, int] = {}
        at, end = 0, len(self.content) - TRAILER_BYTES
        while at < end:
            kind, on_disk, data_size, before, checksum, per_checksum, checked = struct.unpack_from(
                ">8siiqBii", self.content, at
            )
            assert (checksum, per_checksum) == (1, BYTES_PER_CHECKSUM)
            assert checked == HEADER_BYTES + data_size
            assert before == last_of_kind.get(kind, -1)
            size = HEADER_BYTES + on_disk
            assert at + size <= end
            self._check_checksums(self.content[at : at + checked], self.content[at + checked : at + size])
            blocks.append(Block(kind, at, size, self.content[at + HEADER_BYTES : at + checked]))
            last_of_kind[kind] = at
            at += size
        assert at == end
        return blocks

    def _check_checksums(self, checked: bytes, checksums: bytes) -> None:
        pieces = [checked[begin : begin + BYTES_PER_CHECKSUM] for begin in range(0, len(checked), BYTES_PER_CHECKSUM)]
        assert checksums == b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)

    def _file_info(self) -> dict[bytes, bytes]:
        content = self.at[self.trailer[1]].data
        assert content[:4] == b"PBUF"
        length, begin = slow_varint(content, 4)
        assert begin + length == len(content)
        pairs = [slow_message(pair) for pair in slow_message(content[begin:])[1]]
        names = [pair[1][0] for pair in pairs]
        assert names == sorted(set(names))
        return {pair[1][0]: pair[2][0] for pair in pairs}

    def _check_layout(self) -> None:
        kinds = [block.kind for block in self.blocks]
        closing = next(place for place, kind in enumerate(kinds) if kind not in INLINE)
        load_on_open = [b"IDXROOT2", b"IDXROOT2", b"FILEINF2", b"BLMFMET2"]
        assert kinds[-4:] == load_on_open
        assert set(kinds[closing:-4]) <= {b"IDXINTE2"}
        assert self.blocks[-3].data == b""  # The index of meta blocks.
        data_bytes = sum(HEADER_BYTES + len(block.data) for block in self.blocks)
        index_bytes = sum(
            HEADER_BYTES + len(block.data)
            for block in self.blocks
            if block.kind.startswith(b"IDX") and block != self.blocks[-3]
        )
        expected = {
            1: self.blocks[-2].offset,
            2: self.blocks[-4].offset,
            3: index_bytes,
            4: data_bytes,
            6: 0,
            7: len(self.cells),
            9: self.data_blocks[0].offset,
            10: self.data_blocks[-1].offset,
            11: b"org.apache.hadoop.hbase.CellComparatorImpl",
            12: 2,
        }
        assert {number: self.trailer[number] for number in expected} == expected
        assert set(self.trailer) == {*expected, 5, 8}

    def _check_index(self) -> None:
        """From the root down each entry has the place, the size and the first key of what is below it; the leaves' entries are the data blocks."""
        self.levels, count = self.trailer[8], self.trailer[5]
        root = self.at[self.trailer[2]].data
        entries, rest = root_entries(root, count)
        self.root = entries
        for level in range(self.levels - 1, 0, -1):
            kind = b"IDXLEAF2" if level == 1 else b"IDXINTE2"
            below = []
            for offset, size, key in entries:
                block = self.at[offset]
                assert (block.kind, block.size) == (kind, size)
                children = _searchable_entries(block.data)
                assert children[0][2] == key
                below.append((offset, size, children))
            self._leaves = below
            entries = [child for _, _, children in below for child in children]
        assert entries == [
            (block.offset, block.size, _key(cells[0]))
            for block, cells in zip(self.data_blocks, self.cells_by_block, strict=True)
        ]
        self._check_mid_key(rest)

    def _check_mid_key(self, rest: bytes) -> None:
        if self.levels == 1:
            assert rest == b""
            return
        offset, size, place = struct.unpack(">qii", rest)
        (entries,) = (children for at, bytes_of_it, children in self._leaves if (at, bytes_of_it) == (offset, size))
        middle = self.data_blocks[(len(self.data_blocks) - 1) // 2]
        assert entries[place][:2] == (middle.offset, middle.size)

    def _bloom(self) -> SlowBloom:
        meta = self.blocks[-1].data
        version, data_bytes, hashes, hash_kind, keys, capacity, chunks = struct.unpack_from(">iqiiqqi", meta)
        assert (version, hash_kind, meta[40]) == (3, 1, 0)
        entries, rest = root_entries(meta[41:], chunks)
        assert rest == b""
        blocks = [self.at[offset] for offset, _, _ in entries]
        assert blocks == [block for block in self.blocks if block.kind == b"BLMFBLK2"]
        assert [size for _, size, _ in entries] == [block.size for block in blocks]
        assert sum(len(block.data) for block in blocks) == data_bytes
        assert keys == len(self.rows) <= capacity
        return SlowBloom(hashes, [key for _, _, key in entries], [block.data for block in blocks])


def _cells(data: bytes) -> Any:
    at = 0
    while at < len(data):
        key_length, value_length = struct.unpack_from(">ii", data, at)
        key = data[at + 8 : at + 8 + key_length]
        row_length = struct.unpack_from(">h", key)[0]
        row, rest = key[2 : 2 + row_length], key[2 + row_length :]
        family, rest = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        timestamp, kind = struct.unpack(">qB", rest[-9:])
        value = data[at + 8 + key_length : at + 8 + key_length + value_length]
        assert len(value) == value_length
        yield Cell(row, family, rest[:-9], timestamp, kind, value)
        at += 8 + key_length + value_length


def _key(cell: Cell) -> bytes:
    row = struct.pack(">h", len(cell.row)) + cell.row
    return (
        row
        + bytes([len(cell.family)])
        + cell.family
        + cell.qualifier
        + struct.pack(">qB", cell.timestamp_ms, cell.kind)
    )


def root_entries(content: bytes, count: int) -> tuple[list[tuple[int, int, bytes]], bytes]:
    """And what stands behind them."""
    entries, at = [], 0
    for _ in range(count):
        offset, size = struct.unpack_from(">qi", content, at)
        at += 12
        length, at = content[at], at + 1
        if length > 127:
            digits = 256 - 112 - length
            assert 1 <= digits <= 8
            length, at = int.from_bytes(content[at : at + digits], "big"), at + digits
        assert at + length <= len(content)
        entries.append((offset, size, content[at : at + length]))
        at += length
    return entries, content[at:]


def _searchable_entries(content: bytes) -> list[tuple[int, int, bytes]]:
    count = struct.unpack_from(">i", content)[0]
    offsets = struct.unpack_from(f">{count + 1}i", content, 4)
    base = 4 + 4 * (count + 1)
    assert (offsets[0], base + offsets[-1]) == (0, len(content))
    entries = [content[base + begin : base + end] for begin, end in pairwise(offsets)]
    return [(*struct.unpack_from(">qi", entry), entry[12:]) for entry in entries]


def slow_message(content: bytes) -> dict[int, list[Any]]:
    fields: dict[int, list[Any]] = {}
    at = 0
    while at < len(content):
        tag, at = slow_varint(content, at)
        number, at = slow_varint(content, at)
        assert tag & 7 in (0, 2)
        if tag & 7 == 2:
            assert at + number <= len(content)
            fields.setdefault(tag >> 3, []).append(content[at : at + number])
            at += number
        else:
            fields.setdefault(tag >> 3, []).append(number)
    return fields


def slow_varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while content[at] > 127:
        number |= (content[at] - 128) << shift
        at, shift = at + 1, shift + 7
    return number | content[at] << shift, at + 1
