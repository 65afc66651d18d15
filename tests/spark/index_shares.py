"""Tests of every index, and of each way in which small batches are written: each is many, and takes half a minute and more for all of them.

A test runs with a few, those that had the fewest tests before it, so that each index and way has its share of all tests. `LAKEHUB_INDEX_TESTS=all`
runs each test with all, as after a change of an index.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from ingestion.spark.indexes import INDEXES

SHARE = 2
"""Cases of one test."""


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    if os.environ.get("LAKEHUB_INDEX_TESTS") == "all":
        return set()
    tests: dict[str, dict[str, pytest.Item]] = {}
    for item in items:
        name, _, case = item.nodeid.partition("[")
        tests.setdefault(name, {})[case.removesuffix("]")] = item
    kept = shares({name: list(cases) for name, cases in tests.items()}, SHARE)
    return {item for name, cases in tests.items() for case, item in cases.items() if case not in kept[name]}


def shares(tests: Mapping[str, Sequence[str]], share: int) -> dict[str, set[str]]:
    """The cases to run, by test. A test that does not ask every index for the same keeps all of its own."""
    used: Counter[str] = Counter()
    kept: dict[str, set[str]] = {}
    for name, cases in tests.items():
        kept[name] = set(cases)
        if {part for case in cases for part in case.split("-")}.issuperset(INDEXES):
            kept[name] = _rarest(cases, share, used)
    return kept


def _rarest(cases: Sequence[str], share: int, used: Counter[str]) -> set[str]:
    """Counted are whole cases first, then each index and way by itself."""
    waiting = list(cases)
    while waiting and len(cases) - len(waiting) < share:
        rarest = min(waiting, key=lambda case: (used[case], sum(used[part] for part in case.split("-"))))
        waiting.remove(rarest)
        used.update({rarest, *rarest.split("-")})
    return set(cases) - set(waiting)
