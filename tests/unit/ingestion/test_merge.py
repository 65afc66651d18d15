"""Changes merge to the same rows however they come, and each has one fate."""

from __future__ import annotations

from hypothesis import given

from ingestion.domain.accounting import RowCounts, RowFate
from ingestion.domain.merging.events import ChangeEvent
from ingestion.domain.merging.merge import MergedBatch
from tests.unit.ingestion.change_events import (
    Table,
    change,
    delete,
    deliveries,
    logs,
    merge,
    model_fates,
    model_table,
    table_after,
)

APPLIED, SUPERSEDED, REDELIVERED, ERROR = RowFate
KEY = ("a",)


@given(deliveries())
def test_the_end_state_does_not_depend_on_order_batches_or_repetition(every_batch: list[list[ChangeEvent]]) -> None:
    assert table_after(every_batch) == model_table(event for batch in every_batch for event in batch)


@given(deliveries())
def test_fates_are_those_of_the_model(every_batch: list[list[ChangeEvent]]) -> None:
    table: Table = {}
    history: list[ChangeEvent] = []
    for batch in every_batch:
        merged = merge(batch, table)
        assert merged.fates == model_fates(history, batch)
        table |= merged.rows
        history += batch


@given(deliveries())
def test_what_comes_again_changes_no_row(every_batch: list[list[ChangeEvent]]) -> None:
    table = table_after(every_batch)
    for batch in every_batch:
        merged = merge(batch, table)
        assert merged.rows == {}
        assert APPLIED not in merged.fates


def test_each_column_goes_to_the_greater_reference_key() -> None:
    merged = merge([change(2, 1, x=2, y=2), change(1, 2, x=1, z=1)])
    assert merged.fates == (APPLIED, APPLIED)
    assert merged.rows[KEY].values == {"x": 2, "y": 2, "z": 1}


def test_an_absent_column_is_kept_and_none_sets_null() -> None:
    merged = merge([change(1, 1, x=1, y=1), change(2, 2, x=None)])
    assert merged.rows[KEY].values == {"x": None, "y": 1}


def test_of_two_data_centers_the_greater_reference_key_wins_then_the_greater_data_center() -> None:
    first, second = change(1, 9, x="dc1", data_center="dc1"), change(1, 1, x="dc2", data_center="dc2")
    for batch in ([first, second], [second, first]):
        assert merge(batch).rows[KEY].values == {"x": "dc2"}
    assert merge([change(2, 1, x="newer", data_center="dc1"), second]).rows[KEY].values == {"x": "newer"}


def test_equal_reference_keys_are_decided_by_position_not_by_arrival() -> None:
    early, late = change(1, 1, x="early"), change(1, 2, x="late")
    assert merge([late, early]).fates == (APPLIED, SUPERSEDED)
    assert table_after([[early], [late], [early]])[KEY].values == {"x": "late"}


def test_a_late_older_event_does_not_bring_a_deleted_row_back() -> None:
    table = table_after([[change(1, 1, x=1)], [delete(3, 3)]])
    assert table[KEY].is_deleted
    assert merge([change(2, 2, x=2, y=2)], table) == MergedBatch((SUPERSEDED,), {})


def test_a_delete_that_comes_late_takes_only_the_older_columns() -> None:
    row = table_after([[change(1, 1, x=1, y=1), change(3, 3, x=3)], [delete(2, 2)]])[KEY]
    assert row.values == {"x": 3}


def test_a_tombstone_outlives_the_newer_row() -> None:
    table = table_after([[delete(2, 2)], [change(3, 3, x=3)]])
    assert merge([change(1, 1, y=1)], table).fates == (SUPERSEDED,)


def test_a_row_inserted_after_its_delete_with_the_same_reference_key_is_there() -> None:
    removed, inserted = delete(1, 1), change(1, 2, x=1)
    for batch in ([removed, inserted], [inserted, removed]):
        assert merge(batch).fates == (APPLIED, APPLIED)
        assert merge(batch).rows[KEY].values == {"x": 1}


def test_a_delete_beats_a_column_of_the_same_version() -> None:
    event, removed = change(1, 1, x=1), delete(1, 1)
    for batch in ([removed, event], [event, removed]):
        assert merge(batch).rows[KEY].is_deleted


def test_an_event_that_repeats_is_applied_once() -> None:
    event, removed = change(1, 1, x=1), delete(2, 2)
    assert merge([event, event]).fates == (REDELIVERED, APPLIED)
    assert merge([removed, removed, event]).fates == (REDELIVERED, APPLIED, SUPERSEDED)
    assert merge([event, removed], table_after([[event, removed]])).fates == (SUPERSEDED, REDELIVERED)


# Of every batch


@given(logs(forced=True), logs(forced=True))
def test_the_sum_holds_and_no_more_keys_are_written_than_events_applied(
    before: list[ChangeEvent], log: list[ChangeEvent]
) -> None:
    stored = table_after([before])
    misfits = [change(None, 1, x=1), change(1, 1)]
    merged = merge([*log, *misfits], stored)
    counts = RowCounts.of(merged.fates)
    assert counts.is_balanced
    assert (counts.read, counts.errors) == (len(log) + 2, 2)
    assert len(merged.rows) <= counts.applied
    assert {key for key, row in merged.rows.items() if row == stored.get(key)} == set()


@given(logs(forced=True), logs(forced=True), logs(forced=True))
def test_two_batches_merge_as_one(
    before: list[ChangeEvent], first: list[ChangeEvent], second: list[ChangeEvent]
) -> None:
    stored = table_after([before])
    assert table_after([first, second], stored) == table_after([[*first, *second]], stored)


def test_an_event_that_does_not_fit_changes_nothing() -> None:
    assert merge([change(None, 1, x=1)]) == MergedBatch((ERROR,), {})


def test_an_empty_batch_changes_nothing() -> None:
    assert merge([]) == MergedBatch((), {})


def test_an_event_that_repeats_is_redelivered_as_long_as_a_column_of_it_stands() -> None:
    event = change(1, 1, x=1, y=1)
    assert merge([event], table_after([[event, change(2, 2, x=2)]])).fates == (REDELIVERED,)
