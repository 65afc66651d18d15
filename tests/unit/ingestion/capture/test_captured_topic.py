"""What becomes of the messages of a topic: their keys, their columns, their order, and what is wrong with one."""

from __future__ import annotations

import io
import itertools
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from ingestion.capture.topics.lake_values import key_value, lake_value
from ingestion.capture.topics.place import TopicPlace, TopicsState, partitions_of, why_cannot_go_on
from ingestion.domain.column_types import parse_type
from ingestion.domain.merging.events import Operation
from ingestion.heatpipe.decoder import Decoder
from lakehub.kernel.avro_files import read_schema_text
from lakehub.source_topics.broken import BadMessage
from lakehub.source_topics.cluster import Bounds
from tests.unit.ingestion.capture.topic_tapping import NOW, ORDERS, TopicTapping

WIDEST = [(f"-{'9' * 38}", "decimal(38,0)"), (f"{'9' * 28}.99", "decimal(30,2)"), (f"0.{'9' * 38}", "decimal(38,38)")]
"""Of more digits than Python computes with."""


def rows(tapping: TopicTapping, key: tuple[str, ...] = ("id",)) -> dict[Any, dict[str, Any]]:
    """By reference keys, whatever the order in the log."""
    decoder, newest = Decoder(ORDERS, key, bytes, tapping.versions.of_id), dict[Any, Any]()
    for message in tapping.log.messages:
        if message.topic == ORDERS:
            event = decoder.decode(message.value or b"", (0,)).event
            if event.row_key not in newest or event.reference_key > newest[event.row_key].reference_key:
                newest[event.row_key] = event
    return {key: dict(event.values) for key, event in newest.items() if event.operation is not Operation.DELETE}


def take_all(tapping: TopicTapping) -> None:
    """Each step by another process."""
    while True:
        before = tapping.log.commits
        tapping.take()
        if tapping.log.commits == before:
            return


def test_a_process_that_goes_on_takes_each_message_once() -> None:
    tapping = TopicTapping()
    for number in range(20):
        tapping.topic.send(None, {"id": number}, partition=number % 2)
    tap = tapping.tap()
    tapping.log.fails = True
    with pytest.raises(OSError, match="disk"):
        tap.step()
    tapping.log.fails = False
    take_all(tapping)
    assert (tapping.events(), len(rows(tapping))) == (20, 20)
    commits = tapping.log.commits
    tapping.take()
    assert tapping.log.commits == commits


def test_a_key_of_the_message_has_the_type_of_its_column_and_agrees_with_the_value() -> None:
    tapping = TopicTapping(has_message_key=True)
    tapping.topic.send("7", {"id": 7, "n": 1})
    tapping.topic.send("8", {"id": 9, "n": 1})
    tapping.topic.send(None, {"id": 7, "n": 2})
    tapping.topic.send("x", {"n": 2})
    tapping.topic.send("10", {"n": 2})
    take_all(tapping)
    assert rows(tapping) == {
        (7,): {"message_key": "7", "id": 7, "n": 1},
        (10,): {"message_key": "10", "id": 10, "n": 2},
    }
    reasons = [(error.defect.value, error.reason.partition(" (partition")[0]) for error in tapping.errors()]
    assert reasons == [
        ("row_key", "`id` is 9 in the value and 8 by the message's key."),
        ("row_key", "The message has no key, and `id` is taken from it (`topic_key` of the feed's options)."),
        ("type", "`id` is 'x', and the column in the lake is long."),
    ]
    tapping.topic.send("7", None)
    take_all(tapping)
    assert rows(tapping).keys() == {(10,)}


def test_a_key_may_be_the_messages_alone_or_of_several_fields() -> None:
    plain = TopicTapping(key=("message_key",))
    for value in ({"n": 1}, {"n": 2}, None):
        plain.topic.send("a", value)
    plain.topic.send("b", {"n": 3})
    take_all(plain)
    assert rows(plain, ("message_key",)) == {("b",): {"message_key": "b", "n": 3}}
    both = TopicTapping(key=("shop", "id"), has_message_key=True)
    both.topic.send(b'{"shop": "x", "id": 1}', {"n": 1})
    both.topic.send("x", {"n": 1})
    take_all(both)
    assert rows(both, ("shop", "id")) == {("x", 1): {"shop": "x", "id": 1, "n": 1, "message_key": None}}
    assert "the record key has 2 columns: shop, id" in both.errors()[0].reason


