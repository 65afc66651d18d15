"""What change events make of a table: which rows are written where, which are removed, and what became of each event.

The rule is `ingestion.domain.merging`; here it meets rows as they lie in the lake, with the state of each in its metadata column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ingestion.domain.accounting import RowCounts, RowFate
from ingestion.domain.merging.emptied import emptied
from ingestion.domain.merging.events import ChangeEvent, Operation, ReferenceKey, RowKey, Version
from ingestion.domain.merging.merge import MergedBatch, merge_batch
from ingestion.domain.merging.row_state import ColumnState, RowState
from ingestion.domain.merging.stored_metadata import (
    METADATA_COLUMN,
    LatestEvent,
    latest_event_of,
    metadata_of,
    row_state,
)
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.loading.judging import StoredRow, partition_path, with_kept_partition

ColumnsOf = Callable[[int], Collection[str]]
"""The columns of a version of the schema."""


@dataclass(frozen=True)
class Change:
    """An event with plain values (`plain_rows`), its key as Hudi writes it, and what the metadata of its row will say of it."""

    event: ChangeEvent
    key: str
    row_key_text: str
    facts: LatestEvent


@dataclass(frozen=True)
class MergeRules:
    """`columns`: of the table, without the metadata."""

    table: TableSpec
    columns: tuple[str, ...]
    columns_of: ColumnsOf
    reference_type: type[ReferenceKey] | None
    siblings: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By column those that changes give together with it, itself included: a change that came before the table had one of them has made it null."""
    emptied: Version | None = None
    """Where in the order of changes the source was emptied last. None: it never was."""


@dataclass(frozen=True)
class Merged:
    """`rows`: what is to be written. `tombstones`: what is left of rows that are deleted now, to be kept before anything else is written; of one that is
    there its metadata has it. `moved`: how many keys go to another partition. `doubled`: keys that the table holds more than once; nothing may be written then."""

    counts: RowCounts
    rows: tuple[PlacedRow, ...]
    tombstones: Mapping[str, RowState]
    moved: int = 0
    doubled: tuple[str, ...] = ()


def merge_changes(
    changes: Sequence[Change],
    stored_rows: Sequence[StoredRow],
    tombstones: Mapping[str, RowState],
    rules: MergeRules,
    *,
    errors: int,
) -> Merged:
    """`stored_rows` and `tombstones`: of the keys of the changes. `errors`: of events that were read and are no changes."""
    keys = {change.event.row_key: change.key for change in changes}
    stored = {row.key: row for row in sorted(stored_rows, key=lambda row: row.instant)}
    held = Counter(row.key for row in stored_rows)
    states = {row_key: _state(stored.get(key), tombstones.get(key), rules) for row_key, key in keys.items()}
    merged = merge_batch((change.event for change in changes), states, reference_type=rules.reference_type)
    latest = _latest_changes(changes, merged)
    rows, moved = [], 0
    for row_key, state in merged.rows.items():
        written = [*_placed(state, latest.get(row_key), stored.get(keys[row_key]), keys[row_key], rules)]
        rows += written
        moved += sum(row.row is None for row in written) if not state.is_deleted else 0
    dead = {keys[row_key]: state for row_key, state in merged.rows.items() if state.is_deleted}
    counts = RowCounts.of(merged.fates) + RowCounts(read=errors, errors=errors)
    return Merged(counts, tuple(rows), dead, moved, tuple(key for key, times in held.items() if times > 1))


def _state(stored: StoredRow | None, tombstone: RowState | None, rules: MergeRules) -> RowState:
    if stored is None:
        return emptied(tombstone or RowState(), rules.emptied)
    values = {name: stored.row[name] for name in rules.columns}
    state = emptied(row_state(values, stored.row[METADATA_COLUMN], rules.columns_of), rules.emptied)
    return _completed(state, rules.siblings)


def _completed(state: RowState, siblings: Mapping[str, Collection[str]]) -> RowState:
    versions: dict[str, Version] = {}
    for name, column in state.columns.items():
        for sibling in siblings.get(name, ()):
            if sibling not in state.columns:
                versions[sibling] = max(versions.get(sibling, column.version), column.version)
    if not versions:
        return state
    missing = {name: ColumnState(None, version) for name, version in versions.items()}
    return replace(state, columns={**state.columns, **missing})


def _latest_changes(changes: Sequence[Change], merged: MergedBatch) -> dict[RowKey, Change]:
    """By row the change with the greatest version of those that gave it a column."""
    latest: dict[RowKey, Change] = {}
    for change, fate in zip(changes, merged.fates, strict=True):
        event = change.event
        if fate is RowFate.APPLIED and event.operation is not Operation.DELETE:
            before = latest.get(event.row_key)
            if before is None or event.version > before.event.version:
                latest[event.row_key] = change
    return latest


def _placed(
    state: RowState, latest: Change | None, stored: StoredRow | None, key: str, rules: MergeRules
) -> Iterator[PlacedRow]:
    """A row that moves to another partition is removed from the one that it was in. Where keys stay, none does."""
    if state.is_deleted:
        if stored is not None:
            yield PlacedRow.removed(stored.key, stored.group)
        return
    row = with_kept_partition(_row(state, latest, stored, rules), stored, rules.table)
    partition = partition_path(row, rules.table)
    if stored is not None and stored.group.partition == partition:
        yield PlacedRow(stored.key, partition, stored.group.file_id, row)
        return
    if stored is not None:
        yield PlacedRow.removed(stored.key, stored.group)
    yield PlacedRow(key, partition, None, row)


def _row(state: RowState, latest: Change | None, stored: StoredRow | None, rules: MergeRules) -> dict[str, Any]:
    """Where only an older delete was applied, the row is still that of the change which wrote it."""
    values = state.values
    if latest is not None:
        row_key, facts = latest.row_key_text, latest.facts
    else:
        assert stored is not None
        row_key, facts = stored.row[METADATA_COLUMN]["row_key"], latest_event_of(stored.row[METADATA_COLUMN])
    metadata = metadata_of(row_key, state, facts, rules.columns_of(facts.schema_version))
    return {name: values.get(name) for name in rules.columns} | {METADATA_COLUMN: metadata}
