"""Whole rows without deletes merge as `fates_of` has it, which is what the copies of today are loaded by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.accounting import Event, RowFate, fates_of
from ingestion.domain.merging.events import ChangeEvent
from ingestion.domain.merging.merge import merge_batch
from tests.unit.ingestion.change_events import COLUMNS, Table, change

ROWS = st.tuples(st.sampled_from("ab"), st.integers(0, 3))


@given(st.lists(st.lists(ROWS)))
def test_whole_rows_merge_as_by_fates_of(every_batch: list[list[tuple[str, int]]]) -> None:
    """An event is named by its key and its reference key, and comes again in any order."""
    compare_with_fates_of([[whole_row(key, reference, reference) for key, reference in rows] for rows in every_batch])


@given(st.lists(st.lists(ROWS)), st.booleans())
def test_whole_rows_in_log_order_merge_as_by_fates_of(every_batch: list[list[tuple[str, int]]], keyed: bool) -> None:
    """Each at a position of its own, with equal reference keys or none."""
    positions = iter(range(10_000))
    compare_with_fates_of(
        [
            [whole_row(key, reference if keyed else None, next(positions)) for key, reference in rows]
            for rows in every_batch
        ]
    )


def compare_with_fates_of(every_batch: list[list[ChangeEvent]]) -> None:
    table: Table = {}
    rows: dict[object, Event] = {}
    for batch in every_batch:
        events = [Event(event.row_key, event.reference_key, tuple(event.values.items())) for event in batch]
        merged = merge_batch(batch, table, reference_type=None if any(e.reference_key is None for e in batch) else int)
        assert merged.fates == expected_fates(events, rows)
        table |= merged.rows
        rows |= {e.key: e for e, fate in zip(events, merged.fates, strict=True) if fate is RowFate.APPLIED}
        assert {key: tuple(row.values.items()) for key, row in table.items()} == {k: e.content for k, e in rows.items()}


def expected_fates(events: list[Event], rows: dict[object, Event]) -> tuple[RowFate, ...]:
    """Those of `fates_of` but for one case: of repetitions in a batch that are older than the stored row it calls the last superseded, the others redelivered."""
    older = [e.reference is not None and e.key in rows and e.reference < rows[e.key].reference for e in events]
    fates = fates_of(events, rows)
    return tuple(RowFate.SUPERSEDED if is_older else fate for is_older, fate in zip(older, fates, strict=True))


def whole_row(key: str, reference: int | None, position: int) -> ChangeEvent:
    return change(reference, position, key=key, **dict.fromkeys(COLUMNS, position))