def test_columns_come_with_the_messages_and_a_column_keeps_its_type() -> None:
    tapping = TopicTapping()
    for value in ({"id": 1}, {"id": 2, "n": 1}, {"id": 3, "n": 2.5, "t": {"a": 1}}, {"id": 4, "n": 3, "t": "x"}):
        tapping.topic.send(None, value)
        tapping.take()
    assert [schema.columns for schema, _ in tapping.versions.known] == [("id",), ("id", "n"), ("id", "n", "t")]
    assert rows(tapping)[4,] == {"id": 4, "n": 3, "t": "x"}
    assert "`n` is 2.5, and the column in the lake is long" in tapping.errors()[0].reason
    tapping.topic.send(None, {"id": 5, "n": 7.0, "t": [1, "é"]})
    tapping.take()
    assert rows(tapping)[5,] == {"id": 5, "n": 7, "t": '[1, "é"]'}


def test_messages_that_are_seen_together_make_one_version_that_holds_all() -> None:
    tapping = TopicTapping()
    for value in ({"id": 1, "n": 1}, {"id": 2, "n": 2.5, "a b": 1}, {"id": 3, "m": None}):
        tapping.topic.send(None, value)
    tapping.take()
    ((_, columns),) = tapping.versions.known
    assert columns.types == {"id": "long", "n": "double"}
    assert rows(tapping).keys() == {(1,), (3,)}
    assert "The lake cannot hold the columns `a b`" in tapping.errors()[0].reason


def test_a_column_that_the_registry_refuses_rejects_its_messages_alone() -> None:
    tapping = TopicTapping()
    tapping.topic.send(None, {"id": 1})
    tapping.take()
    tapping.versions.refuses = ("n",)
    tapping.topic.send(None, {"id": 2, "n": 1})
    tapping.topic.send(None, {"id": 3})
    take_all(tapping)
    assert rows(tapping).keys() == {(1,), (3,)}
    assert "The column `n` is not compatible." in tapping.errors()[0].reason


def test_names_that_are_new_in_each_message_do_not_make_columns_without_end() -> None:
    tapping = TopicTapping()
    tapping.topic.send(None, {"id": 1})
    tapping.topic.send(None, {"id": 2} | {f"n{number}": 1 for number in range(998)})
    tapping.take()
    tapping.topic.send(None, {"id": 3, "x": 1, "y": 1})
    tapping.topic.send(None, {"id": 4, "n7": 2})
    tapping.take()
    assert rows(tapping).keys() == {(1,), (2,), (4,)}
    assert "The table has 999 columns; 1,000 are the most" in tapping.errors()[0].reason


