"""The Bloom filter is bit for bit the one that HBase reads."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingestion.index.hfile.murmur import double_hashes
from ingestion.index.hfile.writer import BlockSizes
from tests.unit.ingestion.index.hfile.slow_bloom import slow_murmur
from tests.unit.ingestion.index.hfile.slow_reader import SlowHFile
from tests.unit.ingestion.index.hfile.written_files import index_rows, written

HIGH_BYTES = [b"\xff" * length for length in range(9)]


@given(st.lists(st.binary(max_size=70), min_size=1))
@example(HIGH_BYTES)
@example([b""])
@example([b"\x80", b"abcd\x80\x80\x80", b"\x80" * 36, b"a" * 5000])
def test_the_hash_is_that_of_java(texts: list[bytes]) -> None:
    padded = pa.array([b"padding", *texts], pa.large_binary())[1:]
    first, second = double_hashes(padded)
    expected = [slow_murmur(text, 0) for text in texts]
    assert first.view("i4").tolist() == expected
    assert second.view("i4").tolist() == [slow_murmur(text, seed) for text, seed in zip(texts, expected, strict=True)]


@pytest.mark.parametrize(
    ("rows", "chunk_bytes"), [(1, 128 * 1024), (52, 64), (54, 64), (500, 64), (5_000, 1024), (3_000, 128 * 1024)]
)
def test_few_rows_that_are_not_there_pass(rows: int, chunk_bytes: int) -> None:
    chosen = random.Random(7)
    keys = sorted({chosen.randbytes(chosen.choice([3, 8, 36])) for _ in range(rows)})
    others = {chosen.randbytes(36) for _ in range(5_000)} - set(keys)
    bloom = SlowHFile(written(dict.fromkeys(keys, (b"", b"", b"")), sizes=BlockSizes(bloom_chunk=chunk_bytes))).bloom
    assert all(map(bloom.may_contain, keys))
    assert sum(map(bloom.may_contain, others)) / len(others) < 0.02


def test_chunks_are_full_and_begin_with_their_first_row() -> None:
    rows = index_rows(500)
    bloom = SlowHFile(written(rows, sizes=BlockSizes(bloom_chunk=64))).bloom
    capacity = int(64 * 8 / 9.585)
    assert bloom.first_keys == list(rows)[::capacity]


@pytest.mark.parametrize(
    ("rows", "last_chunk_bytes"), [(1, 64), (53, 64), (54, 128), (106, 128), (107, 256), (1000, 2048)]
)
def test_the_last_chunk_is_as_small_as_its_rows_allow(rows: int, last_chunk_bytes: int) -> None:
    bloom = SlowHFile(written(index_rows(rows))).bloom
    assert [len(chunk) for chunk in bloom.chunks] == [last_chunk_bytes]
