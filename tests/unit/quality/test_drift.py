"""The distance of two distributions is a metric from 0 to 1, whatever the size of the samples."""

from __future__ import annotations

from fractions import Fraction
from math import log2, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quality.domain.statistics.drift import jensen_shannon_distance

names = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "-1", "9"]))
samples = st.dictionaries(names, st.integers(0, 1000), min_size=1, max_size=6).filter(lambda bins: any(bins.values()))
ALMOST = Fraction(1, 10**9)


@given(samples)
def test_the_same_is_at_no_distance_from_itself_or_its_double(bins: dict[str | None, int]) -> None:
    assert jensen_shannon_distance(bins, bins) == 0
    assert jensen_shannon_distance(bins, {name: 2 * count for name, count in bins.items()}) <= ALMOST


@given(samples, samples)
def test_it_is_symmetric_and_between_none_and_all(first: dict[str | None, int], second: dict[str | None, int]) -> None:
    assert jensen_shannon_distance(first, second) == jensen_shannon_distance(second, first)
    assert 0 <= jensen_shannon_distance(first, second) <= 1


@given(samples, samples, samples)
def test_a_way_round_is_no_shorter(
    first: dict[str | None, int], second: dict[str | None, int], third: dict[str | None, int]
) -> None:
    assert (
        jensen_shannon_distance(first, third)
        <= jensen_shannon_distance(first, second) + jensen_shannon_distance(second, third) + ALMOST
    )


def test_what_has_nothing_in_common_is_all_the_way_apart() -> None:
    assert jensen_shannon_distance({"a": 5, None: 1}, {"b": 7}) == 1


@pytest.mark.parametrize("moved", [0.01, 0.1, 0.5])
def test_it_is_the_entropy_of_the_mixture_less_that_of_its_parts(moved: float) -> None:
    def entropy(share: float) -> float:
        return -sum(part * log2(part) for part in (share, 1 - share) if part)

    size = 10_000
    now: dict[str | None, int] = {"a": round(size * (1 - moved)), "b": round(size * moved)}
    expected = sqrt(entropy(moved / 2) - entropy(moved) / 2)
    assert float(jensen_shannon_distance(now, {"a": size})) == pytest.approx(expected, abs=1e-9)
