"""One topic as its messages are captured: under which key, in which columns, by which version of the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from ingestion.capture.null_instead import encode_or_null
from ingestion.capture.tap.captured_table import CaptureSpec, NotCaptured, SchemaVersions
from ingestion.capture.tap.position import reference_key
from ingestion.capture.topics.lake_values import key_value, lake_value
from ingestion.changelog import Outgoing
from ingestion.domain.avro.types import AvroTypes
from ingestion.domain.column_types import STRING, ColumnType, parse_type, struct_in_lake
from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.domain.schema import Schema, evolve_schema
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.encoder import Encoder
from ingestion.heatpipe.reading import ERRORS_SUFFIX
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.heatpipe.unencoded_row import UnencodedRow
from lakehub.kernel.lake_names import names_fit_for_the_lake, unfit_names_text
from lakehub.source_topics.broken import FIELD, ROW_KEY, BadMessage
from lakehub.source_topics.json_types import TypesSeen
from lakehub.source_topics.messages import PLAIN_KEY, MessagePart, ReadMessage, SchemaOf, TopicMessage, read_message

MAX_COLUMNS = 1_000
_MAX_SHOWN = 10_000
"""Bytes of a message that could not be read."""
_DELETED, _CHANGED = 0, 1
"""The row of a message in its reference key; `republishing` counts so."""


class Received(NamedTuple):
    """`sequence`: of the message among all of its row."""

    message: TopicMessage
    sequence: int


@dataclass
class CapturedTopic:
    """`has_message_key`: a row's key is that of its message, and not named fields of the value. `schema`: the newest version; None: there is none yet.
    `refusal`: why columns that came have no place in it; empty: they have."""

    spec: CaptureSpec
    has_message_key: bool
    versions: SchemaVersions
    schema_of: SchemaOf
    new_encoder: Callable[[SubjectSchema], Encoder]
    schema: SubjectSchema | None = None
    refusal: str = ""
    _encoder: Encoder | None = None
    _avro_seen: list[Any] = field(default_factory=list)

    def learn(self, messages: Iterable[TopicMessage]) -> None:
        """Which columns there are, by messages that are not captured now. Raises TopicsError."""
        self._widen([read for message in messages if isinstance(read := self._read(message), ReadMessage)])

    def outgoing(self, received: Sequence[Received]) -> list[Outgoing]:
        """Those that are no events go to the topic of errors. Raises TopicsError."""
        read = [(each, self._read(each.message)) for each in received]
        self._widen([content for _, content in read if isinstance(content, ReadMessage)])
        return [self._outgoing(each, content) for each, content in read]

    def _read(self, message: TopicMessage) -> ReadMessage | BadMessage:
        try:
            return read_message(message, self.schema_of)
        except BadMessage as problem:
            return problem

    def _outgoing(self, received: Received, read: ReadMessage | BadMessage) -> Outgoing:
        if isinstance(read, BadMessage):
            return self._rejected(received, None, read)
        try:
            misfits = dict[str, str]()
            event = self._event(received, read, misfits)
            assert self._encoder is not None
            note_of = partial(self._put_aside, received, read)
            message = encode_or_null(self._encoder, event, misfits, note_of, required=self.spec.required)
            return Outgoing(self.spec.topic, *message)
        except BadMessage as problem:
            return self._rejected(received, read, problem)
        except UnfitEvent as problem:
            return self._rejected(received, read, BadMessage(problem.defect.value, str(problem), problem.field))
        except ValueError as problem:  # a text that is no UTF-8, such as half of a character
            return self._rejected(
                received, read, BadMessage(Defect.TYPE.value, f"A value cannot be written: {problem}")
            )

    def _event(self, received: Received, read: ReadMessage, misfits: dict[str, str]) -> ChangeEvent:
        """`misfits` gets what is null instead. Raises BadMessage."""
        key = self._key(read)
        row_key, sequence = tuple(key.values()), received.sequence
        is_delete = read.value is None
        operation = Operation.DELETE if is_delete else Operation.UPDATE
        values = key if is_delete else self._values(read, misfits) | key
        row = _DELETED if is_delete else _CHANGED
        assert self.schema is not None
        reference = reference_key(sequence, row)
        return ChangeEvent(
            operation, row_key, reference, (sequence, row), values, self.schema.version, received.message.at
        )

    def _key(self, read: ReadMessage) -> dict[str, Any]:
        names = self.spec.record_key
        content = self._content_of_key(read, names)
        if missing := [name for name in names if content.get(name) is None]:
            raise BadMessage(ROW_KEY, _missing_key(missing, read, has_message_key=self.has_message_key), missing[0])
        if missing := [name for name in names if name not in self._types]:
            raise BadMessage(
                FIELD, f"`{missing[0]}` is a key column, and no message was seen yet that says its type.", missing[0]
            )
        key = {name: self._key_value(content[name], name) for name in names}
        if self.has_message_key and read.value is not None:
            self._require_same(key, read.value)
        return key

    def _content_of_key(self, read: ReadMessage, names: Sequence[str]) -> Mapping[str, Any]:
        if not self.has_message_key or read.key is None:
            return read.row if not self.has_message_key else {}
        if isinstance(read.key.content, dict):
            return read.key.content
        if len(names) > 1:
            raise BadMessage(
                ROW_KEY,
                f"The message's key is a plain value, and the record key has {len(names)} columns: {', '.join(names)}.",
            )
        return {names[0]: read.key.content}

    def _key_value(self, value: Any, name: str) -> Any:
        type_ = self._types[name]
        return key_value(value, type_, name) if isinstance(value, str) else lake_value(value, type_, name)

    def _require_same(self, key: Mapping[str, Any], value: MessagePart) -> None:
        for name in key:
            stated = value.fields.get(name)
            if stated is not None and self._key_value(stated, name) != key[name]:
                raise BadMessage(
                    ROW_KEY,
                    f"`{name}` is {stated!r:.100} in the value and {key[name]!r:.100} by the message's key.",
                    name,
                )

    def _values(self, read: ReadMessage, misfits: dict[str, str]) -> dict[str, Any]:
        """Of all columns: one that the message lacks is null."""
        row, types = read.row, self._types
        for name, value in row.items():
            if name not in types and value is not None:
                raise BadMessage(FIELD, self._why_no_column(name), name)
        return {name: self._value(row.get(name), type_, name, misfits) for name, type_ in types.items()}

    def _value(self, value: Any, type_: ColumnType, name: str, misfits: dict[str, str]) -> Any:
        try:
            return lake_value(value, type_, name)
        except BadMessage as problem:
            if problem.defect != Defect.TYPE.value or not self.spec.may_be_null(name):
                raise
            misfits[name] = str(problem)
            return None

    def _why_no_column(self, name: str) -> str:
        if self._fitting([name]):
            return self.refusal or f"The table has no column `{name:.100}`."
        return unfit_names_text([name[:100]])

    def _widen(self, read: Sequence[ReadMessage]) -> None:
        """So that all of them have their columns, as far as they may: a column keeps its type where what came does not fit it."""
        arriving = self._new_json_columns(read)
        for message in read:
            arriving |= self._new_avro_columns(message)
        fitting = Schema.of({name: arriving[name] for name in self._fitting(arriving)})
        if len(self._types.keys() | set(fitting.names)) > MAX_COLUMNS:
            self.refusal = f"The table has {len(self._types):,} columns; {MAX_COLUMNS:,} are the most. Messages with new names in each belong into an object."
            return
        stored = Schema(()) if self.schema is None else self.schema.row_columns
        target = evolve_schema(stored, fitting, fixed=self.spec.record_key).target
        if target == stored:
            return
        try:
            self._take(self.versions.version_of(self.spec.topic, target))
            self.refusal = ""
        except NotCaptured as problem:
            self.refusal = str(problem)

    def _new_json_columns(self, read: Sequence[ReadMessage]) -> dict[str, str]:
        seen, known = TypesSeen(), self._types
        for message in read:
            if any(name not in known for name in message.row):
                seen.meet(message)
        return {name: type_ for name, type_ in seen.json.items() if name not in known}

    def _new_avro_columns(self, message: ReadMessage) -> dict[str, str]:
        """Of schemas that were not met yet."""
        columns = dict[str, str]()
        for part in (message.key, message.value):
            if part is not None and part.avro is not None and not any(part.avro is seen for seen in self._avro_seen):
                self._avro_seen.append(part.avro)
                types = AvroTypes(struct_in_lake, lambda avro: STRING)
                columns |= {name: str(types.type_of(avro)) for name, avro in part.avro_types.items()}
        return columns

    def _fitting(self, names: Iterable[str]) -> tuple[str, ...]:
        known = () if self.schema is None else self.schema.columns
        return names_fit_for_the_lake(tuple(names), known)

    def _take(self, schema: SubjectSchema) -> None:
        self.schema, self._encoder = schema, self.new_encoder(schema)
        self.__dict__.pop("_types", None)

    def begin_with(self, schema: SubjectSchema | None) -> None:
        """The newest version that is there already."""
        if schema is not None:
            self._take(schema)

    @cached_property
    def _types(self) -> Mapping[str, ColumnType]:
        return (
            {} if self.schema is None else {column.name: parse_type(column.type) for column in self.schema.row_columns}
        )

    def _rejected(self, received: Received, read: ReadMessage | None, problem: BadMessage) -> Outgoing:
        message, unencoded = received.message, self._put_aside(received, read, problem)
        key = f"{message.partition}:{message.offset}".encode()
        return Outgoing(self.spec.topic + ERRORS_SUFFIX, key, unencoded.to_json())

    def _put_aside(
        self, received: Received, read: ReadMessage | None, problem: BadMessage | UnfitEvent
    ) -> UnencodedRow:
        """With all that it takes to publish the row again when it was mended."""
        message = received.message
        place = f"partition {message.partition}, offset {message.offset:,} of `{self.spec.table}`"
        is_delete = message.value is None
        row = _shown(message) if read is None else read.row
        number = f"0-{message.partition}-{received.sequence}"
        reason = f"{problem} ({place})"
        before, after = (row, None) if is_delete else (None, row)
        # Of a message that could not be read there is no row: whoever mends it writes one.
        defect, has_no_row = Defect(problem.defect), read is None
        return UnencodedRow(number, 0, defect, problem.field, reason, before, after, is_cut=has_no_row)


def _missing_key(missing: Sequence[str], read: ReadMessage, *, has_message_key: bool) -> str:
    names = ", ".join(f"`{name}`" for name in missing)
    if has_message_key:
        if read.key is None:
            return f"The message has no key, and {names} is taken from it (`topic_key` of the feed's options)."
        return f"The message's key has no {names}, or null."
    if read.value is None:
        return f"The value is null, which deletes a row, and nothing says which: the message's key has no {names}. Where the key is that of the row, set the feed's option `topic_key` to `message`."
    return f"The value has no {names}, or null: it is a key column."


def _shown(message: TopicMessage) -> dict[str, Any]:
    """The beginning of a message that could not be read; all of it is in its topic."""
    shown = {} if message.key is None else {PLAIN_KEY: message.key}
    content = {} if message.value is None else {"message_value": message.value}
    return {name: data[:_MAX_SHOWN].decode(errors="backslashreplace") for name, data in (shown | content).items()}
