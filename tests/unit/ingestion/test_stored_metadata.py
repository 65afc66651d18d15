"""What a table keeps of a row is enough to merge later and late changes into it as if all changes had been merged at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.domain.column_types import parse_type
from ingestion.domain.merging.events import ChangeEvent, RowKey, Version
from ingestion.domain.merging.row_state import ColumnState, RowState
from ingestion.domain.merging.stored_metadata import LatestEvent, metadata_of, metadata_type, row_state
from tests.unit.ingestion.change_events import COLUMNS, Table, batches, deliveries, logs, merge, table_after

NOW = datetime(2026, 11, 26, tzinfo=UTC)
SCHEMAS = {1: ("x", "y", "z"), 2: ("x", "y", "z", "added"), 3: ("x",)}
VERSIONS = st.builds(Version, st.integers(0, 3), st.sampled_from(["", "dc2"]), st.tuples(st.integers(0, 9)))
STATES = st.builds(
    RowState,
    st.dictionaries(
        st.sampled_from(SCHEMAS[2]), st.builds(ColumnState, st.none() | st.integers(), VERSIONS), min_size=1
    ),
    st.none() | VERSIONS,
    st.dictionaries(st.sampled_from(["", "dc2"]), st.tuples(st.integers(0, 9))),
)


def latest(schema_version: int) -> LatestEvent:
    return LatestEvent("mysql:ops/shop.trips", NOW, NOW, schema_version)


def stored_and_read(state: RowState, schema_version: int = 1) -> RowState:
    """The table has all columns; what a row was not given is null there."""
    values = dict.fromkeys(SCHEMAS[2]) | state.values
    metadata = metadata_of('["a"]', state, latest(schema_version), SCHEMAS[schema_version])
    return row_state(values, metadata, SCHEMAS.__getitem__)


@given(STATES, st.sampled_from([*SCHEMAS]))
def test_the_state_of_a_row_is_read_back_as_it_was(state: RowState, schema_version: int) -> None:
    assert stored_and_read(state, schema_version) == state


def through_the_lake(table: Table) -> Table:
    """Rows that are deleted lie elsewhere, as tombstones."""
    return {key: state if state.is_deleted else stored_and_read(state) for key, state in table.items()}


def merged_in_batches(every_batch: list[list[ChangeEvent]]) -> Table:
    table: dict[RowKey, RowState] = {}
    for batch in every_batch:
        table = through_the_lake({**table, **merge(batch, table).rows})
    return table


@given(deliveries())
def test_merging_goes_on_from_what_the_lake_keeps(every_batch: list[list[ChangeEvent]]) -> None:
    assert merged_in_batches(every_batch) == table_after(every_batch)


@settings(max_examples=200)
@given(st.data())
def test_forced_changes_are_made_once_from_what_the_lake_keeps(data: st.DataObject) -> None:
    log = data.draw(logs(forced=True))
    repeated = data.draw(batches([*log, *log]))
    assert merged_in_batches(repeated) == table_after([log])


def test_a_row_that_one_change_wrote_has_its_version_once_and_no_lists() -> None:
    """Most rows are so. Of one that was changed in part each version is there with its columns."""
    version = Version(5, "dc1", (1, 2))
    state = RowState({name: ColumnState(None, version) for name in COLUMNS})
    metadata = metadata_of('["a"]', state, latest(1), SCHEMAS[1])
    assert (metadata["reference_key"], metadata["data_center"], metadata["position"]) == (5, "dc1", [1, 2])
    assert (metadata["changelog_columns"], metadata["deleted"], metadata["forced"]) == (None, None, None)
    assert row_state(dict.fromkeys(COLUMNS), metadata, SCHEMAS.__getitem__) == state
    part = replace(state, columns={**state.columns, COLUMNS[0]: ColumnState(1, Version(6, "dc1", (1, 3)))})
    entries = metadata_of('["a"]', part, latest(1), SCHEMAS[1])["changelog_columns"]
    assert [(entry["ref_key"], entry["changed_fields"]) for entry in entries] == [
        (6, [COLUMNS[0]]),
        (5, sorted(COLUMNS[1:])),
    ]


def test_the_type_of_the_column_is_one_that_tables_of_the_lake_can_have() -> None:
    for reference in (int, bytes, None):
        assert parse_type(str(metadata_type(reference))) == metadata_type(reference)


def test_the_columns_are_those_of_the_type() -> None:
    metadata = metadata_of('["a"]', RowState({"x": ColumnState(1, Version(5, "dc1", (1,)))}), latest(1), SCHEMAS[1])
    assert [*metadata] == [name for name, _ in metadata_type(int).fields]  # type: ignore[union-attr]
