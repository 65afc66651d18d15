"""A table that is emptied as a whole loses exactly what was there then, whenever anybody hears of it; and the tap keeps when that was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.capture.binlog.events import Statement
from ingestion.capture.tap.position import reference_key, reference_key_after
from ingestion.domain.merging.emptied import emptied
from ingestion.domain.merging.events import ChangeEvent, Operation, RowKey, Version
from ingestion.domain.merging.merge import merge_batch
from ingestion.domain.merging.row_state import ColumnState, RowState
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.sources import SourceConfig, SourceError, has_changes
from ingestion.sources.mysql.source import MysqlSource
from lakehub.kernel.cells.cell_tables import CellOptions
from tests.unit.ingestion.capture.tapping import SPECS, TRIPS, Server, Tapping, inserted, row, transaction
from tests.unit.ingestion.heatpipe.messages import subject_schema

KEYS: list[RowKey] = [("a",), ("b",), ("c",)]
TRUNCATED = 5
BEFORE = reference_key(TRUNCATED, 0)
AT = Version(BEFORE, "", (0,))


def change(number: int, key: RowKey, sequence: int, *, kind: str) -> ChangeEvent:
    """A change of the log, a row as a load has read it after a transaction, or a delete: all are of whole rows. `number`: its place in the log."""
    reference = reference_key_after(sequence) if kind == "load" else reference_key(sequence, number)
    values = {"id": key[0], "n": number}
    operation = Operation.DELETE if kind == "delete" else Operation.UPDATE
    return ChangeEvent(operation, key, reference, (number,), values, 1)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[ChangeEvent], list[ChangeEvent], set[int], int]:
    """All changes, the order in which they come with repetitions, where batches end, and after which of them jobs hear of the TRUNCATE."""
    kinds = st.sampled_from(["change", "delete", "load"])
    sequences = st.integers(1, 2 * TRUNCATED).filter(lambda each: each != TRUNCATED)
    plans = draw(st.lists(st.tuples(st.sampled_from(KEYS), sequences, kinds), min_size=1, max_size=12))
    changes = [change(number, key, sequence, kind=kind) for number, (key, sequence, kind) in enumerate(plans)]
    order = draw(st.permutations(changes)) + draw(st.lists(st.sampled_from(changes), max_size=6))
    ends = draw(st.sets(st.integers(1, len(order)), max_size=5)) | {len(order)}
    return changes, order, ends, draw(st.integers(0, len(ends)))


def by_the_obvious_model(changes: list[ChangeEvent]) -> dict[RowKey, RowState]:
    """A delete of each row there may be, in the place of the TRUNCATE."""
    deletes = [ChangeEvent(Operation.DELETE, key, BEFORE, (0,), {"id": key[0]}, 1) for key in KEYS]
    return merge_batch([*deletes, *changes], {}, reference_type=bytes).rows


@given(histories())
def test_the_end_is_that_of_a_delete_of_each_row_in_any_order_batching_and_repetition(
    history: tuple[list[ChangeEvent], list[ChangeEvent], set[int], int],
) -> None:
    changes, order, ends, heard_after = history
    lake: dict[RowKey, RowState] = {}
    at, start = None, 0
    for number, end in enumerate([*sorted(ends), len(order)]):
        if number == heard_after:
            at, lake = AT, without_rows_of_before(lake)
        stored = {key: emptied(lake.get(key, RowState()), at) for key in KEYS}
        lake |= merge_batch(order[start:end], stored, reference_type=bytes).rows
        start = end
    there = {key: state.columns for key, state in lake.items() if state.columns}
    assert there == {key: state.columns for key, state in by_the_obvious_model(changes).items() if state.columns}


def without_rows_of_before(lake: dict[RowKey, RowState]) -> dict[RowKey, RowState]:
    """What the commit that deletes them does: nothing is left of them, not even a tombstone."""
    newest = {key: max(each.version for each in state.columns.values()) for key, state in lake.items() if state.columns}
    gone = {key for key, version in newest.items() if (version.reference_key or b"") < BEFORE}  # type: ignore[operator]
    return {key: state for key, state in lake.items() if key not in gone}


def test_of_a_row_that_came_since_only_what_came_since_is_left() -> None:
    """And a delete that is newer than that stands."""
    old, new = Version(reference_key(4, 1), "", (1,)), Version(reference_key(6, 1), "", (2,))
    row_of_both = RowState({"a": ColumnState(1, old), "b": ColumnState(2, new)}, old)
    assert emptied(row_of_both, AT) == RowState({"b": ColumnState(2, new)}, AT)
    assert emptied(replace(row_of_both, tombstone=new), AT).tombstone == new
    assert emptied(row_of_both, None) is row_of_both


def taken(*events: Any, **policy: Any) -> Tapping:
    tapping = Tapping(Server([transaction(4, inserted(TRIPS, row(1))), transaction(5, *events)]))
    tapping.server.transactions = [*tapping.server.transactions, transaction(6, inserted(TRIPS, row(2)))]
    tapping.run([replace(SPECS[0], **policy), SPECS[1]])
    return tapping


TRUNCATE = Statement("shop", "TRUNCATE TABLE trips")


def test_the_tap_goes_on_and_keeps_when_it_was() -> None:
    tapping = taken(TRUNCATE, follows_truncate=True)
    assert (tapping.versions.emptied, tapping.stopped, len(tapping.events())) == ({"trips": 5}, {}, 2)


@pytest.mark.parametrize(
    ("sql", "policy"),
    [
        ("TRUNCATE TABLE trips", {}),
        ("DROP TABLE trips", {"follows_truncate": True}),
        ("ALTER TABLE trips TRUNCATE PARTITION p0", {"follows_truncate": True}),
        ("ALTER TABLE trips IMPORT TABLESPACE", {"follows_truncate": True}),
    ],
)
def test_all_else_that_takes_rows_away_stops_the_dataset(sql: str, policy: dict[str, Any]) -> None:
    tapping = taken(replace(TRUNCATE, sql=sql), **policy)
    assert (tapping.versions.emptied, [*tapping.stopped], len(tapping.events())) == ({}, ["trips"], 1)


def test_a_table_of_cells_has_another_order_of_changes_and_stops() -> None:
    tapping = Tapping(Server([transaction(5, TRUNCATE)]))
    tapping.run([replace(SPECS[0], cells=CellOptions(), follows_truncate=True)])
    assert (tapping.versions.emptied, [*tapping.stopped]) == ({}, ["trips"])


def test_a_job_deletes_once_and_one_that_was_not_told_reads_nothing(tmp_path: Any) -> None:
    """A look sees it, too, although no message says it; a load that began later has nothing to delete."""
    loaded = {"log": {}, "load": 1, "renamed": reference_key_after(3).hex()}

    def source(at: bytes, *, is_look: bool = False) -> MysqlSource:
        schemas = () if is_look else (subject_schema(),)
        topic = EventTopic("segments", tmp_path.as_uri(), "trips", schemas, emptied=at)
        options = EventTopic.from_options(topic.as_options()).as_options()
        return MysqlSource(SourceConfig("mysql://a:b@127.0.0.1:1/db", "trips", options=options, key_columns=("id",)))

    assert has_changes(source(BEFORE, is_look=True), loaded)
    due = source(BEFORE).changes(loaded).emptied  # type: ignore[attr-defined]
    assert (due.before, due.position) == (BEFORE, {**loaded, "emptied": BEFORE.hex()})
    assert not has_changes(source(BEFORE, is_look=True), due.position)
    assert not has_changes(source(b"", is_look=True), due.position)
    assert source(BEFORE).changes(due.position).emptied.position is None  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match="was emptied after this job was told"):
        source(b"").changes(due.position)
    later = {**loaded, "renamed": reference_key_after(TRUNCATED).hex()}
    assert source(BEFORE).changes(later).emptied.position is None  # type: ignore[attr-defined]
