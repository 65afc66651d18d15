"""A key and its place in a row of HBase, and back."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.index.entries import (
    INSTANT,
    MAX_ROW_BYTES,
    STATE_ROW,
    DamagedEntry,
    Entry,
    cells_of,
    entry_of,
    row_of,
    spread,
)

KEYS = st.one_of(
    st.text(min_size=1),
    st.text(min_size=1, max_size=3).map(lambda text: text * 1000),
    st.sampled_from(["\0", "a\0b", "k" * MAX_ROW_BYTES, "k" * (MAX_ROW_BYTES + 1), "é" * 20_000]),
)
ENTRIES = st.builds(Entry, st.text(st.characters(exclude_characters="\0")), st.uuids().map(str), st.just("20261116"))


@given(KEYS, ENTRIES)
def test_an_entry_is_read_as_it_was_written(key: str, entry: Entry) -> None:
    assert entry_of(row_of(key), cells_of(key, entry)) == (key, entry)


@given(st.lists(KEYS, unique=True))
def test_each_key_has_a_row_of_its_own_that_hbase_can_hold(keys: list[str]) -> None:
    rows = {row_of(key) for key in keys}
    assert len(rows) == len(keys)
    assert all(0 < len(row) <= MAX_ROW_BYTES and row < STATE_ROW for row in rows)


def test_an_empty_key_has_no_row() -> None:
    with pytest.raises(ValueError, match="empty"):
        row_of("")


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (b"k", {}),
        (b"k", {b"f": b"1", b"p": b"d=1"}),
        (b"\xfek", {b"f": b"1", b"p": b"d=1", INSTANT: b"2"}),
        (b"k", {b"f": b"1", b"p": b"../orders/d=1", INSTANT: b"2"}),
        (b"k", {b"f": b"1", b"p": b"/lake/orders", INSTANT: b"2"}),
        (b"k", {b"f": b"1", b"p": b"d=1/./e=2", INSTANT: b"2"}),
    ],
)
def test_a_row_of_somebody_else_is_named_in_the_log_only(
    row: bytes, cells: dict[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """It may be a key, and whoever is signed in sees why a job has failed."""
    with pytest.raises(DamagedEntry) as damaged:
        entry_of(row, cells)
    assert hashlib.sha256(row).hexdigest()[:16] in str(damaged.value)
    assert repr(row) not in str(damaged.value)
    assert repr(row) in caplog.text


def test_any_few_keys_in_a_row_lie_all_over_the_table() -> None:
    """So no region server is asked for more than its part, in whatever order a source has its keys."""
    keys = [f"{number:08}" for number in range(100_000)]
    in_order = spread([*keys, *keys])
    assert sorted(in_order) == keys
    for begin in range(0, len(keys), 1_000):
        by_tenth = Counter(key[3] for key in in_order[begin : begin + 1_000])
        assert min(by_tenth[f"{tenth}"] for tenth in range(10)) > 60, by_tenth
