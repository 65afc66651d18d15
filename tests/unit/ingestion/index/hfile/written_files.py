"""Rows for HFiles, and files of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa
from hypothesis import strategies as st

from ingestion.index.hfile.writer import BlockSizes, HFileWriter
from tests.unit.ingestion.index.hfile.slow_reader import Cell

FAMILY, TIMESTAMP_MS = b"_s", 1_764_000_000_123
QUALIFIERS = (b"commit", b"file", b"partition")

Rows = Mapping[bytes, Sequence[bytes]]
"""By key, in the order of keys: the value of each qualifier."""

_AWKWARD_BYTES = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), min_size=1, max_size=9).map(bytes)
KEYS = _AWKWARD_BYTES | st.binary(min_size=1, max_size=40)
VALUES = st.binary(max_size=30)
SMALL_SIZES = st.builds(
    BlockSizes, data=st.integers(1, 300), index=st.integers(1, 300), bloom_chunk=st.sampled_from([64, 128])
)
"""Blocks of few rows: many levels of the index and many chunks of the Bloom filter."""


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 60) -> tuple[tuple[bytes, ...], Rows]:
    """Qualifiers, and rows with a value of each."""
    qualifiers = tuple(sorted(draw(st.sets(st.binary(max_size=5), min_size=1, max_size=4))))
    values = st.tuples(*[VALUES] * len(qualifiers))
    rows = draw(st.dictionaries(KEYS, values, min_size=1, max_size=max_rows))
    return qualifiers, dict(sorted(rows.items()))


def index_rows(count: int, key_bytes: int = 8) -> Rows:
    """As the Global Index has them; lengths vary."""
    keys = [number.to_bytes(8, "big").rjust(key_bytes, b"k") for number in range(count)]
    return {
        key: (b"2026112723143900%d" % (n % 7), b"%036d-%d" % (n, n % 11), b"day=2026-11-%d" % (n % 28))
        for n, key in enumerate(keys)
    }


def writer(out: io.BytesIO, qualifiers: Sequence[bytes] = QUALIFIERS, sizes: BlockSizes | None = None) -> HFileWriter:
    return HFileWriter(out, family=FAMILY, qualifiers=qualifiers, timestamp_ms=TIMESTAMP_MS, sizes=sizes)


def columns(rows: Rows, qualifiers: Sequence[bytes] = QUALIFIERS) -> tuple[pa.Array, list[pa.Array]]:
    values = [pa.array([values[place] for values in rows.values()], pa.binary()) for place in range(len(qualifiers))]
    return pa.array(list(rows), pa.binary()), values


def written(
    rows: Rows, qualifiers: Sequence[bytes] = QUALIFIERS, sizes: BlockSizes | None = None, cuts: Iterable[int] = ()
) -> bytes:
    """The file of these rows; `cuts`: before which rows another batch begins."""
    out = io.BytesIO()
    hfile = writer(out, qualifiers, sizes)
    for batch in batches(rows, cuts):
        keys, values = columns(batch, qualifiers)
        hfile.append(keys, values)
    hfile.close()
    return out.getvalue()


def batches(rows: Rows, cuts: Iterable[int]) -> Iterator[Rows]:
    items = list(rows.items())
    for begin, end in pairwise([0, *sorted(cuts), len(items)]):
        yield dict(items[begin:end])


def cells(rows: Rows, qualifiers: Sequence[bytes] = QUALIFIERS) -> list[Cell]:
    return [
        Cell(key, FAMILY, qualifier, TIMESTAMP_MS, 4, value)
        for key, values in rows.items()
        for qualifier, value in zip(qualifiers, values, strict=True)
    ]
