"""A table of a MariaDB server: its rows come chunk by chunk from the server, and its changes from the changelog that the server's tap writes.

A load begins where the changelog ends, and reads nothing older than what is there already: so nothing lies between the rows and their changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from ingestion.capture.null_instead import required_columns
from ingestion.capture.snapshot.definitions import named_table
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.capture.tap.position import reference_key_after
from ingestion.domain.batch_limits import UNLIMITED, BatchLimits, BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.log_moves import LOAD, LOADED_AT, LOADED_FROM, LOG
from ingestion.domain.merging.column_renames import ColumnRename
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.raw_chunks.folders import RawLoad
from ingestion.sources import (
    EmptiedTable,
    EventBatch,
    LogReading,
    RenamedColumns,
    SourceConfig,
    SourceError,
    SourceReading,
)
from ingestion.sources.logged_changes import ReferenceType, metadata_column, note_of_version, read_changes
from ingestion.sources.mysql.landed import LandedWalk, gone_changes, load_to_read_again
from ingestion.sources.mysql.rows_again import rows_again
from ingestion.sources.mysql.server import MysqlServer, OpenServer
from ingestion.sources.mysql.snapshot import SnapshotWalk

_RAW = "raw"
"""Of a load that goes on: by which name its chunks land."""
_EMPTIED = "emptied"
"""The place in the order of changes at which the source was emptied last, as far as the table has lost its rows of before."""
_RENAMED, _FILLED = "renamed", "filled"
"""Up to which place in the order of changes the renames of columns are made; and the last one for which stored rows were filled."""


class Walk(Protocol):
    """A part of the rows that are there, read once. Asked afterwards: `has_more`, `place`, from which the next part goes on, `least`, the transaction
    that all rows have seen, and `columns`, those of the rows that were read last."""

    has_more: bool
    least: int | None
    columns: Schema | None

    def batches(self, metadata: SchemaColumn) -> Iterator[EventBatch]:
        """`metadata`: the column that comes on top of the table's."""

    def place(self) -> Position: ...

    def estimated_rows(self) -> int | None: ...


