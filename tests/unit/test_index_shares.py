"""What the Spark tests leave out of indexes and ways."""

from __future__ import annotations

from collections import Counter

from ingestion.spark.indexes import INDEXES
from tests.spark.index_shares import shares

BOTH = [f"{index}-{way}" for index in INDEXES for way in ("by Spark", "directly")]


def test_each_index_and_way_has_its_share_of_all_tests() -> None:
    kept = shares({f"test_{number}": BOTH for number in range(8)}, 3)
    assert {len(cases) for cases in kept.values()} == {3}
    assert Counter(case for cases in kept.values() for case in cases) == dict.fromkeys(BOTH, 3)


def test_what_is_not_asked_of_every_index_is_all_kept() -> None:
    cases = {"test_two": ["memory-directly", "simple-directly", "simple-by Spark", "simple-x"], "test_none": [""]}
    assert shares(cases, 1) == {name: set(each) for name, each in cases.items()}
