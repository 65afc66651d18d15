"""What was appended is in the file, whole and in order, however it came; and HBase finds its way in it."""

from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.index.hfile.writer import BlockSizes, WrittenHFile
from tests.unit.ingestion.index.hfile.slow_reader import SlowHFile, slow_message
from tests.unit.ingestion.index.hfile.written_files import (
    FAMILY,
    KEYS,
    QUALIFIERS,
    SMALL_SIZES,
    TIMESTAMP_MS,
    Rows,
    cells,
    columns,
    index_rows,
    tables,
    writer,
    written,
)

Table = tuple[tuple[bytes, ...], Rows]


@given(tables(), SMALL_SIZES)
def test_all_cells_come_back_and_the_filter_knows_every_row(table: Table, sizes: BlockSizes) -> None:
    qualifiers, rows = table
    hfile = SlowHFile(written(rows, qualifiers, sizes))
    assert hfile.cells == cells(rows, qualifiers)
    assert [row for row in rows if not hfile.bloom.may_contain(row)] == []


@given(tables(), SMALL_SIZES, st.data())
def test_the_file_does_not_depend_on_how_rows_come_in_batches(
    table: Table, sizes: BlockSizes, data: st.DataObject
) -> None:
    qualifiers, rows = table
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=6))
    assert written(rows, qualifiers, sizes, cuts) == written(rows, qualifiers, sizes)


@given(tables(), st.integers(1, 300))
def test_a_block_ends_with_the_row_that_fills_it(table: Table, data_bytes: int) -> None:
    qualifiers, rows = table
    hfile = SlowHFile(written(rows, qualifiers, BlockSizes(data=data_bytes)))
    for place, block in enumerate(hfile.cells_by_block):
        assert len(block) % len(qualifiers) == 0
        last_row = sum(
            len(cell.row) + len(cell.value) + len(cell.qualifier) + 20 + len(FAMILY)
            for cell in block[-len(qualifiers) :]
        )
        size = len(hfile.data_blocks[place].data)
        assert size - last_row < data_bytes
        assert size >= data_bytes or place == len(hfile.cells_by_block) - 1


def test_a_row_that_just_fills_a_block_ends_it() -> None:
    rows = dict.fromkeys((b"a", b"b", b"c", b"d"), (b"v",))
    row_bytes = len(SlowHFile(written(rows, (b"q",))).data_blocks[0].data) // 4
    for data_bytes, blocks in (
        (2 * row_bytes - 1, 2),
        (2 * row_bytes, 2),
        (2 * row_bytes + 1, 2),
        (row_bytes, 4),
        (row_bytes + 1, 2),
    ):
        assert len(SlowHFile(written(rows, (b"q",), BlockSizes(data=data_bytes))).data_blocks) == blocks


@given(tables())
def test_close_says_what_was_written(table: Table) -> None:
    qualifiers, rows = table
    out = io.BytesIO()
    hfile = writer(out, qualifiers)
    hfile.append(*columns(rows, qualifiers))
    keys = list(rows)
    assert hfile.close() == WrittenHFile(len(rows), len(rows) * len(qualifiers), keys[0], keys[-1], len(out.getvalue()))


