"""Change events for tests, the logs that hypothesis draws, and a slow, obvious model of the merge.

The model knows all events that were ever read and no order among them; it covers events without `force_update`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from ingestion.domain.accounting import RowFate
from ingestion.domain.merging.events import ChangeEvent, Operation, RowKey, Version
from ingestion.domain.merging.merge import MergedBatch, merge_batch
from ingestion.domain.merging.row_state import ColumnState, RowState

COLUMNS = ("x", "y", "z")
Table = dict[RowKey, RowState]


def change(reference: int | None = 1, position: int = 1, *, key: str = "a", **facts: Any) -> ChangeEvent:
    """An update of row `a`; `x=1` and the like are its columns."""
    values = {name: facts.pop(name) for name in COLUMNS if name in facts}
    operation = facts.pop("operation", Operation.UPDATE)
    return ChangeEvent(operation, (key,), reference, (position,), values, schema_version=1, **facts)


def delete(reference: int | None = 1, position: int = 1, **facts: Any) -> ChangeEvent:
    return change(reference, position, operation=Operation.DELETE, **facts)


@st.composite
def logs(draw: st.DrawFn, *, forced: bool = False) -> list[ChangeEvent]:
    """Events in log order, each at a position of its own. Reference keys are few, so that many are equal."""
    drafts = st.tuples(
        st.sampled_from(Operation),
        st.sampled_from("ab"),
        st.integers(0, 3),
        st.dictionaries(st.sampled_from(COLUMNS), st.none() | st.integers(0, 2), min_size=1),
        st.sampled_from(["", "dc2"]),
        st.booleans() if forced else st.just(False),
    )
    return [
        change(reference, position, key=key, operation=operation, data_center=center, force_update=force, **values)
        for position, (operation, key, reference, values, center, force) in enumerate(
            draw(st.lists(drafts, max_size=9))
        )
    ]


@st.composite
def batches(draw: st.DrawFn, events: Sequence[ChangeEvent]) -> list[list[ChangeEvent]]:
    """The events in order, cut anywhere."""
    cuts = sorted(draw(st.lists(st.integers(0, len(events)), max_size=3)))
    return [list(events[start:end]) for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True)]


@st.composite
def deliveries(draw: st.DrawFn) -> list[list[ChangeEvent]]:
    """A log without `force_update` in batches: in any order, each event at least once."""
    log = draw(logs())
    repetitions = draw(st.lists(st.sampled_from(log), max_size=6)) if log else []
    return draw(batches(draw(st.permutations([*log, *repetitions]))))


def merge(batch: Iterable[ChangeEvent], table: Table | None = None) -> MergedBatch:
    return merge_batch(batch, table or {}, reference_type=int)


def table_after(every_batch: Iterable[Sequence[ChangeEvent]], stored: Table | None = None) -> Table:
    table = dict(stored or {})
    for batch in every_batch:
        table |= merge(batch, table).rows
    return table


def model_table(history: Iterable[ChangeEvent]) -> Table:
    events = list(history)
    return {key: _model_row([event for event in events if event.row_key == key]) for key in {e.row_key for e in events}}


def model_fates(history: Sequence[ChangeEvent], batch: Sequence[ChangeEvent]) -> tuple[RowFate, ...]:
    """What stands after the batch and did not before was given by the last event of its version."""
    before, after = model_table(history), model_table([*history, *batch])
    fates = []
    for place, event in enumerate(batch):
        given, given_before = (_stands(event, table.get(event.row_key, RowState())) for table in (after, before))
        if not given:
            fates.append(RowFate.SUPERSEDED)
        elif given_before or event in batch[place + 1 :]:
            fates.append(RowFate.REDELIVERED)
        else:
            fates.append(RowFate.APPLIED)
    return tuple(fates)


def _model_row(events: Sequence[ChangeEvent]) -> RowState:
    deletes: list[Version] = [event.version for event in events if event.operation is Operation.DELETE]
    tombstone = max(deletes, default=None)
    columns = {}
    for name in COLUMNS:
        writes = [event for event in events if name in event.values and event.operation is not Operation.DELETE]
        latest = max(writes, key=lambda event: event.version, default=None)
        if latest is not None and (tombstone is None or latest.version > tombstone):
            columns[name] = ColumnState(latest.values[name], latest.version)
    return RowState(columns, tombstone)


def _stands(event: ChangeEvent, row: RowState) -> bool:
    return event.version in [row.tombstone, *(column.version for column in row.columns.values())]
