"""`force_update`: the change wins when it is first read, and a repetition changes nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.accounting import RowFate
from ingestion.domain.merging.events import ChangeEvent
from ingestion.domain.merging.merge import MergedBatch
from ingestion.domain.merging.row_state import ColumnState, RowState
from tests.unit.ingestion.change_events import Table, batches, change, delete, logs, merge, table_after

APPLIED, SUPERSEDED, REDELIVERED, _ = RowFate
KEY = ("a",)


@given(logs(forced=True), st.data())
def test_events_in_log_order_merge_alike_in_any_batches_and_with_any_repetition(
    log: list[ChangeEvent], data: st.DataObject
) -> None:
    delivery = list(log)
    for place in sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=4)), reverse=True):
        delivery[place:place] = data.draw(st.lists(st.sampled_from(log[:place]), max_size=3)) if place else []
    assert table_after(data.draw(batches(delivery))) == table_after([event] for event in log)


@given(logs(forced=True), st.data())
def test_forced_changes_apply_in_log_order_whatever_their_reference_key(
    log: list[ChangeEvent], data: st.DataObject
) -> None:
    forced = [
        change(0, 100 + place, x=place, y=None, force_update=True) for place in range(data.draw(st.integers(1, 3)))
    ]
    row = table_after([log, forced])[KEY]
    assert (row.values["x"], row.values["y"]) == (len(forced) - 1, None)
    assert table_after([[*log, delete(0, 100, force_update=True)]])[KEY].is_deleted


@given(logs(forced=True))
def test_versions_never_decrease(log: list[ChangeEvent]) -> None:
    table: Table = {}
    for event in log:
        before, table = table.get(event.row_key, RowState()), table_after([[event]], table)
        after = table.get(event.row_key, RowState())
        for name, column in before.columns.items():
            assert (
                after.columns.get(name, ColumnState(None, after.tombstone or column.version)).version >= column.version
            )
        assert before.tombstone is None or (after.tombstone is not None and after.tombstone >= before.tombstone)


def test_a_forced_change_gives_the_value_and_keeps_the_greater_reference_key() -> None:
    table = table_after([[change(5, 1, x="wrong"), change(1, 2, x="right", force_update=True)]])
    assert table[KEY].values == {"x": "right"}
    assert merge([change(4, 3, x="older")], table).fates == (SUPERSEDED,)
    assert merge([change(6, 4, x="newer")], table).fates == (APPLIED,)
    assert merge([change(5, 1, x="wrong")], table).fates == (REDELIVERED,)


def test_a_forced_change_that_repeats_is_redelivered_also_where_a_newer_one_stands() -> None:
    forced, newer = change(1, 1, x=1, force_update=True), change(2, 2, x=2)
    assert merge([forced, forced]).fates == (APPLIED, REDELIVERED)
    assert merge([forced], table_after([[forced, newer]])).fates == (REDELIVERED,)


def test_an_event_that_a_forced_one_replaces_in_the_same_batch_is_superseded() -> None:
    forced = change(1, 2, x=1, force_update=True)
    assert merge([change(5, 1, x=5), forced]).fates == (SUPERSEDED, APPLIED)
    assert merge([forced, delete(0, 3, force_update=True)]).fates == (SUPERSEDED, APPLIED)


def test_a_forced_delete_removes_newer_columns_and_they_do_not_come_back() -> None:
    newer = change(5, 1, x=5)
    table = table_after([[newer], [delete(1, 2, force_update=True)]])
    assert table[KEY].is_deleted
    assert merge([newer], table).rows == {}


def test_a_forced_change_brings_a_deleted_row_back() -> None:
    removed = delete(5, 1)
    table = table_after([[removed], [change(1, 2, x=1, force_update=True)]])
    assert table[KEY].values == {"x": 1}
    assert merge([removed, change(4, 3, y=4)], table) == MergedBatch((REDELIVERED, SUPERSEDED), {})


def test_a_repetition_does_not_take_back_what_a_forced_change_gave_in_the_same_batch() -> None:
    event, forced = change(5, 1, x=5), change(1, 2, x=1, force_update=True)
    removed, forced_delete = delete(5, 1), delete(1, 2, force_update=True)
    assert merge([event, forced, event]).fates == (SUPERSEDED, APPLIED, SUPERSEDED)
    assert merge([removed, forced_delete, removed]).fates == (SUPERSEDED, APPLIED, SUPERSEDED)


def test_forced_changes_of_another_data_center_are_no_repetitions() -> None:
    table = table_after([[change(1, 5, x=5, data_center="dc2", force_update=True)]])
    assert merge([change(1, 3, x=3, force_update=True)], table).fates == (APPLIED,)
