"""The index of blocks by the first key of each: a tree whose leaves are written among the data, its root at the end.

A small index is its root only. The keys are whole keys of cells (`cell_key.py`), in a Bloom filter's index they are row keys.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ingestion.index.hfile.blocks import INTERMEDIATE_INDEX, LEAF_INDEX, ROOT_INDEX, BlockAddress, BlockWriter
from ingestion.index.hfile.unreadable import UnreadableHFile

_ADDRESS = struct.Struct(">qi")
_MID_KEY = struct.Struct(">qii")
_FEWEST_ENTRIES = 16
"""Of a block between leaves and root, as HBase has it: with the longest keys too, each level is much smaller than the one below."""


class IndexEntry(NamedTuple):
    """`first_key`: of the first cell in the block."""

    address: BlockAddress
    first_key: bytes


class WrittenIndex(NamedTuple):
    """`root`: its offset. `data_bytes`: of all blocks of the index, with headers, without checksums."""

    root: int
    root_entries: int
    levels: int
    data_bytes: int


@dataclass
class BlockIndexWriter:
    """Takes the data blocks in their order. `block_bytes`: from which size on a block of the index is written."""

    blocks: BlockWriter
    block_bytes: int
    _leaf: list[IndexEntry] = field(default_factory=list)
    _leaf_bytes: int = 0
    _leaves: list[IndexEntry] = field(default_factory=list)
    _leaf_sizes: list[int] = field(default_factory=list)
    _data_bytes: int = 0

    def add(self, entry: IndexEntry) -> None:
        self._leaf.append(entry)
        self._leaf_bytes += _size(entry)
        if self._leaf_bytes >= self.block_bytes:
            self._write_leaf()

    def finish(self) -> WrittenIndex:
        """Writes what is left of the leaves, the levels above and the root."""
        if self._leaves and self._leaf:
            self._write_leaf()
        mid_key = self._mid_key() if self._leaves else b""
        entries, levels = (self._leaves, 2) if self._leaves else (self._leaf, 1)
        while len(entries) > _FEWEST_ENTRIES and sum(map(_size, entries)) > self.block_bytes:
            entries = [self._write(INTERMEDIATE_INDEX, chunk) for chunk in self._chunks(entries)]
            levels += 1
        before = self.blocks.data_bytes
        root = self.blocks.write_block(ROOT_INDEX, [root_content(entries), mid_key])
        self._data_bytes += self.blocks.data_bytes - before
        return WrittenIndex(root.offset, len(entries), levels, self._data_bytes)

    def _write_leaf(self) -> None:
        self._leaf_sizes.append(len(self._leaf))
        self._leaves.append(self._write(LEAF_INDEX, self._leaf))
        self._leaf, self._leaf_bytes = [], 0

    def _write(self, kind: bytes, entries: Sequence[IndexEntry]) -> IndexEntry:
        before = self.blocks.data_bytes
        address = self.blocks.write_block(kind, [_searchable_content(entries)])
        self._data_bytes += self.blocks.data_bytes - before
        return IndexEntry(address, entries[0].first_key)

    def _chunks(self, entries: Sequence[IndexEntry]) -> Iterator[Sequence[IndexEntry]]:
        begin = size = 0
        for end, entry in enumerate(entries, 1):
            size += _size(entry)
            if end - begin >= _FEWEST_ENTRIES and size >= self.block_bytes:
                yield entries[begin:end]
                begin, size = end, 0
        if begin < len(entries):
            yield entries[begin:]

    def _mid_key(self) -> bytes:
        """In which leaf the middle data block stands, and where in it: HBase splits a region there."""
        place = (sum(self._leaf_sizes) - 1) // 2
        for leaf, size in zip(self._leaves, self._leaf_sizes, strict=True):
            if place < size:
                return _MID_KEY.pack(*leaf.address, place)
            place -= size
        raise AssertionError("the middle block is in no leaf")


def root_content(entries: Sequence[IndexEntry]) -> bytes:
    """Entries with the length of each key before it."""
    return b"".join(
        _ADDRESS.pack(*entry.address) + hadoop_vint(len(entry.first_key)) + entry.first_key for entry in entries
    )


def parsed_root(content: bytes, count: int) -> Iterator[IndexEntry]:
    """The first `count` entries. Raises UnreadableHFile."""
    at = 0
    for _ in range(count):
        length, begin = _parsed_hadoop_vint(content, at + _ADDRESS.size)
        if begin + length > len(content):
            raise UnreadableHFile(
                f"The file is damaged: the root of its index ends within one of its {count:,} entries."
            )
        yield IndexEntry(BlockAddress(*_ADDRESS.unpack_from(content, at)), content[begin : begin + length])
        at = begin + length


def hadoop_vint(number: int) -> bytes:
    """A number of at least 0 as Hadoop writes it: up to 127 as one byte, otherwise the number of bytes, complemented, and those."""
    if number <= 127:
        return bytes([number])
    digits = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([0x90 - len(digits)]) + digits


def _parsed_hadoop_vint(content: bytes, at: int) -> tuple[int, int]:
    """The number of at least 0 that stands at `at`, and where it ends. Raises UnreadableHFile."""
    first = content[at] if at < len(content) else -1
    if 0 <= first < 0x80:
        return first, at + 1
    if 0x88 <= first < 0x90:
        end = at + 1 + 0x90 - first
        return int.from_bytes(content[at + 1 : end], "big"), end
    raise UnreadableHFile("The file is damaged: the root of its index has fewer entries than it should have.")


def _searchable_content(entries: Sequence[IndexEntry]) -> bytes:
    """Entries with the offset of each before all of them, for a binary search."""
    contents = [_ADDRESS.pack(*entry.address) + entry.first_key for entry in entries]
    offsets = [0]
    for content in contents:
        offsets.append(offsets[-1] + len(content))
    return struct.pack(f">{len(offsets) + 1}i", len(entries), *offsets) + b"".join(contents)


def _size(entry: IndexEntry) -> int:
    return _ADDRESS.size + len(entry.first_key)