AVRO = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "int"},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}},
    {"name": "fare", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "any", "type": ["null", "string", "long"]},
    {"name": "stops", "type": {"type": "array", "items": {"type": "record", "name": "Stop", "fields": [
        {"name": "lat", "type": "double"}, {"name": "of", "type": ["null", "shop.Kind"]}]}}}]}"""


def test_avro_has_the_types_of_its_schema_and_structures_stay_so() -> None:
    schema = read_schema_text(AVRO)
    out = io.BytesIO()
    at = datetime(2026, 11, 27, 8, tzinfo=UTC)
    content = {"id": 1, "kind": "b", "fare": Decimal("1.50"), "at": at, "local": datetime(2026, 11, 27, 9), "day": date(2026, 1, 2),
               "clock": time(8, 30), "any": 7, "stops": [{"lat": 1.5, "of": "a"}]}  # fmt: skip
    fastavro.schemaless_writer(out, schema, content)
    tapping = TopicTapping(schema_of=lambda number: schema)
    tapping.topic.send(None, b"\x00\x00\x00\x00\x01" + out.getvalue())
    tapping.take()
    assert tapping.errors() == []
    ((_, columns),) = tapping.versions.known
    assert columns.types == {
        "id": "int", "kind": "string", "fare": "decimal(9,2)", "at": "timestamp", "local": "timestamp", "day": "date", "clock": "string",
        "any": "string", "stops": "array<struct<lat:double,of:string>>",
    }  # fmt: skip
    (row,) = rows(tapping).values()
    expected = content | {"local": datetime(2026, 11, 27, 9, tzinfo=UTC), "clock": "08:30:00", "any": "7"}
    assert row == expected


def test_the_order_is_that_of_the_offsets_and_of_each_time_that_partitions_were_added() -> None:
    place = TopicPlace(1, ORDERS, "x", {0: 50, 1: 10})
    assert place.sequence(0, 49) < place.sequence(0, 50)
    place.add_partitions({0: Bounds(0, 60), 1: Bounds(0, 10), 2: Bounds(0, 5)})
    place = TopicPlace.from_json(place.as_json())
    assert place.next == {0: 50, 1: 10, 2: 0}
    old = max(place.sequence(0, 59), place.sequence(1, 9))
    assert old < min(place.sequence(2, 0), place.sequence(0, 60), place.sequence(1, 10))
    place.add_partitions({number: Bounds(0, 70) for number in range(4)})
    assert place.sequence(2, 69) < place.sequence(3, 0)
    place.add_partitions({number: Bounds(0, 80) for number in range(4)})
    assert len(place.grown) == 2
    for partition, (first, second) in itertools.product(range(4), itertools.pairwise(range(0, 100, 7))):
        assert place.sequence(partition, first) < place.sequence(partition, second)


@pytest.mark.parametrize(
    ("topic_id", "bounds", "reason"),
    [
        ("x", {0: Bounds(0, 50)}, ""),
        ("x", {0: Bounds(50, 50)}, ""),
        ("x", {0: Bounds(51, 60)}, "its partition 0 begins at 51, and 50 was to be read"),
        ("x", {0: Bounds(0, 49)}, "its partition 0 ends at 49"),
        ("x", {}, "no partition 0 any more"),
        ("y", {0: Bounds(0, 50)}, "made anew"),
        (None, {}, "was deleted"),
    ],
)
def test_what_has_become_of_a_topic_is_told(topic_id: str | None, bounds: dict[int, Bounds], reason: str) -> None:
    why = why_cannot_go_on(TopicPlace(1, ORDERS, "x", {0: 50}), topic_id, bounds)
    assert reason in why
    assert bool(why) == bool(reason)


def test_several_datasets_of_a_topic_are_read_from_where_the_first_needs_it() -> None:
    places = [
        TopicPlace(1, ORDERS, "x", {0: 5, 1: 7}),
        TopicPlace(1, ORDERS, "x", {0: 9, 1: 2, 2: 0}),
        TopicPlace(1, "r", "y", {0: 1}),
    ]
    assert partitions_of(places) == {ORDERS: {0: 5, 1: 2, 2: 0}, "r": {0: 1}}
    state = TopicsState(dict(zip("abc", places, strict=True)), {"d": 3})
    assert TopicsState.from_json(state.as_json()) == state


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (7.0, "long", 7), (7, "double", 7.0), (2**53, "double", float(2**53)), ("x", "string", "x"), (True, "string", "true"), (1.5, "string", "1.5"),
        (None, "long", None), ([{"a": 1}], "array<struct<a:long,b:string>>", [{"a": 1, "b": None}]), ({"a": 1}, "map<string,long>", {"a": 1}),
        (Decimal("1.5"), "decimal(5,2)", Decimal("1.5")), (3, "decimal(5,2)", Decimal(3)),
        *((Decimal(text), kind, Decimal(text)) for text, kind in WIDEST),
    ],
)  # fmt: skip
def test_a_value_that_fits_its_column_is_taken(value: Any, kind: str, expected: Any) -> None:
    taken = lake_value(value, parse_type(kind), "c")
    assert (taken, type(taken)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (7.5, "long"), (True, "long"), ("7", "long"), (2**53 + 1, "double"), (True, "double"), (2**31, "int"), (1, "boolean"), ("x", "binary"),
        (Decimal("1.555"), "decimal(5,2)"), (Decimal(1000), "decimal(5,2)"), (1.5, "decimal(5,2)"), (Decimal("NaN"), "decimal(5,2)"),
        ("2026-01-01", "date"), (NOW, "date"), ({"c": 1}, "struct<a:long>"), ([1], "struct<a:long>"), ({"a": 1}, "array<long>"), (["x"], "array<long>"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_its_column_is_refused_by_name(value: Any, kind: str) -> None:
    with pytest.raises(BadMessage, match="`c"):
        lake_value(value, parse_type(kind), "c")


def test_a_key_that_is_a_text_is_read_in_the_type_of_its_column() -> None:
    assert key_value("-42", parse_type("long"), "id") == -42
    assert key_value("042", parse_type("string"), "id") == "042"
    assert key_value("2026-11-27", parse_type("date"), "id") == date(2026, 11, 27)
    assert key_value("7", parse_type("decimal(20,0)"), "id") == Decimal(7)
    for text, kind in (
        ("042", "long"),
        ("x", "long"),
        ("9" * 30, "long"),
        ("x", "date"),
        ("x", "decimal(20,0)"),
        ("", "long"),
    ):
        with pytest.raises(BadMessage, match="`id` is"):
            key_value(text, parse_type(kind), "id")
