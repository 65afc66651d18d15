"""What was left out and the data says: a column that holds partitions, and one that says when a row happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from lakehub.catalog.metadata import ColumnMetadata, ColumnType, TableMetadata
from lakehub.catalog.onboarding import partition_proposal as proposal
from lakehub.catalog.storages import Storage
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import TIME, partition_form

CHANGE_COLUMNS = ("updated_at", "modified_at", "last_modified", "changed_at")
"""They say when a row was changed last: it would move from partition to partition."""
PARTITION_COLUMNS = ("ds", "dt", "partition_date", "date", "day", "event_date", "load_date", "snapshot_date")
EVENT_TIME_COLUMNS = ("event_time", "occurred_at", "event_ts", "event_timestamp", "created_at", "timestamp", "ts")
MAX_COLUMNS_READ = 8
"""The values of so many columns are looked at; those whose names say something first."""
_MIN_VALUES = 2
_FITTING_TYPES = (ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.STRING, ColumnType.INTEGER)


@dataclass(frozen=True)
class ColumnProposal:
    """`field` of the application could be `column`. Of a partition with grain and form, and what its newest value means."""

    field: str
    column: str
    grain: str = Grain.NONE
    form: str = ""
    newest: str = ""

    @property
    def reason(self) -> str:
        if self.field == "event_time":
            return f"By its values `{self.column}` says when a row happened."
        form = f", written as `{self.form}`" if self.form else ""
        newest = f": {self.newest}" if self.newest else ""
        return f"By its values `{self.column}` says the partition, by {self.grain}{form}{newest}."

    @property
    def sentence(self) -> str:
        """With what comes of leaving it out."""
        if self.field == "event_time":
            return f"No event time was named, so freshness goes by partitions or commits. {self.reason}"
        return f"No partition was named, so the table is one piece. {self.reason}"


def propose_columns(
    table: TableMetadata, source: Storage, name: str, *, partition: bool, event_time: bool, zone: ZoneInfo
) -> tuple[ColumnProposal, ...]:
    """For those of the two that are wanted. Raises MetadataUnavailable."""
    proposals: list[ColumnProposal] = []
    if partition:
        proposals += _first(_partitions(table, source, name, zone))
    if event_time:
        proposals += _first(_event_times(table, source, name))
    return tuple(proposals)


def _first(proposals: Iterator[ColumnProposal]) -> list[ColumnProposal]:
    return [proposed] if (proposed := next(proposals, None)) is not None else []


def _partitions(table: TableMetadata, source: Storage, name: str, zone: ZoneInfo) -> Iterator[ColumnProposal]:
    for column in _in_order(table, PARTITION_COLUMNS):
        newest = source.newest_values(name, (column.name,), proposal.SAMPLE_VALUES)
        proposed = proposal.propose_partition(table, column.name, newest.values, zone)
        is_named = column.name.lower() in PARTITION_COLUMNS
        if proposed is None or (not is_named and not _is_surely_time(column, proposed, newest.values)):
            continue
        form = partition_form(column.name, proposed.grain, zone, proposed.form)
        if proposal.partition_problem(table, form):
            form = partition_form(
                column.name, proposed.grain, zone, proposal.form_by_types(table, column.name, proposed.grain, "")
            )
        meaning = proposal.newest_meaning(form, newest)
        yield ColumnProposal("partition_column", column.name, proposed.grain, proposed.form, meaning)


def _is_surely_time(
    column: ColumnMetadata, proposed: proposal.PartitionProposal, values: Sequence[tuple[object, ...]]
) -> bool:
    """Of a column whose name says nothing: numbers such as 2013 may count anything, and one value says little."""
    if len(values) < _MIN_VALUES:
        return False
    if column.type is ColumnType.INTEGER:
        return proposed.form in ("%Y%m%d", "%Y%m%d%H")
    return column.type in (ColumnType.DATE, ColumnType.TIMESTAMP) or proposed.grain in (Grain.DAY, Grain.HOUR)


def _event_times(table: TableMetadata, source: Storage, name: str) -> Iterator[ColumnProposal]:
    for column in _in_order(table, EVENT_TIME_COLUMNS):
        if column.type is ColumnType.TIMESTAMP and source.newest_values(name, (column.name,), 1).values:
            yield ColumnProposal("event_time", column.name, form=TIME)


def _in_order(table: TableMetadata, likely: Sequence[str]) -> Iterator[ColumnMetadata]:
    """Names that say what they are, then dates, times, texts and numbers. What says when a row was changed is left out."""

    def rank(column: ColumnMetadata) -> tuple[int, int]:
        name = column.name.lower()
        place = likely.index(name) if name in likely else len(likely)
        return place, _FITTING_TYPES.index(column.type)

    fitting = [
        column
        for column in table.columns
        if column.type in _FITTING_TYPES and column.name.lower() not in CHANGE_COLUMNS
    ]
    yield from sorted(fitting, key=rank)[:MAX_COLUMNS_READ]