class MysqlSource:
    """`config.options`: those of the topic (`EventTopic.as_options`), and of the columns that are hidden."""

    reference_type: ClassVar[ReferenceType] = bytes

    def __init__(self, config: SourceConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config, self._clock = config, clock
        self._topic = EventTopic.from_options(config.options)
        self._server = MysqlServer(config.url)

    def schema(self) -> Schema:
        if self._config.raw is not None and self._config.raw.is_read:
            columns = self._landed_walk(self._beginning(), BatchMeter(UNLIMITED, self._clock)).schema()
        else:
            with self._server.opened() as server:
                columns = self._columns(server)
        return Schema((*columns, metadata_column(self.reference_type)))

    def _columns(self, server: OpenServer) -> Schema:
        return server.captured_table(self._spec, self._topic).schema.row_columns

    def snapshot(
        self,
        *,
        upto: datetime | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
        after: Position | None = None,
        limits: BatchLimits = UNLIMITED,
    ) -> SourceReading:
        if only:
            raise SourceError(
                f"`{self._config.object}` is captured: its changes are in the lake already, so single partitions are not read again. "
                "Bootstrap it with `replace` where rows are missing."
            )
        load = self._topic.load
        start = self._beginning() if after is None else after
        if start[LOAD] != load:
            raise SourceError(
                f"The load of `{self._config.object}` has read a part of the table, and then its capture was stopped: what changed there since is nowhere. "
                "Bootstrap it with `replace`."
            )
        walk = self._walk(start, BatchMeter(limits, self._clock))

        def position() -> Position:
            if walk.has_more:
                return {**start, **walk.place()}
            loaded = {LOADED_FROM: start[LOG], LOADED_AT: start.get(LOADED_AT)}
            # All chunks have seen this transaction, so they have the columns of after it.
            renamed = reference_key_after(walk.least or 0).hex()
            return {
                LOG: start[LOG],
                LOAD: load,
                **loaded,
                _RENAMED: renamed,
                **note_of_version(self._topic, walk.columns),
            }

        total = None if after is not None else walk.estimated_rows
        batches = walk.batches(metadata_column(self.reference_type))
        return SourceReading(batches, position, total=total or (lambda: None), has_more=lambda: walk.has_more)

    def _walk(self, start: Position, meter: BatchMeter) -> Walk:
        raw, load = self._config.raw, self._load_of(start)
        if raw is not None and raw.is_read:
            return self._landed_walk(start, meter)
        return SnapshotWalk(self._server, self._spec, self._topic, self._config, start, meter, load)

    def _landed_walk(self, start: Position, meter: BatchMeter) -> LandedWalk:
        load = self._load_of(start)
        if load is None:
            raise SourceError(
                f"The load of `{self._config.object}` that goes on has landed no raw chunks. Bootstrap it without `from_chunks`."
            )
        return LandedWalk(load, self._config.key_columns, start, meter)

    def _load_of(self, start: Position) -> RawLoad | None:
        """None: its chunks do not land."""
        raw = self._config.raw
        return None if raw is None or _RAW not in start else raw.folder.load(start[_RAW])

    def _beginning(self) -> Position:
        """Of a load: what the log has by now is in the rows. One that has begun to land chunks goes on as it began, as long as the log has what changed since."""
        raw = self._config.raw
        if raw is None:
            return self._new_beginning()
        if raw.is_read:
            load = load_to_read_again(raw.folder, self._topic, self._config.object)
            return {**(load.beginning() or {}), _RAW: load.name}
        begun = raw.folder.load(raw.load).beginning()
        if begun is not None and begun[LOAD] == self._topic.load and not gone_changes(self._topic, begun):
            return begun
        return {**self._new_beginning(), _RAW: raw.load}

    def _new_beginning(self) -> Position:
        """The time first, so that it is not later than what the log has."""
        began_at = datetime.now(UTC).isoformat()
        return {LOG: self._topic.end(), LOAD: self._topic.load, LOADED_AT: began_at}

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading:
        if LOG not in position:
            raise SourceError(
                f"`{self._config.object}` was loaded by its cursor column, so nothing says from where on its changelog is to be read. Bootstrap it with `replace`."
            )
        renames, kind = self._renames(position), self.reference_type
        changes = read_changes(self._topic, self._config, position, limits, kind)
        return replace(changes, renames=renames, emptied=self._emptied(position))

    def _emptied(self, position: Position) -> EmptiedTable:
        """All rows of a load have seen the transaction up to which their columns are named."""
        mark, done = self._topic.emptied, bytes.fromhex(position.get(_EMPTIED, position.get(_RENAMED, "")))
        if mark > done:
            return EmptiedTable(mark, {**position, _EMPTIED: mark.hex()})
        deleted = bytes.fromhex(position.get(_EMPTIED, ""))
        if self._topic.schemas and position.get(LOAD) == self._topic.load and deleted > mark:
            raise SourceError(
                f"`{self._config.object}` was emptied after this job was told of it. Nothing was read; run the job again."
            )
        return EmptiedTable(mark)

    def rows_again(self, keys: Sequence[Sequence[str]]) -> LogReading:
        """Those of the table that have these keys, as changes. They say nothing of the changelog."""
        batches = rows_again(
            self._server, self._spec, self._topic, self._config, keys, metadata_column(self.reference_type)
        )
        return LogReading(batches, dict, total=lambda: len(keys))

    def _renames(self, position: Position) -> RenamedColumns:
        if not self._topic.schemas:
            return RenamedColumns()  # a look, which was told of none
        renames, mark = self._topic.renames, position.get(_RENAMED, "")
        made, due = (tuple(each for each in renames if (each.mark > mark) is is_due) for is_due in (False, True))
        if position.get(LOAD) == self._topic.load and position.get(_FILLED, "") > max(map(_mark, renames), default=""):
            raise SourceError(
                f"Columns of `{self._config.object}` were renamed after this job was told of them, and its rows have the new ones. Nothing was read; run the "
                "job again."
            )
        if not due:
            return RenamedColumns(made=made)
        versions = self._topic.event_schemas
        types = {name: type_ for each in versions for name, type_ in each.row_columns.types.items()}
        new = {name: types[name] for rename in due for name in rename.origins if name in types}
        columns_of = {each.version: each.columns for each in versions}
        return RenamedColumns(
            due, made, Schema.of(new), columns_of, {**position, _RENAMED: due[-1].mark, _FILLED: due[-1].mark}
        )

    @property
    def _spec(self) -> CaptureSpec:
        database, table = named_table(self._config.object, self._server.database)
        hidden = HiddenColumns.from_options(self._config.options)
        required, key = required_columns(self._config.options), self._config.key_columns
        return CaptureSpec(self._topic.topic, database, table, record_key=key, hidden=hidden, required=required)


def _mark(rename: ColumnRename) -> str:
    return rename.mark
