"""What HBase would not take is refused by name, before anything of its batch is written."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestion.index.hfile import blocks
from ingestion.index.hfile import cells as cell_module
from ingestion.index.hfile.writer import BlockSizes, HFileWriter
from tests.unit.ingestion.index.hfile.written_files import QUALIFIERS, columns, index_rows, writer, written

LONGEST = 32_767


def _values(count: int) -> list[pa.Array]:
    return [pa.array([b"v"] * count, pa.binary())] * len(QUALIFIERS)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([b"a", b""], r"key of row 1 of the batch, b'', has 0 bytes; HBase takes 1 to 32,767"),
        ([b"a", b"b" * (LONGEST + 1)], r"key of row 1 .*b'b+'\.\.\. \(32,768 bytes\), has 32,768 bytes"),
        ([b"a" * 40_000], r"key of row 0 .* has 40,000 bytes"),
        ([b"a", b"c", b"b"], r"key b'b' comes after b'c'; keys must ascend"),
        ([b"a", b"b\0", b"b"], r"key b'b' comes after b'b\\x00'"),
        ([b"\x7f", b"\x80", b"\x01"], r"key b'\\x01' comes after b'\\x80'"),
        ([b"a", b"a"], r"key b'a' comes twice"),
        ([b"a", None], r"key of row 1 of the batch is null"),
    ],
)
def test_keys(keys: list[bytes | None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        writer(io.BytesIO()).append(pa.array(keys, pa.binary()), _values(len(keys)))


@pytest.mark.parametrize(
    ("key", "message"), [(b"b", "key b'b' comes twice"), (b"a\xff", r"key b'a\\xff' comes after b'b'")]
)
def test_keys_against_those_of_the_batch_before(key: bytes, message: str) -> None:
    hfile = writer(io.BytesIO())
    hfile.append(pa.array([b"a", b"b"]), _values(2))
    with pytest.raises(ValueError, match=message):
        hfile.append(pa.array([key]), _values(1))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([pa.array([b"v"])] * 2, "2 columns of values came for 3 qualifiers"),
        ([pa.array([b"v"]), pa.array([b"v", b"w"]), pa.array([b"v"])], "2 values of b'file' came for 1 keys"),
        (
            [pa.array([b"v"]), pa.array([None], pa.binary()), pa.array([b"v"])],
            "value of b'file' of row 0 of the batch is null",
        ),
    ],
)
def test_values(values: list[pa.Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        writer(io.BytesIO()).append(pa.array([b"a"]), values)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (pa.array([1]), "int64 came as key, byte strings are needed"),
        ([b"a"], "list came as key"),
        (np.array([b"a\0"]), "numpy's .*S2 in 1 dimension.* came as key; a matrix of uint8"),
        (np.array([[1]]), "numpy's int64 in 2 dimension.* came as key"),
        (pa.array([[b"a"]]), "list<item: binary> came as key"),
    ],
)
def test_what_is_no_byte_string(keys: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        writer(io.BytesIO()).append(keys, _values(1))


def test_a_row_that_no_block_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestion.index.hfile.writer.MAX_ROW_BYTES", 1000)
    values = [pa.array([b"v", b"v" * size]) for size in (300, 300, 320)]
    with pytest.raises(ValueError, match=r"row b'b' has cells of 1,0\d\d bytes; a block of HBase takes at most 1,000"):
        writer(io.BytesIO()).append(pa.array([b"a", b"b"]), values)
    assert cell_module.MAX_ROW_BYTES < 2**31


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"family": b""}, "family has 0 bytes"),
        ({"family": b"f" * 128}, "family has 128 bytes; it needs 1 to 127"),
        ({"qualifiers": []}, "qualifiers .* at least one"),
        ({"qualifiers": [b"b", b"a"]}, "qualifiers .* in the order of their bytes"),
        ({"qualifiers": [b"a", b"a"]}, "qualifiers .* different"),
        ({"timestamp_ms": -1}, "timestamp -1"),
        ({"timestamp_ms": 2**63 - 1}, "timestamp 9223372036854775807"),
        ({"sizes": BlockSizes(bloom_chunk=100)}, "chunk of 100 bytes"),
        ({"sizes": BlockSizes(bloom_chunk=32)}, "chunk of 32 bytes"),
    ],
)
def test_a_file_that_cannot_be(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"family": b"f", "qualifiers": [b"q"], "timestamp_ms": 0} | changed
    with pytest.raises(ValueError, match=message):
        HFileWriter(io.BytesIO(), **given)


@pytest.mark.parametrize("sizes", [{"data": 0}, {"index": 0}])
def test_blocks_of_no_size(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="no blocks of 0 bytes"):
        BlockSizes(**sizes)


def test_an_empty_file() -> None:
    out = io.BytesIO()
    hfile = writer(out)
    hfile.append(pa.array([], pa.binary()), _values(0))
    with pytest.raises(ValueError, match="No row was appended"):
        hfile.close()
    assert out.getvalue() == b""


def test_a_refused_batch_leaves_no_trace() -> None:
    rows = index_rows(2_000)
    keys, values = columns(rows)
    out = io.BytesIO()
    hfile = writer(out)
    for begin in range(0, len(keys), 500):
        batch, texts = keys[begin : begin + 500], [column[begin : begin + 500] for column in values]
        with pytest.raises(ValueError, match="comes twice"):
            hfile.append(
                pa.concat_arrays([batch, batch[-1:]]), [pa.concat_arrays([column, column[-1:]]) for column in texts]
            )
        hfile.append(batch, texts)
    hfile.close()
    assert out.getvalue() == written(rows)


def _full_disk(_: bytes) -> int:
    raise OSError("no space is left")


@pytest.mark.parametrize(
    ("write", "message"),
    [(_full_disk, "no space"), (lambda data: len(data) - 1, "took .* of .* bytes; open it buffered")],
)
def test_after_an_error_of_the_output_nothing_more(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[bytes], int], message: str
) -> None:
    monkeypatch.setattr(blocks, "_BUFFERED_BYTES", 1)

    class Failing(io.BytesIO):
        def write(self, data: Any, /) -> int:
            return write(data)

    keys, values = columns(index_rows(10))
    hfile = writer(Failing(), sizes=BlockSizes(data=1))
    with pytest.raises(OSError, match=message):
        hfile.append(keys[:5], [column[:5] for column in values])
    with pytest.raises(ValueError, match="An earlier error left the file in parts"):
        hfile.append(keys[5:], [column[5:] for column in values])
    with pytest.raises(ValueError, match="An earlier error left the file in parts"):
        hfile.close()
    small = writer(Failing())
    small.append(keys, values)
    with pytest.raises(OSError, match=message):
        small.close()
    with pytest.raises(ValueError, match="An earlier error left the file in parts"):
        small.close()


def test_a_closed_file_takes_nothing_more() -> None:
    out = io.BytesIO()
    hfile = writer(out)
    hfile.append(pa.array([b"a"]), _values(1))
    hfile.close()
    content = out.getvalue()
    with pytest.raises(ValueError, match="The file is closed"):
        hfile.close()
    with pytest.raises(ValueError, match="The file is closed"):
        hfile.append(pa.array([b"b"]), _values(1))
    assert out.getvalue() == content
