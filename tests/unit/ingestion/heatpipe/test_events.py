"""An event that was encoded is decoded as it was, whatever its columns, and is stamped on the way."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf
from ingestion.domain.merging.events import Operation, RowKey
from ingestion.domain.schema import Schema
from ingestion.heatpipe import encoder as encoder_module
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.encoder import Encoder, Mended
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.row_keys import row_key_text
from tests.unit.ingestion.heatpipe.messages import NOW, POSITION, TRIP, TRIPS, change, decoder, encoder, subject_schema
from tests.unit.ingestion.type_strategies import PLAIN, TYPES

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
PLAIN_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": TEXTS,
    "binary": st.binary(max_size=5),
    "date": st.dates(),
    "timestamp": INSTANTS,
}


def values_of(type_: ColumnType) -> st.SearchStrategy[Any]:
    match type_:
        case Plain(name):
            return st.none() | (_decimals(*type_.decimal) if type_.decimal else PLAIN_VALUES[name])
        case ArrayOf(element):
            return st.none() | st.lists(values_of(element), max_size=3)
        case MapOf(value):
            return st.none() | st.dictionaries(TEXTS, values_of(value), max_size=3)
        case StructOf(fields):
            return st.none() | st.fixed_dictionaries({name: values_of(field) for name, field in fields})


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda units: Decimal(units).scaleb(-scale))


@given(st.data())
def test_what_was_encoded_is_decoded_as_it_was(data: st.DataObject) -> None:
    types = data.draw(st.dictionaries(st.sampled_from("abcdef"), TYPES, min_size=1))
    columns = Schema.of({"id": "long"} | {name: str(type_) for name, type_ in types.items()})
    row = {"id": 42} | {name: data.draw(values_of(type_)) for name, type_ in types.items()}
    carried = data.draw(st.sets(st.sampled_from([*types]))) | {"id"}
    event = change({name: row[name] for name in row if name in carried}, force_update=data.draw(st.booleans()))
    schema = subject_schema(columns)
    decoded = decoder(schema).decode(encoder(schema).encode(event).value, POSITION)
    assert decoded.event == event


ODD_VALUES = st.sampled_from(
    [
        *("", "x", "\udc00", b"", b"\x00", True, False, 0, 1.5, float("inf"), 2**31, -(2**63), 2**63, 3.5e38),
        *(Decimal(text) for text in ("1.5", "-0", "1E+3", "NaN", "-Infinity", "0.005", "99999999.99", "1E-9")),
        *(
            date(1, 1, 1),
            datetime(2026, 1, 1),
            datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
            datetime(9999, 12, 31, tzinfo=UTC),
        ),
    ]
)


@settings(max_examples=300)
@given(st.data())
def test_what_is_written_by_us_is_what_fastavro_would_have_written(data: st.DataObject) -> None:
    """Whatever is in the row: or both refuse it with the same words."""
    types = data.draw(st.dictionaries(st.sampled_from("abcd"), PLAIN | TYPES, min_size=1))
    columns = Schema.of({"id": "long"} | {name: str(type_) for name, type_ in types.items()})
    carried = (
        {name: type_ for name, type_ in types.items() if data.draw(st.booleans())}
        if data.draw(st.booleans())
        else types
    )
    row = {"id": 42} | {name: data.draw(values_of(type_) | ODD_VALUES) for name, type_ in carried.items()}
    source_column = data.draw(st.sampled_from(["", "base", "größe"]))
    is_delete = data.draw(st.booleans())
    committed_at = data.draw(st.none() | INSTANTS)
    event = change(
        row if not is_delete else {"id": 42}, reference=data.draw(st.binary() | st.integers(-(2**63), 2**63 - 1))
    )
    event = replace(
        event, operation=Operation.DELETE if is_delete else Operation.UPDATE, source_committed_at=committed_at
    )
    encodes, outcomes = encoder(subject_schema(columns)), []
    for is_ours in (True, False):
        with pytest.MonkeyPatch.context() as patched:
            if not is_ours:
                patched.setattr(Encoder, "_plainly", lambda *_: None)
            try:
                outcomes.append(encodes.encode(event, source_column=source_column))
            except UnfitEvent as problem:
                outcomes.append((problem.defect, problem.field, str(problem)))
    assert outcomes[0] == outcomes[1]


def test_the_rows_of_a_table_of_plain_columns_are_written_by_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fastavro the tap writes a third of the rows."""
    monkeypatch.setattr(encoder_module, "schemaless_writer", None)
    plain = {name: value for name, value in TRIP.items() if name != "stops"}
    schema = subject_schema(Schema.of({name: type_ for name, type_ in TRIPS.types.items() if name != "stops"}))
    for event in (change(plain, reference=b"\x01"), change({"id": 42}, reference=b"\x01", operation=Operation.DELETE)):
        decoded = decoder(schema, reference_type=bytes).decode(encoder(schema).encode(event).value, POSITION)
        assert decoded.event == event
    of_a_cell = change({"id": 42, "city": "Ulm"}, reference=-7)
    message = encoder(schema).encode(of_a_cell, source_column="base").value
    decoded = decoder(schema, reference_type=int).decode(message, POSITION)
    assert (decoded.event, decoded.source_column) == (of_a_cell, "base")


