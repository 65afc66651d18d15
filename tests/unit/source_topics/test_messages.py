"""What the bytes of a message mean, and what is no message."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from lakehub.kernel.avro_files import read_schema_text
from lakehub.source_topics.broken import UNKNOWN_SCHEMA, BadMessage
from lakehub.source_topics.json_types import TypesSeen, common_type, json_type
from lakehub.source_topics.messages import ReadMessage, TopicMessage, read_message

ORDER = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},
    {"name": "fare", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]}]}"""
SCHEMAS = {7: read_schema_text(ORDER), 8: read_schema_text('"long"'), 9: read_schema_text('"string"')}


def schema_of(number: int) -> Any:
    if number not in SCHEMAS:
        raise BadMessage(UNKNOWN_SCHEMA, f"There is no schema {number}.")
    return SCHEMAS[number]


def avro(number: int, content: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMAS[number], content)
    return b"\x00" + number.to_bytes(4) + out.getvalue()


def message(key: bytes | None, value: bytes | None) -> ReadMessage:
    return read_message(TopicMessage(0, 5, key, value, None), schema_of)


def test_a_row_has_the_fields_of_the_value_and_those_of_the_key_that_it_lacks() -> None:
    assert message(b"7", b'{"id": 7, "n": null}').row == {"message_key": "7", "id": 7, "n": None}
    assert message(b'{"id": 1, "shop": "a"}', b'{"id": 7}').row == {"id": 7, "shop": "a"}
    assert message(None, b"{}").row == {}


def test_a_value_that_is_none_is_not_one_that_is_null() -> None:
    assert message(b"7", None).value is None
    with pytest.raises(BadMessage, match="The value is not an object, but null"):
        message(b"7", b"null")


def test_a_zero_byte_says_avro_in_keys_and_in_values() -> None:
    read = message(avro(8, 42), avro(7, {"id": 42, "fare": Decimal("1.50")}))
    assert read.row == {"message_key": 42, "id": 42, "fare": Decimal("1.50")}
    assert read.avro_types == {"message_key": "long", "id": "long", "fare": SCHEMAS[7]["fields"][1]["type"]}


@pytest.mark.parametrize(
    ("value", "defect", "reason"),
    [
        (b"", "empty", "no bytes"),
        (b"\x00\x00", "truncated", "has 2 bytes; the header alone has 5"),
        (b"\x00\x00\x00\x00\x63x", "unknown_schema", "no schema 99"),
        (avro(7, {"id": 2**40, "fare": None})[:-4], "truncated", "ends before schema 7 does"),
        (avro(7, {"id": 1, "fare": None}) + b"xy", "trailing_bytes", "goes on for 2 bytes"),
        (b"\x00" + (7).to_bytes(4) + b"\x02\x7f\x00\x00", "corrupt", "is not what schema 7 says"),
        (avro(8, 1), "no_event", "not an object, but a number"),
        (b"\x00" + (9).to_bytes(4) + b"\x02\xff", "invalid_utf8", "not UTF-8"),
        (b"[1]", "no_event", "a list"),
        (b'{"a": 1e999}', "type", "64 bits do not hold"),
        (b'{"a": -Infinity}', "type", "the number -Infinity, which JSON does not have"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "type", "64 bits do not hold"),
        (b'{"a": {"b": 1, "b": 1}}', "field", "`b` twice in an object"),
        (b"{}" * 2, "corrupt", "Extra data"),
        (b"\xef\xbb\xbf{}", "corrupt", "BOM"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_told(value: bytes, defect: str, reason: str) -> None:
    with pytest.raises(BadMessage) as bad:
        message(b"k", value)
    assert (bad.value.defect, reason in str(bad.value)) == (defect, True), str(bad.value)


def test_the_bounds_themselves_are_taken() -> None:
    most, least = 2**63 - 1, -(2**63)
    assert message(None, b'{"a": %d, "b": %d}' % (most, least)).row == {"a": most, "b": least}
    assert message(None, b'{"a": ' + b"[" * 99 + b"]" * 99 + b"}").row.keys() == {"a"}
    with pytest.raises(BadMessage, match="nested deeper than 100"):
        message(None, b'{"a": ' + b"[" * 101 + b"]" * 101 + b"}")


def test_a_key_is_a_text_as_it_is() -> None:
    for key in (b"007", b"[1]", b"true", b""):
        assert message(key, b"{}").row == {"message_key": key.decode()}
    with pytest.raises(BadMessage, match="The key is not UTF-8"):
        message(b"\xff", b"{}")


def test_types_of_json_widen_as_more_is_seen() -> None:
    seen = TypesSeen()
    for text in (b'{"a": 1, "b": null, "c": true}', b'{"a": 1.5, "b": [1], "c": 1}', b'{"a": 2}'):
        seen.meet(message(None, text))
    assert seen.json == {"a": "double", "b": "string", "c": "string"}


def test_a_common_type_does_not_depend_on_the_order() -> None:
    values = [True, 1, 1.5, "x", [1], {"a": 1}]
    for first in values:
        for second in values:
            for third in values:
                types = [json_type(value) for value in (first, second, third)]
                forth = common_type(common_type(types[0], types[1]), types[2])
                assert forth == common_type(types[0], common_type(types[1], types[2]))
                assert forth == common_type(common_type(types[2], types[1]), types[0])


def test_a_name_that_is_there_twice_is_found_in_time_that_grows_with_the_names() -> None:
    """One message of the size that is read must not keep the tap for hours."""
    names = ",".join(f'"{number}":0' for number in range(400_000))
    with pytest.raises(BadMessage, match="has the name `last` twice"):
        message(None, f'{{{names},"last":0,"last":0}}'.encode())
