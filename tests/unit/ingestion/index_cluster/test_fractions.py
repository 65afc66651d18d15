"""Which part of a cluster each table may ask: together at most the whole, nobody starves, and what a person has set holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.index_cluster.allowed_qps import allowed_qps
from ingestion.domain.index_cluster.fractions import (
    BY_HAND_AT_MOST,
    WHOLE,
    IndexedTable,
    TooMuchByHand,
    as_percent,
    check_by_hand,
    fractions,
    left_by_hand,
    weighed_rows,
)

Tables = dict[int, IndexedTable]

by_rule = st.builds(IndexedTable, rows=st.integers(0, 10**12), servers=st.integers(1, 200))


@st.composite
def table_sets(draw: st.DrawFn) -> Tables:
    """Some of which are set by hand, as far as may be."""
    tables = draw(st.dictionaries(st.integers(0, 99), by_rule, min_size=1, max_size=30))
    for key in draw(st.sets(st.sampled_from(sorted(tables)), max_size=4)):
        tables[key] = replace(tables[key], by_hand=draw(st.integers(1, BY_HAND_AT_MOST // 4)))
    return tables


def shown(tables: Mapping[str, IndexedTable]) -> dict[str, str]:
    return {name: as_percent(parts) for name, parts in fractions(tables).items()}


def test_a_fifth_is_for_all_alike_and_the_rest_goes_by_rows() -> None:
    """The table of docs/global-index.md."""
    tables = {
        "trips": IndexedTable(8_000_000_000, servers=10),
        "orders": IndexedTable(2_000_000_000, servers=5),
        "cities": IndexedTable(20_000, servers=1),
    }
    assert shown(tables) == {"trips": "65.538%", "orders": "19.076%", "cities": "15.384%"}
    tables["orders"] = replace(tables["orders"], by_hand=WHOLE // 2)
    assert shown(tables) == {"trips": "40.908%", "orders": "50%", "cities": "9.091%"}


def test_one_table_alone_has_all_and_tables_without_rows_share_alike() -> None:
    assert fractions({"a": IndexedTable(0)}) == {"a": WHOLE}
    assert fractions({"a": IndexedTable(0), "b": IndexedTable(0)}) == {"a": WHOLE // 2, "b": WHOLE // 2}
    assert fractions({}) == {}


@given(table_sets())
def test_together_they_are_at_most_the_whole_and_nobody_starves(tables: Tables) -> None:
    """However many rows the others have, a table has its part of the fifth of the fifth that cannot be set by hand."""
    parts = fractions(tables)
    left = WHOLE - sum(table.by_hand or 0 for table in tables.values())
    for key, table in tables.items():
        assert table.by_hand in (None, parts[key])
        assert parts[key] >= min(table.by_hand or WHOLE, left // (5 * table.servers * len(tables)))
        assert parts[key] > 0
    assert sum(parts.values()) <= WHOLE


@given(table_sets(), st.data())
def test_with_more_rows_a_table_has_no_less(tables: Tables, data: st.DataObject) -> None:
    key, more = data.draw(st.sampled_from(sorted(tables))), data.draw(st.integers(0, 10**12))
    grown = tables | {key: replace(tables[key], rows=tables[key].rows + more)}
    assert fractions(grown)[key] >= fractions(tables)[key]


@given(table_sets())
def test_of_tables_on_as_many_servers_the_larger_one_has_no_less_and_on_fewer_servers_no_less(tables: Tables) -> None:
    by_the_rule = {key: table for key, table in tables.items() if table.by_hand is None}
    parts = fractions(tables)
    for key, table in by_the_rule.items():
        for other, smaller in by_the_rule.items():
            if table.rows >= smaller.rows and table.servers <= smaller.servers:
                assert parts[key] >= parts[other]


@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.integers(0, 10**9), st.sets(st.integers(0, 9), min_size=1)), max_size=12),
)
def test_no_server_gets_more_than_it_was_benchmarked_with(qps: int, placed: list[tuple[int, set[int]]]) -> None:
    """Whichever servers host whichever tables, where each table spreads its requests over those that host it."""
    tables = {number: IndexedTable(rows, len(servers)) for number, (rows, servers) in enumerate(placed)}
    parts = fractions(tables)
    sent = dict.fromkeys(range(10), Fraction())
    for number, (_, servers) in enumerate(placed):
        for server in servers:
            sent[server] += allowed_qps(len(servers), qps, parts[number]) / len(servers)
    assert max(sent.values()) <= qps


def test_another_server_raises_what_a_job_may_send() -> None:
    allowed = [allowed_qps(servers, 6_000, WHOLE // 4) for servers in (1, 2, 3)]
    assert allowed == [1_500, 3_000, 4_500]


def test_more_by_hand_than_is_left_is_refused_with_what_is_left() -> None:
    by_hand = {"a": WHOLE // 2, "b": WHOLE // 4}
    check_by_hand(by_hand, "c", WHOLE // 20)
    check_by_hand(by_hand, "b", WHOLE * 3 // 10)  # what it has itself does not count
    with pytest.raises(TooMuchByHand, match=r"10% is more than the 5% that is left\."):
        check_by_hand(by_hand, "c", WHOLE // 10)
    assert left_by_hand(by_hand) == WHOLE // 20
    with pytest.raises(TooMuchByHand, match=r"100% is more than the 80% that is left"):
        fractions({"a": IndexedTable(1, by_hand=WHOLE)})


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_rows_are_weighed_with_two_digits(rows: int, more: int) -> None:
    assert rows * 0.9 <= weighed_rows(rows) <= rows
    assert weighed_rows(rows) <= weighed_rows(rows + more)
    assert weighed_rows(weighed_rows(rows)) == weighed_rows(rows)
