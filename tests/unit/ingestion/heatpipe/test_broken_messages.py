"""A message that is no event of the dataset is told by what is wrong with it, and never passes for another or stops its reader."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.merging.events import Operation
from ingestion.heatpipe.broken_message import BrokenMessage, Defect
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.subject_schema import SubjectSchema
from tests.unit.ingestion.heatpipe.messages import POSITION, TRIPS, change, decoder, encoder, subject_schema

WHOLE = encoder().encode(change()).value
Damage = Callable[[bytes], bytes]
WITH_ROW = event_schema("trips", TRIPS)
ROW_OF_ITSELF = {"type": "record", "name": "Row", "fields": [{"name": "next", "type": ["null", "Row"]}]}
ROW_OF_NOTHINGS = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "n", "type": {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}}],
}
DAMAGES: dict[Defect, Damage] = {
    Defect.EMPTY: lambda message: b"",
    Defect.OVERSIZED: lambda message: message + bytes(8 * 2**20),
    Defect.MAGIC_BYTE: lambda message: b"{" + message[1:],
    Defect.UNKNOWN_SCHEMA: lambda message: struct.pack(">bI", 0, 99) + message[5:],
    Defect.TRUNCATED: lambda message: message[:-3],
    Defect.TRAILING_BYTES: lambda message: message + b"\x00",
    Defect.INVALID_UTF8: lambda message: message.replace("München".encode(), "München".encode("latin-1") + b" "),
    Defect.ROW_KEY: lambda message: message.replace(b'["42"]', b'["43"]'),
}


@pytest.mark.parametrize("defect", DAMAGES)
def test_kinds_of_damage_are_told_apart(defect: Defect) -> None:
    with pytest.raises(BrokenMessage) as broken:
        decoder().decode(DAMAGES[defect](WHOLE), POSITION)
    assert broken.value.defect is defect, str(broken.value)


def test_a_message_of_another_dataset() -> None:
    with pytest.raises(BrokenMessage, match="Schema 7 belongs to trips, and not to orders") as broken:
        decoder(subject="orders").decode(WHOLE, POSITION)
    assert broken.value.defect is Defect.OTHER_SUBJECT


def test_a_record_that_is_no_event() -> None:
    avro = {"type": "record", "name": "Other", "fields": [{"name": "id", "type": "long"}]}
    message = BytesIO(b"\x00\x00\x00\x00\x07")
    message.seek(0, 2)
    schemaless_writer(message, parse_schema(avro), {"id": 1})
    with pytest.raises(BrokenMessage) as broken:
        decoder(SubjectSchema("trips", 1, 7, avro)).decode(message.getvalue(), POSITION)
    assert broken.value.defect is Defect.NO_EVENT


def event_message(avro: Any, body: bytes) -> tuple[SubjectSchema, bytes]:
    return SubjectSchema("trips", 1, 7, avro), b"\x00\x00\x00\x00\x07" + body


@pytest.mark.parametrize(
    ("avro", "body"),
    [
        ({"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}, b"\x02" * 5_000),
        (
            {"type": "record", "name": "N", "fields": [{"name": "n", "type": {"type": "array", "items": "null"}}]},
            b"\x80\xda\xc4\x13\x00",
        ),
        ({**WITH_ROW, "fields": [WITH_ROW["fields"][0], {"name": "row", "type": ROW_OF_ITSELF}]}, b"\x02" * 5_000),
        (
            {
                **WITH_ROW,
                "fields": [
                    {"name": "metadata", "type": {"type": "record", "name": "M", "fields": []}},
                    WITH_ROW["fields"][1],
                ],
            },
            b"",
        ),
        ({**WITH_ROW, "fields": [WITH_ROW["fields"][0], {"name": "row", "type": "null"}]}, b""),
        (
            {**WITH_ROW, "fields": [WITH_ROW["fields"][0], {"name": "row", "type": ROW_OF_NOTHINGS}]},
            b"\x80\xda\xc4\x13\x00",
        ),
    ],
    ids=[
        "itself",
        "nothing, many times",
        "a row of itself",
        "no metadata",
        "no row",
        "records without fields, many times",
    ],
)
def test_a_schema_whose_messages_could_end_their_reader_is_not_read_by(avro: Any, body: bytes) -> None:
    schema, message = event_message(avro, body)
    with pytest.raises(BrokenMessage) as broken:
        decoder(schema).decode(message, POSITION)
    assert broken.value.defect is Defect.NO_EVENT


def test_a_row_with_another_key_than_its_metadata() -> None:
    message = WHOLE.replace(b'["42"]', b'["41"]')
    with pytest.raises(BrokenMessage) as broken:
        decoder().decode(message, POSITION)
    assert (broken.value.defect, broken.value.field) == (Defect.ROW_KEY, "id")


@pytest.mark.parametrize("reference", [None, b"\x05"])
def test_a_reference_key_of_another_type(reference: bytes | None) -> None:
    with pytest.raises(BrokenMessage, match="reference key is a 64-bit integer") as broken:
        decoder().decode(encoder().encode(change(reference=reference)).value, POSITION)
    assert broken.value.defect is Defect.REFERENCE_KEY


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_message_that_was_cut_anywhere_is_broken(length: int) -> None:
    with pytest.raises(BrokenMessage):
        decoder().decode(WHOLE[:length], POSITION)


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=9))
def test_any_other_damage_is_an_event_or_a_broken_message(place: int, instead: bytes) -> None:
    message = WHOLE[:place] + instead + WHOLE[place + len(instead) :]
    try:
        event = decoder().decode(message, POSITION).event
    except BrokenMessage:
        return
    assert event.operation in Operation
    assert event.row_key == (event.values["id"],)


@given(st.binary(max_size=60))
def test_any_bytes_for_a_body(body: bytes) -> None:
    schema = subject_schema()
    with suppress(BrokenMessage):
        decoder(schema).decode(struct.pack(">bI", 0, schema.schema_id) + body, POSITION)
