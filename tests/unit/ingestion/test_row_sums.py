"""Sums over rows: the same in any order and however they are merged, and a change is found in its parts only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingestion.sources.sql.row_sums import ALL_PARTS, RowSums, part_of, row_hash

HASHES = st.lists(st.integers().map(lambda number: row_hash((number,))), max_size=20)


def sums_of(hashes: list[str], *, is_whole: bool = False) -> RowSums:
    sums = RowSums(is_whole)
    for digest in hashes:
        sums.add(digest)
    return sums


@given(HASHES, HASHES, st.booleans())
def test_merged_sums_are_those_of_all_rows(some: list[str], others: list[str], is_whole: bool) -> None:
    merged = sums_of(some, is_whole=is_whole)
    merged.merge(sums_of(others))
    assert merged.position() == sums_of(others + some, is_whole=is_whole).position()
    assert merged.rows == len(some) + len(others)


@given(HASHES, HASHES)
def test_only_the_parts_of_what_came_and_went_have_changed(before: list[str], after: list[str]) -> None:
    differing = {part_of(digest) for digest in set(before) ^ set(after)}
    changed = sums_of(sorted(set(after))).changed_parts(sums_of(sorted(set(before))).position())
    assert changed == differing


@given(HASHES, HASHES)
def test_without_the_parts_that_have_changed_the_rest_is_the_same(before: list[str], after: list[str]) -> None:
    old, new = sums_of(before), sums_of(after)
    changed = new.changed_parts(old.position())
    kept_old, kept_new = RowSums(), RowSums()
    kept_old.merge(old, without=changed)
    kept_new.merge(new, without=changed)
    assert kept_old.position() == kept_new.position()


def test_of_one_sum_for_all_everything_has_changed_or_nothing() -> None:
    whole, parts = sums_of(["0" * 16], is_whole=True), sums_of(["0" * 16])
    assert whole.changed_parts(parts.position()) == parts.changed_parts(whole.position()) == frozenset()
    parts.add("1" * 16)
    assert parts.changed_parts(whole.position()) == whole.changed_parts(parts.position()) == ALL_PARTS
