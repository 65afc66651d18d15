"""Decodes messages of any version of a dataset's schema into change events, and tells broken ones apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any, NamedTuple

from fastavro import schemaless_reader

from ingestion.domain.merging.events import ChangeEvent, LogPosition, Operation, misfit
from ingestion.heatpipe.broken_message import BrokenMessage, Defect
from ingestion.heatpipe.encoder import MENDED_SOURCE
from ingestion.heatpipe.row_keys import row_key_text
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.heatpipe.wire_format import HEADER_BYTES, MAX_MESSAGE_BYTES, schema_id_of

SchemaOf = Callable[[int], SubjectSchema | None]
"""The schema with an id; None: there is none."""


class Decoded(NamedTuple):
    """An event, and what its metadata says besides."""

    event: ChangeEvent
    schema: SubjectSchema
    source: str
    source_column: str
    schematised_at: datetime
    error_exception: str | None
    nulled: UnencodedRow | None = None
    """What the row was where its producer has put null in place of a value that did not fit."""


@dataclass(frozen=True)
class Decoder:
    """`key_columns`: of the dataset, in order. `reference_type`: of its reference key, None if it has none."""

    subject: str
    key_columns: tuple[str, ...]
    reference_type: type[bytes | int] | None
    schema_of: SchemaOf
    max_bytes: int = MAX_MESSAGE_BYTES

    def knows(self, schema_id: int) -> bool:
        """Is it a schema of the subject?"""
        schema = self.schema_of(schema_id)
        return schema is not None and schema.subject == self.subject

    def decode(self, message: bytes, position: LogPosition) -> Decoded:
        """`position`: where the message is in its log. Raises BrokenMessage."""
        schema = self._schema_of(message)
        record = _read(message, schema)
        metadata, row = record["metadata"], record["row"]
        event = self._event(metadata, row, position)
        self._check(event, metadata)
        columns = metadata["changelog_columns"]
        return Decoded(
            event,
            schema,
            metadata["source"],
            columns[0]["name"] if columns else "",
            metadata["schematised_at"],
            metadata["error_exception"],
            _note_in(metadata),
        )

    def _schema_of(self, message: bytes) -> SubjectSchema:
        schema_id = schema_id_of(message, most=self.max_bytes)
        schema = self.schema_of(schema_id)
        if schema is None:
            raise BrokenMessage(Defect.UNKNOWN_SCHEMA, f"The registry has no schema with the id {schema_id}.")
        if schema.subject != self.subject:
            reason = f"Schema {schema_id} belongs to {schema.subject}, and not to {self.subject}."
            raise BrokenMessage(Defect.OTHER_SUBJECT, reason)
        if not schema.is_event:
            raise BrokenMessage(Defect.NO_EVENT, f"Schema {schema_id} is not that of a change event.")
        return schema

    def _event(self, metadata: Mapping[str, Any], row: Mapping[str, Any], position: LogPosition) -> ChangeEvent:
        carried = [name for column in metadata["changelog_columns"] for name in column["changed_fields"]]
        return ChangeEvent(
            Operation.DELETE if metadata["is_deleted"] else Operation.UPDATE,
            tuple(row.get(name) for name in self.key_columns),
            metadata["reference_key"],
            position,
            {name: row[name] for name in carried if name in row} if carried else row,
            metadata["schema_version"],
            metadata["source_committed_at"],
            metadata["force_update"],
            metadata["data_center"],
        )

    def _check(self, event: ChangeEvent, metadata: Mapping[str, Any]) -> None:
        if None in event.row_key or metadata["row_key"] != row_key_text(event.row_key):
            names = ", ".join(f"`{name}`" for name in self.key_columns)
            reason = f"The row key is {metadata['row_key']}, and the row has {event.row_key!r} in {names}."
            raise BrokenMessage(Defect.ROW_KEY, reason, self.key_columns[0])
        reason_against = misfit(event, self.reference_type)
        if reason_against is not None:
            raise BrokenMessage(Defect.REFERENCE_KEY, reason_against)


def is_mended(message: bytes, schema_of: SchemaOf) -> bool:
    """Was it published again from the error table? Few have the name of that source in them, so the others are not decoded."""
    if MENDED_SOURCE.encode() not in message:
        return False
    try:
        schema = schema_of(schema_id_of(message))
        return schema is not None and schema.is_event and _read(message, schema)["metadata"]["source"] == MENDED_SOURCE
    except BrokenMessage:
        return False


def _note_in(metadata: Mapping[str, Any]) -> UnencodedRow | None:
    """An event that was mended carries what it was before, too."""
    content = metadata["error_source_data"]
    row = None if not content or metadata["source"] == MENDED_SOURCE else UnencodedRow.from_json(content)
    return row if row is not None and row.is_nulled else None


def _read(message: bytes, schema: SubjectSchema) -> Any:
    body = BytesIO(message)
    body.seek(HEADER_BYTES)
    try:
        record = schemaless_reader(body, schema.parsed, None)
    except UnicodeDecodeError as problem:
        raise BrokenMessage(Defect.INVALID_UTF8, f"A text of the message is not UTF-8: {problem}.") from problem
    except EOFError as problem:
        raise BrokenMessage(Defect.TRUNCATED, f"The message of {len(message):,} bytes ends too soon.") from problem
    except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as problem:
        reason = f"The message is not of its schema {schema.schema_id}: {type(problem).__name__}: {problem}"
        raise BrokenMessage(Defect.CORRUPT, reason) from problem
    left = len(message) - body.tell()
    if left:
        raise BrokenMessage(Defect.TRAILING_BYTES, f"The message goes on for {left:,} bytes after its end.")
    return record
