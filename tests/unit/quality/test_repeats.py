"""Keys that repeat are found by a Bloom filter: none is missed, whatever the batches are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quality.domain.bloom import repeats
from quality.domain.bloom.keys import Hashes, hash_keys
from quality.domain.bloom.repeats import RepeatFinder, in_slice, slices_for


def _hashes(keys: list[int]) -> Hashes:
    return hash_keys([b"%d" % key for key in keys])


@given(st.lists(st.lists(st.integers(0, 300), max_size=60), max_size=8))
def test_every_key_that_repeats_is_a_candidate_and_hardly_another(batches: list[list[int]]) -> None:
    keys = [key for batch in batches for key in batch]
    finder = RepeatFinder(len(keys))
    for batch in batches:
        finder.add(_hashes(batch))
    repeated = {key for key, count in Counter(keys).items() if count > 1}
    candidates = set(finder.candidates.tolist())
    assert set(_hashes(sorted(repeated)).tolist()) <= candidates
    assert len(candidates) <= len(repeated) + 3
    assert len(keys) - len(set(keys)) <= finder.again <= len(keys) - len(set(keys)) + 3


def test_a_large_table_is_looked_at_in_slices_and_each_key_is_in_one() -> None:
    assert [slices_for(rows) for rows in (0, repeats.MAX_KEYS_AT_ONCE, repeats.MAX_KEYS_AT_ONCE + 1)] == [1, 1, 2]
    hashes = _hashes(list(range(1000)))
    parts = [in_slice(hashes, number, 3) for number in range(3)]
    assert sorted(np.concatenate(parts).tolist()) == sorted(hashes.tolist())
    assert all(250 < len(part) < 420 for part in parts)


def test_more_candidates_than_are_kept_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "MAX_CANDIDATES", 10)
    finder = RepeatFinder(100)
    for _ in range(2):
        finder.add(_hashes(list(range(50))))
    assert finder.is_cut
    assert finder.again == 50
    assert len(finder.candidates) <= 10