@given(tables())
def test_the_file_information_is_that_of_the_cells(table: Table) -> None:
    qualifiers, rows = table
    hfile = SlowHFile(written(rows, qualifiers))
    keys = [len(cell.row) + len(FAMILY) + len(cell.qualifier) + 12 for cell in hfile.cells]
    last = struct.pack(">h", len(hfile.cells[-1].row)) + hfile.cells[-1].row
    time_range = hfile.info.pop(b"TIMERANGE")
    assert time_range[:4] == b"PBUF"
    assert slow_message(time_range[4:]) == {1: [TIMESTAMP_MS], 2: [TIMESTAMP_MS]}
    assert hfile.info == {
        b"hfile.LASTKEY": last + bytes([len(FAMILY)]) + FAMILY + qualifiers[-1] + struct.pack(">qB", TIMESTAMP_MS, 4),
        b"hfile.AVG_KEY_LEN": struct.pack(">i", sum(keys) // len(keys)),
        b"hfile.AVG_VALUE_LEN": struct.pack(">i", sum(len(cell.value) for cell in hfile.cells) // len(keys)),
        b"hfile.CREATE_TIME_TS": struct.pack(">q", TIMESTAMP_MS),
        b"BLOOM_FILTER_TYPE": b"ROW",
        b"LAST_BLOOM_KEY": hfile.cells[-1].row,
        b"BULKLOAD_SOURCE_TASK": b"lakehub",
        b"BULKLOAD_TIMESTAMP": struct.pack(">q", TIMESTAMP_MS),
        b"EXCLUDE_FROM_MINOR_COMPACTION": b"\0",
        b"MAJOR_COMPACTION_KEY": b"\xff",
    }


@given(st.lists(KEYS, min_size=1, max_size=20, unique=True).map(sorted), st.data())
def test_the_type_of_a_column_does_not_matter(keys: list[bytes], data: st.DataObject) -> None:
    values = [data.draw(st.sampled_from([b"a", b"", b"\0b"])) for _ in keys]
    array = pa.array(values, pa.binary())
    forms = [
        array.cast(pa.large_binary()),
        array.dictionary_encode(),
        pa.chunked_array([array[:1], array[1:]]),
        pa.array([b"before", *values, b"after"], pa.binary())[1:-1],
    ]
    files = [_one_column_file(pa.array(keys, pa.binary()), form) for form in [array, *forms]]
    assert files == [files[0]] * len(files)


@pytest.mark.parametrize("length", [1, 3, 36])
def test_columns_of_fixed_length_are_taken_as_matrices(length: int) -> None:
    matrix = np.sort(np.random.default_rng(1).integers(0, 256, (200, length), np.uint8).view(f"V{length}"), axis=0)
    keys = np.unique(np.frombuffer(matrix.tobytes(), f"V{length}")).view(np.uint8).reshape(-1, length)
    texts = [row.tobytes() for row in keys]
    arrays = [pa.array(texts, pa.binary(length)), pa.array(texts, pa.binary())]
    reversed_twice = keys[::-1].copy()[::-1]  # Its rows are not where a matrix has them.
    expected = _one_column_file(arrays[0], arrays[0])
    for form in (keys, reversed_twice, arrays[1]):
        assert _one_column_file(form, form) == expected


def test_strings_are_taken_as_utf_8() -> None:
    keys = pa.array(sorted(["a", "ä", "🚕", "z\0"], key=str.encode))
    assert [cell.row.decode() for cell in SlowHFile(_one_column_file(keys, keys)).cells] == keys.to_pylist()


def test_empty_batches_leave_no_trace() -> None:
    rows = index_rows(10)
    assert written(rows, cuts=[0, 0, 5, 5, 10]) == written(rows)


def test_large_and_empty_values_lie_side_by_side() -> None:
    values = [b"", b"\0" * 3_000_001, b"x", bytes(range(256)) * 20_000, b""]
    rows = {bytes([n]): (value, b"", value[:7]) for n, value in enumerate(values)}
    assert SlowHFile(written(rows)).cells == cells(rows)


def test_the_longest_keys_are_taken() -> None:
    rows = {bytes([n % 251]) * 32_766 + bytes([n]): (b"a", b"", b"c") for n in range(200)}
    rows = dict(sorted(rows.items()))
    hfile = SlowHFile(written(rows))
    assert hfile.cells == cells(rows)
    assert all(hfile.bloom.may_contain(row) for row in list(rows)[::20])


class _WriteOnly(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation("seek")

    tell = seek


def test_the_output_is_only_written_to_and_stays_open() -> None:
    out = _WriteOnly()
    hfile = writer(out)
    hfile.append(*columns(index_rows(3)))
    hfile.close()
    assert out.getvalue() == written(index_rows(3))


def test_arrow_s_files_are_written_to() -> None:
    out = pa.BufferOutputStream()
    hfile = writer(out)
    hfile.append(*columns(index_rows(3)))
    hfile.close()
    assert out.getvalue().to_pybytes() == written(index_rows(3))


def test_small_blocks_are_handed_over_many_at_once() -> None:
    """To hand over each of 16 KiB would cost as much as to make it."""
    rows = {b"%08d" % n: (b"%050d" % n, b"", b"%090d" % n) for n in range(16_000)}
    written_sizes: list[int] = []

    class Counted(io.BytesIO):
        def write(self, data: bytes, /) -> int:  # type: ignore[override]
            written_sizes.append(len(data))
            return super().write(data)

    out = Counted()
    hfile = writer(out, sizes=BlockSizes())
    hfile.append(*columns(rows))
    hfile.close()
    assert min(written_sizes[:-1]) >= 2**20
    assert len(written_sizes) == 4
    slow = SlowHFile(out.getvalue())
    assert slow.cells == cells(rows)
    assert {16 * 1024 <= len(block.data) < 17 * 1024 for block in slow.data_blocks[:-1]} == {True}


def test_of_a_large_batch_only_some_cells_are_made_at_once() -> None:
    rows = {n.to_bytes(2, "big"): (b"%05d" % n * 2_000, b"", b"x" * n) for n in range(4_000)}
    keys, values = columns(rows)
    held: list[int] = []

    class Watched(io.BytesIO):
        def write(self, data: bytes, /) -> int:  # type: ignore[override]
            held.append(pa.total_allocated_bytes())
            return super().write(data)

    before = pa.total_allocated_bytes()
    out = Watched()
    hfile = writer(out)
    hfile.append(keys, values)
    hfile.close()
    assert len(out.getvalue()) > 40_000_000
    assert max(held) - before < 8_000_000
    assert SlowHFile(out.getvalue()).cells == cells(rows)


def _one_column_file(keys: object, values: object) -> bytes:
    out = io.BytesIO()
    hfile = writer(out, QUALIFIERS[:1])
    hfile.append(keys, [values])
    hfile.close()
    return out.getvalue()