@pytest.mark.parametrize("reference", [-1, 2**63 - 1, b"\x00\xff", b""])
def test_a_reference_key_is_a_number_or_bytes(reference: int | bytes) -> None:
    message = encoder().encode(change(reference=reference)).value
    assert decoder(reference_type=type(reference)).decode(message, POSITION).event.reference_key == reference


def test_an_event_is_stamped() -> None:
    schema = subject_schema(version=3, schema_id=9)
    decoded = decoder(schema).decode(encoder(schema).encode(change()).value, POSITION)
    assert decoded.schematised_at == NOW
    assert decoded.source == "mysql:ops/shop.trips"
    assert (decoded.event.data_center, decoded.event.schema_version) == ("dc1", 3)


def test_a_delete_needs_its_key_only() -> None:
    event = change({"id": 42}, operation=Operation.DELETE)
    assert decoder().decode(encoder().encode(event).value, POSITION).event == event


def test_a_change_of_one_column_of_the_source_names_it() -> None:
    message = encoder().encode(change({"id": 42, "city": "Ulm"}), source_column="BASE")
    decoded = decoder().decode(message.value, POSITION)
    assert (decoded.source_column, decoded.event.values) == ("BASE", {"id": 42, "city": "Ulm"})


def test_an_event_that_was_mended_names_its_error() -> None:
    message = encoder().encode(change(), mended=Mended("truncated: The message ends too soon.", b"\x00\x00"))
    decoded = decoder().decode(message.value, POSITION)
    assert decoded.error_exception == "truncated: The message ends too soon."


def test_not_a_number_is_kept() -> None:
    message = encoder().encode(change(TRIP | {"distance": math.nan}))
    assert math.isnan(decoder().decode(message.value, POSITION).event.values["distance"])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "42"), ("id", 2**63), ("id", True), ("id", 1.0), ("seats", 2**31), ("city", b"Ulm"), ("city", 7),
        ("city", "\ud800"), ("fare", Decimal("1.005")), ("fare", Decimal("1234567.00")), ("fare", Decimal("NaN")),
        ("fare", 1.5), ("began", datetime(2026, 1, 1)), ("began", "2026-01-01"), ("began", date(2026, 1, 1)),
        ("day", "tomorrow"), ("day", "2026-01-01"), ("is_shared", 1), ("distance", "1"), ("token", "text"), ("stops", [{"lat": "x"}]),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_by_name(column: str, value: Any) -> None:
    with pytest.raises(UnfitEvent, match=f"`{column}` is ") as refused:
        encoder().encode(change(TRIP | {column: value}, key=value if column == "id" else 42))
    assert (refused.value.defect, refused.value.field) == (Defect.TYPE, column)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("float", 1e300), ("float", -3.5e38), ("decimal(4,2)", Decimal("123.40")), ("decimal(4,2)", b"\x01"), ("date", datetime(2026, 1, 1, tzinfo=UTC)),
        ("date", 20_000), ("date", "2026-01-01"), ("timestamp", 0), ("array<timestamp>", [None, datetime(2026, 1, 1)]), ("map<string,float>", {"a": 1e39}),
        ("struct<at:timestamp,n:int>", {"at": datetime(2026, 1, 1), "n": 1}), ("array<struct<d:decimal(3,1)>>", [{"d": Decimal("100.0")}]),
    ],
)  # fmt: skip
def test_a_value_that_would_be_written_as_another_is_refused(type_: str, value: Any) -> None:
    schema = subject_schema(Schema.of({"id": "long", "x": type_}))
    with pytest.raises(UnfitEvent, match="`x` is ") as refused:
        encoder(schema).encode(change({"id": 42, "x": value}))
    assert (refused.value.defect, refused.value.field) == (Defect.TYPE, "x")


