"""As how many servers those count that host a table: none is asked for more than it was measured with, wherever its regions lie."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.index_cluster.allowed_qps import allowed_qps, even_servers
from ingestion.domain.index_cluster.fractions import WHOLE

QPS = 6_000


@pytest.mark.parametrize(
    ("regions", "servers"),
    [("", 0), ("a", 1), ("aaaa", 1), ("ab", 2), ("abcabc", 3), ("aabbc", 2), ("aabc", 2), ("aaabc", 1)],
)
def test_a_server_with_more_regions_than_others_is_what_counts(regions: str, servers: int) -> None:
    assert even_servers(regions) == servers


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), st.integers(1, WHOLE))
def test_no_server_is_asked_for_more_than_its_part(regions: list[str], parts: int) -> None:
    """Requests go to regions evenly."""
    of_a_region = allowed_qps(even_servers(regions), QPS, parts) / len(regions)
    for count in Counter(regions).values():
        assert of_a_region * count <= allowed_qps(1, QPS, parts)
    assert 1 <= even_servers(regions) <= len({*regions})


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12))
def test_a_region_on_a_server_of_its_own_makes_them_no_fewer(regions: list[str]) -> None:
    assert even_servers([*regions, "z"]) >= even_servers(regions)
