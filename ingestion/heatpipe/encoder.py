"""Encodes change events: stamps their metadata, and refuses what the schema has no place for before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

from fastavro import schemaless_writer

from ingestion.domain.merging.events import ChangeEvent, Operation, ReferenceKey
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.plain_writing import append_bytes, append_long, append_text, micros_of, write_row
from ingestion.heatpipe.row_keys import row_key_text
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.heatpipe.wire_format import MAX_MESSAGE_BYTES, header
from lakehub.kernel.suggest import did_you_mean

_NOT_ENCODABLE = (ValueError, TypeError, OverflowError, AttributeError, ArithmeticError)
"""What fastavro raises for a value that is not of its type."""
_MAX_SHOWN = 200
_LONG = 2**63
_NULL, _VALUE, _REFERENCE_IS_LONG, _REFERENCE_IS_BYTES, _END_OF_LIST = 0, 2, 2, 4, 0
_ONE_ITEM = b"\x02"
_DELETED, _CHANGED = b"\x01\x00", b"\x00\x00"
"""Whether the row is gone, and no `force_update`."""


MENDED_SOURCE = "error table"
"""The source of events that were mended."""


class Message(NamedTuple):
    """As it lies in a log."""

    key: bytes
    value: bytes


@dataclass(frozen=True)
class Mended:
    """An event that comes from the error table: what was wrong with it, and the message as it was."""

    exception: str
    source_data: bytes


@dataclass(frozen=True)
class Encoder:
    """`key_columns`: of the dataset, in order. `source`: where the changes are made, for example a server and a table. `clock`: aware UTC."""

    schema: SubjectSchema
    key_columns: tuple[str, ...]
    source: str
    data_center: str
    clock: Callable[[], datetime]
    max_bytes: int = MAX_MESSAGE_BYTES

    def encode(self, event: ChangeEvent, *, source_column: str = "", mended: Mended | None = None) -> Message:
        """`source_column`: the column of the source that changed, of one that changes column by column. Raises UnfitEvent."""
        if (message := self._plainly(event, source_column, mended)) is not None:
            return message
        self._check(event)
        row_key = row_key_text(event.row_key)
        row = {name: event.values.get(name) for name in self.schema.columns}
        record = {"metadata": self._metadata(event, row_key, source_column, mended), "row": row}
        out = BytesIO(header(self.schema.schema_id))
        out.seek(0, 2)
        try:
            schemaless_writer(out, self.schema.parsed, record)
        except _NOT_ENCODABLE as problem:
            raise self._misfit(row, problem) from problem
        if out.tell() > self.max_bytes:
            reason = f"The event has {out.tell():,} bytes; {self.max_bytes:,} are allowed in a message."
            raise UnfitEvent(Defect.OVERSIZED, reason)
        return Message(row_key.encode(), out.getvalue())

    def _plainly(self, event: ChangeEvent, source_column: str, mended: Mended | None) -> Message | None:
        """None: something about it is to be written, or refused, by whoever knows all types."""
        values = event.values
        is_plain = not (mended or event.force_update) and values.keys() <= self.schema.checks.keys()
        reference = _reference_bytes(event.reference_key)
        if not is_plain or reference is None or not self._has_key(event):
            return None
        row_key = row_key_text(event.row_key).encode()
        out = bytearray(header(self.schema.schema_id))
        append_bytes(out, row_key)
        out += reference
        self._append_carried(out, event, source_column, reference)
        out += self._source_bytes
        append_long(out, micros_of(self.clock()) // 1_000)
        if event.source_committed_at is None:
            out.append(_NULL)
        else:
            out.append(_VALUE)
            append_long(out, micros_of(event.source_committed_at) // 1_000)
        out += _DELETED if event.operation is Operation.DELETE else _CHANGED
        out += self._last_bytes
        if not write_row(out, self.schema.writers, values) or len(out) > self.max_bytes:
            return None
        return Message(row_key, bytes(out))

    def _has_key(self, event: ChangeEvent) -> bool:
        keys = zip(self.key_columns, event.row_key, strict=True)
        return all(value is not None and event.values.get(name) == value for name, value in keys)

    def _append_carried(self, out: bytearray, event: ChangeEvent, source_column: str, reference: bytes) -> None:
        carried = () if len(event.values) == len(self.schema.checks) else tuple(event.values)
        if carried or source_column:
            out += _ONE_ITEM
            append_text(out, source_column)
            out += reference
            if carried:
                append_long(out, len(carried))
                for name in carried:
                    append_text(out, name)
            out.append(_END_OF_LIST)
        out.append(_END_OF_LIST)

    @cached_property
    def _source_bytes(self) -> bytes:
        out = bytearray()
        append_text(out, self.source)
        return bytes(out)

    @cached_property
    def _last_bytes(self) -> bytes:
        """Of the metadata, behind what an event says of itself."""
        out = bytearray((_NULL, _NULL))
        append_text(out, self.data_center)
        append_long(out, self.schema.version)
        return bytes(out)

    def _metadata(
        self, event: ChangeEvent, row_key: str, source_column: str, mended: Mended | None
    ) -> Mapping[str, Any]:
        carried = [] if len(event.values) == len(self.schema.columns) else list(event.values)
        column = {"name": source_column, "ref_key": event.reference_key, "changed_fields": carried}
        return {
            "row_key": row_key,
            "reference_key": event.reference_key,
            "changelog_columns": [column] if carried or source_column else [],
            "source": self.source,
            "schematised_at": self.clock(),
            "source_committed_at": event.source_committed_at,
            "is_deleted": event.operation is Operation.DELETE,
            "force_update": event.force_update,
            "error_exception": None if mended is None else mended.exception,
            "error_source_data": None if mended is None else mended.source_data,
            "data_center": self.data_center,
            "schema_version": self.schema.version,
        }

    def _check(self, event: ChangeEvent) -> None:
        """What Avro would leave out or change, and what no decoder would take for a row."""
        checks = self.schema.checks
        for name, value in event.values.items():
            if name not in checks:
                suggestion = did_you_mean(name, self.schema.columns)
                reason = f"Version {self.schema.version} of {self.schema.subject} has no column `{name}`.{suggestion}"
                raise UnfitEvent(Defect.FIELD, reason, name)
            check = checks[name]
            if check is not None and value is not None and (reason_against := check(value)):
                raise UnfitEvent(Defect.TYPE, f"`{name}` is {_shown(value)}: {reason_against}.", name)
        for name, value in zip(self.key_columns, event.row_key, strict=True):
            if value is None or event.values.get(name) != value:
                reason = f"`{name}` is a key column; the row has {_shown(event.values.get(name))} and the key {_shown(value)}."
                raise UnfitEvent(Defect.ROW_KEY, reason, name)

    def _misfit(self, row: Mapping[str, Any], problem: Exception) -> UnfitEvent:
        for name, field in self.schema.fields.items():
            try:
                schemaless_writer(BytesIO(), field, {name: row[name]})
            except _NOT_ENCODABLE as reason:
                shown = _shown(row[name])
                return UnfitEvent(Defect.TYPE, f"`{name}` is {shown}, which does not fit its type: {reason}", name)
        return UnfitEvent(Defect.CORRUPT, f"The event's metadata cannot be encoded: {problem}")


def _reference_bytes(key: ReferenceKey | None) -> bytes | None:
    """As a reference key is written; None: it is none that can be."""
    out = bytearray()
    if type(key) is bytes:
        out.append(_REFERENCE_IS_BYTES)
        append_bytes(out, key)
    elif type(key) is int and -_LONG <= key < _LONG:
        out.append(_REFERENCE_IS_LONG)
        append_long(out, key)
    else:
        return None
    return bytes(out)


def _shown(value: Any) -> str:
    return repr(value)[:_MAX_SHOWN]