@pytest.mark.parametrize(("values", "key"), [({"city": "Ulm"}, 42), ({"id": None}, None), ({"id": 43}, 42)])
def test_a_row_without_its_key_is_refused(values: dict[str, Any], key: int | None) -> None:
    with pytest.raises(UnfitEvent, match="`id` is a key column") as refused:
        encoder().encode(change(values, key=key))
    assert refused.value.defect is Defect.ROW_KEY


def test_a_column_that_the_schema_lacks_is_refused() -> None:
    with pytest.raises(UnfitEvent, match=r"Version 1 of trips has no column `citi`\. Did you mean `city`\?") as refused:
        encoder().encode(change({"id": 42, "citi": "Ulm"}))
    assert (refused.value.defect, refused.value.field) == (Defect.FIELD, "citi")


def test_what_is_too_long_for_a_message_is_refused() -> None:
    with pytest.raises(UnfitEvent, match="100 are allowed") as refused:
        replace(encoder(), max_bytes=100).encode(change(TRIP | {"token": bytes(100)}))
    assert refused.value.defect is Defect.OVERSIZED


@pytest.mark.parametrize(
    ("row_key", "text"),
    [
        ((42,), '["42"]'),
        (("a", "b,c"), '["a","b,c"]'),
        (('a","b', "c"), '["a\\",\\"b","c"]'),
        ((Decimal("1.50"), Decimal("100")), '["1.5","100"]'),
        ((Decimal("0.00"), Decimal("-0")), '["0","0"]'),
        ((Decimal("12345678901234567890123456789012345678"),), '["12345678901234567890123456789012345678"]'),
        ((b"\x00", True, None), '["AA==","true","None"]'),
        ((date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)), '["2026-01-02","2026-01-02T00:00:00+00:00"]'),
        (("Grün",), '["Grün"]'),
    ],
)
def test_the_text_of_a_row_key(row_key: RowKey, text: str) -> None:
    assert row_key_text(row_key) == text


def test_the_key_of_one_instant_is_one_text() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert row_key_text((at,)) == row_key_text((at.astimezone(tz=None),)) == row_key_text((at + timedelta(),))


def test_the_schema_of_an_event_keeps_the_subject() -> None:
    assert event_schema("trips", TRIPS)["subject"] == "trips"


@pytest.mark.parametrize("units", [10**38 - 1, 1 - 10**38])
def test_a_decimal_of_more_digits_than_python_computes_with_is_published_again(units: int) -> None:
    """Mended events are not written by us."""
    for scale in (0, 10, 38):
        columns = Schema.of({"id": "long", "fare": f"decimal(38,{scale})"})
        sign, digits, _ = Decimal(units).as_tuple()
        fare, schema = Decimal((sign, digits, -scale)), subject_schema(columns)
        written = encoder(schema).encode(change({"id": 42, "fare": fare}), mended=Mended("why", b"what"))
        assert decoder(schema).decode(written.value, POSITION).event.values["fare"] == fare
