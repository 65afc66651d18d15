"""How changes merge into rows, column by column (RULES.md, Ingestion).

- A column goes to the greater version: reference key, then data center, then position in the log.
- A delete leaves a tombstone that beats every column with a smaller or equal version, whether the column came before or comes after.
- Two events with equal reference keys from one data center are ordered by their positions. Positions are kept with the versions, so that
  this, too, does not depend on the order in which events arrive.
- `force_update` ignores versions: the event wins when it is read for the first time. The version that stays is the greater of the event's and
  those that it replaced. So versions never decrease, and a repetition of any event, forced or not, changes nothing.

Without `force_update` the end state is the same for any order, batching and repetition of the events. With it the events of a row must be read
in log order the first time; repetitions may come at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ingestion.domain.accounting import RowFate
from ingestion.domain.merging.events import ChangeEvent, Operation, ReferenceKey, RowKey, Version, misfit
from ingestion.domain.merging.row_state import ColumnState, RowState


class MergedBatch(NamedTuple):
    """The fate of each event, in order, and the rows that changed. A row changes only if an event of it was applied."""

    fates: tuple[RowFate, ...]
    rows: dict[RowKey, RowState]


def merge_batch(
    events: Iterable[ChangeEvent],
    stored: Mapping[RowKey, RowState],
    *,
    reference_type: type[ReferenceKey] | None,
) -> MergedBatch:
    """Merge events into the rows of their keys, in time proportional to the events. `stored` must have each of these rows that exists or has a tombstone.

    An event is *applied* if it gave a column or a tombstone that stands after the batch (of repetitions in the batch the last one, of forced ones
    the first), *redelivered* if what it gives already stands or it is a forced change that was made before, an *error* if it does not fit
    (`misfit`), and *superseded* otherwise.
    """
    batch = tuple(events)
    rows: dict[RowKey, _RowMerge] = {}
    row_by_place: dict[int, _RowMerge] = {}
    for place, event in enumerate(batch):
        if misfit(event, reference_type) is None:
            if event.row_key not in rows:
                rows[event.row_key] = _RowMerge(batch, stored.get(event.row_key, RowState()))
            row_by_place[place] = rows[event.row_key]
            row_by_place[place].add(place)
    fates = dict.fromkeys(range(len(batch)), RowFate.ERROR)
    fates |= {place: row.fate_unapplied(place) for place, row in row_by_place.items()}
    fates |= {place: RowFate.APPLIED for row in rows.values() for place in row.applied_places}
    return MergedBatch(tuple(fates.values()), {key: row.state for key, row in rows.items() if row.applied_places})


class _RowMerge:
    """A row while a batch is merged into it. Events are named by their places in the batch."""

    def __init__(self, batch: Sequence[ChangeEvent], before: RowState) -> None:
        self._batch = batch
        self._columns = dict(before.columns)
        self._tombstone = before.tombstone
        self._forced = dict(before.forced)
        self._writers: dict[str, int] = {}
        self._deleter: int | None = None
        self._forced_again: set[int] = set()

    @property
    def state(self) -> RowState:
        return RowState(self._columns, self._tombstone, self._forced)

    @property
    def applied_places(self) -> set[int]:
        return {*self._writers.values(), *([] if self._deleter is None else [self._deleter])}

    def add(self, place: int) -> None:
        event = self._batch[place]
        if event.force_update:
            if event.data_center in self._forced and event.position <= self._forced[event.data_center]:
                self._forced_again.add(place)
                return
            self._forced[event.data_center] = event.position
        if event.operation is Operation.DELETE:
            self._delete(place, event)
        else:
            for name, value in event.values.items():
                self._write(place, event, name, value)

    def fate_unapplied(self, place: int) -> RowFate:
        event = self._batch[place]
        if event.operation is Operation.DELETE:
            stands = event.version == self._version_of_delete()
        else:
            stands = any(event.version == self._version_of_writer(name) for name in event.values)
        return RowFate.REDELIVERED if stands or place in self._forced_again else RowFate.SUPERSEDED

    def _write(self, place: int, event: ChangeEvent, name: str, value: Any) -> None:
        versions = self._versions_to_exceed(name)
        wins = event.force_update or all(event.version > version for version in versions)
        if wins:
            self._columns[name] = ColumnState(value, max([event.version, *versions]))
        if wins or (name in self._writers and event.version == self._version_of_writer(name)):
            self._writers[name] = place

    def _delete(self, place: int, event: ChangeEvent) -> None:
        version = event.version
        if event.force_update:
            version = max([version, *self._versions_to_exceed(*self._columns)])
        elif self._tombstone is not None and version <= self._tombstone:
            if self._deleter is not None and version == self._version_of_delete():
                self._deleter = place
            return
        self._tombstone, self._deleter = version, place
        for name in [name for name, column in self._columns.items() if column.version <= version]:
            del self._columns[name]
            self._writers.pop(name, None)

    def _versions_to_exceed(self, *names: str) -> list[Version]:
        versions = [self._columns[name].version for name in names if name in self._columns]
        return versions if self._tombstone is None else [*versions, self._tombstone]

    def _version_of_writer(self, name: str) -> Version | None:
        """The version of the event that gave a column. A forced change may leave a greater one with the column."""
        if name in self._writers:
            return self._batch[self._writers[name]].version
        return self._columns[name].version if name in self._columns else None

    def _version_of_delete(self) -> Version | None:
        return self._tombstone if self._deleter is None else self._batch[self._deleter].version
