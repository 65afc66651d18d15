"""What goes to Java and comes back is read as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.index.packed_parts import PartReader, packed_number, packed_parts


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(-(2**31), 2**31 - 1))))
def test_parts_and_numbers_are_read_as_they_were_packed(items: list[tuple[bytes, int]]) -> None:
    reader = PartReader(b"".join(packed_parts([part]) + packed_number(number) for part, number in items))
    read = []
    while not reader.is_over:
        read.append((reader.part(), reader.number()))
    assert read == items


def test_a_part_that_is_not_there_is_no_empty_one() -> None:
    assert packed_parts([None, b""]) == b"\xff\xff\xff\xff\0\0\0\0"


@pytest.mark.parametrize("packed", [b"\0\0\0\2a", b"\xff\xff\xff\xff"])
def test_less_than_there_is_said_to_be_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        PartReader(packed).part()
