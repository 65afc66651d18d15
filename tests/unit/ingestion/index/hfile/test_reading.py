"""A file says what range of keys it has, also one of HBase's own; what cannot be read says why."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.index.hfile import blocks
from ingestion.index.hfile.block_index import IndexEntry, root_content
from ingestion.index.hfile.blocks import BlockAddress, BlockWriter
from ingestion.index.hfile.cells import row_of_cell_key
from ingestion.index.hfile.reader import HFileSummary, read_summary
from ingestion.index.hfile.trailer import Trailer, file_info_content
from ingestion.index.hfile.unreadable import UnreadableHFile
from ingestion.index.hfile.writer import BlockSizes
from tests.unit.ingestion.index.hfile.slow_reader import HEADER_BYTES, Block, SlowHFile
from tests.unit.ingestion.index.hfile.written_files import SMALL_SIZES, Rows, index_rows, tables, written

FIRST_KEY = b"\0\x01a\x01fq" + bytes(9)
LAST_KEY = b"\0\x02zz\x01fq" + bytes(9)
WRITTEN_BY_HBASE = Path(__file__).with_name("written_by_hbase.hfile").read_bytes()
"""By HBase 2.6.1: keys of `row-` and n * 7 for 40 n, in blocks of 200 bytes, those of the index of 100."""


def summary_of(content: bytes) -> HFileSummary:
    return read_summary(io.BytesIO(content))


@given(tables(), SMALL_SIZES)
def test_the_summary_is_what_the_cells_say(table: tuple[tuple[bytes, ...], Rows], sizes: BlockSizes) -> None:
    content = written(table[1], table[0], sizes)
    hfile = SlowHFile(content)
    root = tuple(IndexEntry(BlockAddress(offset, size), key) for offset, size, key in hfile.root)
    assert summary_of(content) == HFileSummary(hfile.rows[0], hfile.rows[-1], len(hfile.cells), hfile.levels, root)


def test_keys_of_every_length_are_read_from_the_root() -> None:
    for key_bytes in (8, 120, 127, 128, 300, 32_767):
        rows = index_rows(9, key_bytes)
        assert summary_of(written(rows, sizes=BlockSizes(data=1)))[:3] == (next(iter(rows)), list(rows)[-1], 27)


def test_a_file_of_hbase_s_own_is_read() -> None:
    """Its checksums are of another kind than ours, and the keys in its index are shortened."""
    for source in (io.BytesIO(WRITTEN_BY_HBASE), pa.BufferReader(WRITTEN_BY_HBASE)):
        summary = read_summary(source)
        assert summary[:4] == (b"row-000000", b"row-000273", 40, 2)
        assert [row_of_cell_key(entry.first_key) for entry in summary.root] == [
            b"row-000000",
            b"row-0001",
            b"row-00021",
        ]


@pytest.mark.parametrize("kind", [blocks.ROOT_INDEX, blocks.FILE_INFO])
def test_the_checksums_of_hbase_s_own_files_are_verified(kind: bytes) -> None:
    content = WRITTEN_BY_HBASE.index(kind) + HEADER_BYTES
    with pytest.raises(UnreadableHFile, match=f"a checksum of the block {re.escape(repr(kind))} at .* is wrong"):
        summary_of(changed(WRITTEN_BY_HBASE, content + 5))


def test_a_file_without_checksums_is_read() -> None:
    content = written(index_rows(20))
    foreign = bytearray(content)
    for block in SlowHFile(content).blocks:
        foreign[block.offset + 24] = 0
    assert summary_of(bytes(foreign)) == summary_of(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: foreign_file(compression=1), r"compressed \(gz\); ask HBase's own tools"),
        (lambda: foreign_file(compression=6), r"compressed \(zstd\)"),
        (lambda: foreign_file(compression=40), r"compressed \(codec 40\)"),
        (lambda: foreign_file(info={b"DATA_BLOCK_ENCODING": b"FAST_DIFF"}), "DATA_BLOCK_ENCODING is FAST_DIFF"),
        (lambda: foreign_file(info={b"INDEX_BLOCK_ENCODING": b"PREFIX_TREE"}), "INDEX_BLOCK_ENCODING is PREFIX_TREE"),
        (lambda: foreign_file(is_encrypted=True), "encrypted"),
        (lambda: foreign_file(is_empty=True), "no cells"),
        (lambda: b"", "no HFile of version 3, or its end is missing"),
        (lambda: b"PAR1" * 4096, "no HFile of version 3"),
        (lambda: written(index_rows(5))[:-1], "its end is missing"),
        (lambda: written(index_rows(5))[:-1] + b"\2", "no HFile of version 3"),
        (lambda: written(index_rows(5))[-4000:], "no HFile of version 3"),
        (lambda: written(index_rows(5))[-4096:], "a block is said to be at"),
        (lambda: written(index_rows(5))[1:], "instead of b'FILEINF2'"),
    ],
)
def test_what_cannot_be_read(content: Callable[[], bytes], message: str) -> None:
    with pytest.raises(UnreadableHFile, match=message):
        summary_of(content())


def test_a_file_that_ends_while_it_is_read() -> None:
    class Short(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(20 if size == HEADER_BYTES else size)

    with pytest.raises(UnreadableHFile, match="ended while it was read: 20 of 33 bytes came"):
        read_summary(Short(WRITTEN_BY_HBASE))


def test_encodings_that_say_none_are_none() -> None:
    assert summary_of(foreign_file(info={b"DATA_BLOCK_ENCODING": b"NONE"})).cells == 5


CONTENT = written(index_rows(40), sizes=BlockSizes(data=500))
SUMMARY = summary_of(CONTENT)
ROOT, META_INDEX, FILE_INFO, BLOOM_META = SlowHFile(CONTENT).blocks[-4:]


@pytest.mark.parametrize("block", [ROOT, FILE_INFO])
def test_each_byte_of_what_is_read_is_checked(block: Block) -> None:
    checksum_kind = block.offset + 24
    for place in range(block.offset, block.offset + block.size):
        if place != checksum_kind:
            with pytest.raises(UnreadableHFile):
                summary_of(changed(CONTENT, place))


def test_what_is_not_needed_is_not_read() -> None:
    content = bytes(ROOT.offset) + CONTENT[ROOT.offset : META_INDEX.offset] + bytes(META_INDEX.size)
    content += CONTENT[FILE_INFO.offset : BLOOM_META.offset] + bytes(BLOOM_META.size)
    assert summary_of(content + CONTENT[-4096:]) == SUMMARY


@given(st.dictionaries(st.integers(ROOT.offset, len(CONTENT) - 1), st.integers(1, 255), min_size=1, max_size=5))
def test_damage_raises_nothing_else(differences: dict[int, int]) -> None:
    content = CONTENT
    for place, difference in differences.items():
        content = changed(content, place, difference)
    try:
        summary_of(content)
    except UnreadableHFile as refusal:
        assert str(refusal)  # noqa: PT017


@given(st.binary(max_size=300), st.binary(max_size=40))
def test_a_trailer_of_any_bytes_raises_nothing_else(before: bytes, trailer: bytes) -> None:
    content = before + (b'TRABLK"$' + trailer).ljust(4092, b"\0") + b"\3\0\0\3"
    with pytest.raises(UnreadableHFile):
        summary_of(content)


def changed(content: bytes, place: int, difference: int = 1) -> bytes:
    return content[:place] + bytes([content[place] ^ difference]) + content[place + 1 :]


def foreign_file(
    *,
    info: dict[bytes, bytes] | None = None,
    is_empty: bool = False,
    compression: int = 2,
    is_encrypted: bool = False,
) -> bytes:
    """As much of a file of somebody else as is read."""
    out = io.BytesIO()
    writer = BlockWriter(out)
    entries = [] if is_empty else [IndexEntry(BlockAddress(0, 99), FIRST_KEY)]
    index = writer.write_block(blocks.ROOT_INDEX, [root_content(entries)])
    last = {b"hfile.LASTKEY": LAST_KEY} if entries else {}
    file_info = writer.write_block(blocks.FILE_INFO, [file_info_content({**last, **(info or {})})])
    writer.flush()
    trailer = Trailer(file_info.offset, index.offset, 0, 0, len(entries), 0, 5, 1, 0, 0).content()
    compressed = trailer.replace(b"CellComparatorImpl\x60\x02", b"CellComparatorImpl\x60" + bytes([compression]))
    if is_encrypted:
        length = trailer[8]
        compressed = (
            trailer[:8] + bytes([length + 5]) + trailer[9 : 9 + length] + b"\x6a\x03key" + trailer[14 + length :]
        )
    return out.getvalue() + compressed
