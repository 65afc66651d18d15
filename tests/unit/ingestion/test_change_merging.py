"""Change events in batches, merged into rows as they lie in the lake: the table is that of all events at once, whatever their order and repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.domain.accounting import RowCounts
from ingestion.domain.merging.events import ChangeEvent, Version
from ingestion.domain.merging.row_state import RowState
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, LatestEvent
from ingestion.spark.changes.merging import Change, Merged, MergeRules, merge_changes
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.loading.judging import StoredRow
from tests.unit.ingestion.change_events import COLUMNS, change, delete, deliveries, logs, model_table, table_after

NOW = datetime(2026, 11, 26, tzinfo=UTC)
TABLE = TableSpec("trips", "file:///lake/trips", "file:///lake/_errors", ("k",))
BY_CITY = replace(TABLE, partition_column="x")
VERSIONS = {1: COLUMNS, 2: (*COLUMNS, "added")}


@dataclass
class Lake:
    """What a writer makes of placed rows, without files."""

    table: TableSpec = TABLE
    columns: tuple[str, ...] = COLUMNS
    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """By partition and key."""
    tombstones: dict[str, RowState] = field(default_factory=dict)

    def merge(self, events: Sequence[ChangeEvent], *, errors: int = 0) -> Merged:
        changes = [
            Change(
                event, event.row_key[0], f'["{event.row_key[0]}"]', LatestEvent("test", NOW, NOW, event.schema_version)
            )
            for event in events
        ]
        rules = MergeRules(self.table, self.columns, VERSIONS.__getitem__, int)
        merged = merge_changes(changes, self._stored(), self.tombstones, rules, errors=errors)
        if merged.doubled:
            return merged
        for row in merged.rows:
            if row.row is None:
                del self.rows[row.partition, row.key]
            else:
                assert (row.file_id is None) == ((row.partition, row.key) not in self.rows)
                self.rows[row.partition, row.key] = dict(row.row)
        self.tombstones |= merged.tombstones
        return merged

    def _stored(self) -> list[StoredRow]:
        none = dict.fromkeys(self.columns)
        return [
            StoredRow(key, FileGroup(partition, f"file of {partition}"), "20261126", none | row)
            for (partition, key), row in self.rows.items()
        ]

    @property
    def values(self) -> dict[str, dict[str, Any]]:
        return {key: {name: row[name] for name in self.columns} for (_, key), row in self.rows.items()}


def expected(table: Any) -> dict[str, dict[str, Any]]:
    return {key[0]: dict.fromkeys(COLUMNS) | state.values for key, state in table.items() if not state.is_deleted}


@settings(max_examples=300)
@given(deliveries())
def test_the_table_is_that_of_all_events(batches: list[list[ChangeEvent]]) -> None:
    lake = Lake()
    for batch in batches:
        assert lake.merge(batch).counts.is_balanced
    assert lake.values == expected(model_table(event for batch in batches for event in batch))


@settings(max_examples=200)
@given(logs(forced=True), st.data())
def test_forced_changes_are_made_once_in_the_order_of_the_log(log: list[ChangeEvent], data: st.DataObject) -> None:
    lake, cut = Lake(), data.draw(st.integers(0, len(log)))
    for batch in (log[:cut], log[cut:], log):
        lake.merge(batch)
    assert lake.values == expected(table_after([log]))


@given(deliveries())
def test_what_comes_again_changes_nothing(batches: list[list[ChangeEvent]]) -> None:
    lake = Lake()
    for batch in batches:
        lake.merge(batch)
    again = lake.merge([event for batch in batches for event in batch])
    assert (again.rows, again.counts.applied) == ((), 0)


def test_events_that_are_none_are_counted_as_errors() -> None:
    assert Lake().merge([change(x=1)], errors=3).counts == RowCounts(read=4, applied=1, errors=3)


def test_a_row_that_moves_is_removed_where_it_was_and_keeps_its_other_columns() -> None:
    lake = Lake(BY_CITY)
    lake.merge([change(1, x="Ulm", y=7)])
    merged = lake.merge([change(2, 2, x="Bonn")])
    assert [(row.partition, row.row is None) for row in merged.rows] == [("x=Ulm", True), ("x=Bonn", False)]
    assert (merged.moved, lake.values) == (1, {"a": {"x": "Bonn", "y": 7, "z": None}})


def test_where_keys_stay_a_row_keeps_its_partition_and_takes_its_other_columns() -> None:
    lake = Lake(replace(BY_CITY, keys_stay=True))
    lake.merge([change(1, x="Ulm", y=7)])
    merged = lake.merge([change(2, 2, x="Bonn", y=8)])
    assert [(row.partition, row.file_id) for row in merged.rows] == [("x=Ulm", "file of x=Ulm")]
    assert (merged.moved, lake.values) == (0, {"a": {"x": "Ulm", "y": 8, "z": None}})
    lake.merge([delete(3, 3)])
    lake.merge([change(4, 4, x="Bonn")])
    assert [*lake.rows] == [("x=Bonn", "a")]


def test_a_delete_leaves_a_tombstone_that_a_late_event_meets() -> None:
    lake = Lake()
    lake.merge([change(1, x=1)])
    merged = lake.merge([delete(5, 2)])
    assert [row.row for row in merged.rows] == [None]
    assert merged.tombstones == {"a": RowState(tombstone=Version(5, "", (2,)))}
    assert lake.merge([change(3, 3, x=2)]).counts == RowCounts(read=1, superseded=1)
    assert lake.values == {}
    lake.merge([change(6, 4, y=2)])
    assert lake.values == {"a": {"x": None, "y": 2, "z": None}}


def test_a_delete_of_what_was_never_there_writes_its_tombstone_only() -> None:
    merged = Lake().merge([delete(5)])
    assert (merged.rows, [*merged.tombstones], merged.counts.applied) == ((), ["a"], 1)


def test_an_older_delete_takes_the_older_columns_and_the_row_stays_that_of_its_change() -> None:
    lake = Lake()
    lake.merge([change(1, x=1), change(9, 2, y=1)])
    lake.merge([delete(5, 3)])
    assert lake.values == {"a": {"x": None, "y": 1, "z": None}}
    assert lake.rows["", "a"][METADATA_COLUMN]["reference_key"] == 9


def test_a_column_that_the_table_got_later_was_not_given_by_older_events() -> None:
    """An event that carries it, with a reference key between, is applied in it."""
    lake = Lake()
    lake.merge([change(5, x=1, y=1, z=1)])
    lake.columns = VERSIONS[2]
    late = replace(change(3, 2, x=0), values={"x": 0, "added": "new"}, schema_version=2)
    assert lake.merge([late]).counts.applied == 1
    assert lake.values == {"a": {"x": 1, "y": 1, "z": 1, "added": "new"}}


def test_a_key_that_the_table_holds_twice_is_told() -> None:
    lake = Lake(BY_CITY)
    lake.merge([change(1, x="Ulm")])
    lake.rows["x=Bonn", "a"] = lake.rows["x=Ulm", "a"]
    assert lake.merge([change(2, 2, y=1)]).doubled == ("a",)
