"""A key is read back as it was, exactly, from plain JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ingestion.capture.snapshot.key_position import decode_key, encode_key

VALUES = st.one_of(
    st.integers(), st.text(), st.binary(), st.floats(allow_nan=False), st.decimals(allow_nan=False, allow_infinity=False),
    st.datetimes(), st.dates(), st.timedeltas(),
)  # fmt: skip


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_a_key_is_read_back_as_it_was(key: list[Any]) -> None:
    stored = json.loads(json.dumps(encode_key(key)))
    assert decode_key(stored) == tuple(key)
    assert [type(value) for value in decode_key(stored)] == [type(value) for value in key]
