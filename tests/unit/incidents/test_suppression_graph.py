from __future__ import annotations

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.alerting.suppression import (
    CATEGORIES,
    DEFAULT_PAIRS,
    SuppressionPair,
    cycle_in,
    effective_pairs,
    suppressors_of,
)

pairs = st.tuples(st.sampled_from(CATEGORIES), st.sampled_from(CATEGORIES)).filter(lambda pair: pair[0] != pair[1])


def reachable(edges: frozenset[SuppressionPair]) -> set[SuppressionPair]:
    """The transitive closure, by adding until nothing is new."""
    reached = set(edges)
    while more := {(a, d) for (a, b), (c, d) in product(reached, reached) if b == c} - reached:
        reached |= more
    return reached


@given(st.frozensets(pairs, max_size=9))
def test_a_cycle_is_found_if_and_only_if_a_category_reaches_itself(edges: frozenset[SuppressionPair]) -> None:
    cycle = cycle_in(edges)
    assert bool(cycle) == any(start == end for start, end in reachable(edges))
    if cycle:
        assert cycle[0] == cycle[-1]
        assert set(pairwise(cycle)) <= edges
        assert len(set(cycle)) == len(cycle) - 1, "it is no longer than it must be"


def test_late_data_explains_everything_but_itself() -> None:
    assert cycle_in(DEFAULT_PAIRS) == ()
    assert {category for category in CATEGORIES if suppressors_of(category, DEFAULT_PAIRS)} == set(CATEGORIES) - {
        "freshness"
    }


def test_a_dataset_takes_from_the_default_and_adds_to_it() -> None:
    effective = effective_pairs([("freshness", "duplicates", False), ("completeness", "consistency", True)])
    assert suppressors_of("duplicates", effective) == frozenset()
    assert suppressors_of("consistency", effective) == {"freshness", "completeness"}


def test_a_cycle_is_named_from_one_end_to_the_same() -> None:
    assert cycle_in(DEFAULT_PAIRS | {("ingestion", "freshness")}) == ("freshness", "ingestion", "freshness")
