"""What is said of two versions of a schema: columns that were added, removed, renamed or changed, however deep, and whatever they are called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from ingestion.domain.avro.columns import columns_of
from ingestion.domain.avro.schema_diff import MAX_CHANGES, ChangeKind, Difference, schema_diff
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_schema import event_schema
from tests.unit.ingestion.test_avro_compatibility import schemas

ADDED, REMOVED, _ = ChangeKind
MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}


def record(*fields: Any, name: str = "Row", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def column(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def lines(old: Any, new: Any) -> list[str]:
    """Each change in a line."""
    return [
        f"{change.kind} {change.path}: {change.full_type}"
        if change.column is not None
        else f"{change.kind} {change.path}: "
        + "; ".join(f"{each.what} {each.before or '-'} -> {each.after or '-'}" for each in change.differences)
        for change in schema_diff(old, new).changes
    ]


def of_column(old: Any, new: Any, **more: Any) -> list[str]:
    """A type, and the one in its place."""
    return lines(record(column("a", old)), record(column("a", new, **more)))


def test_columns_come_and_go_and_change() -> None:
    old = record(column("id", "int"), column("gone", "string"), column("city", "string"))
    new = record(column("id", "long"), column("city", "string"), column("price", "double", default=0.5, doc="In euros"))
    assert lines(old, new) == ["changed id: type int -> long", "added price: double", "removed gone: string"]
    diff = schema_diff(old, new)
    assert (diff.added, diff.removed, diff.changed) == (1, 1, 1)
    added = next(change.column for change in diff.changes if change.kind == ADDED)
    assert added is not None
    assert (added.default, added.doc) == ("0.5", "In euros")


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("int", ["null", "int"], "type int -> int, may be null"),
        (["null", "int"], ["null", "long"], "type int, may be null -> long, may be null"),
        (["null", "long"], ["null", "long", "string"], "type long, may be null -> long or string, may be null"),
        (["int", "string"], ["string"], "type int or string -> string"),
        (
            "bytes",
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "type binary -> decimal(9,2)",
        ),
        (MILLIS, MICROS, "type timestamp-millis -> timestamp-micros"),
        ("string", COLOURS, "type string -> enum"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, "type array<int> -> array<long>"),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": ["null", "int"]},
            "type array<int> -> array<null or int>",
        ),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 8},
            "type fixed(4) -> fixed(8)",
        ),
        (COLOURS, {**COLOURS, "symbols": ["RED", "GREEN"]}, "symbols BLUE -> GREEN"),
        (COLOURS, {**COLOURS, "symbols": ["BLUE", "RED"]}, "order of symbols RED, BLUE -> BLUE, RED"),
        (record(name="A"), record(name="B"), "type name A -> B"),
        (record(name="A"), "string", "type struct -> string"),
    ],
)
def test_a_type_that_changes_is_named_before_and_after(old: Any, new: Any, change: str) -> None:
    assert of_column(old, new) == [f"changed a: {change}"]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ({}, {"default": "x"}, 'default - -> "x"'),
        ({"default": "x"}, {"default": ""}, 'default "x" -> ""'),
        ({"default": "null"}, {}, 'default "null" -> -'),
        ({}, {"doc": "Where it began"}, "documentation - -> Where it began"),
        ({"doc": "a"}, {"doc": "b"}, "documentation a -> b"),
        ({}, {"aliases": ["b", "c"]}, "aliases - -> b, c"),
        ({"default": "x" * 300}, {"default": "x" * 299 + "y"}, f'default "{"x" * 199}… (302 characters) -> "{"x" * 199}… (302 characters)'),
    ],
)  # fmt: skip
def test_so_are_defaults_documentation_and_aliases(old: Any, new: Any, change: str) -> None:
    assert lines(record(column("a", "string", **old)), record(column("a", "string", **new))) == [f"changed a: {change}"]


def test_a_default_of_true_is_not_one_of_1() -> None:
    """Python takes them for equal."""
    old, new = (record(column("a", ["boolean", "int"], default=value)) for value in (True, 1))
    assert lines(old, new) == ["changed a: default true -> 1"]


def test_a_column_with_the_old_name_as_alias_was_renamed() -> None:
    old = record(column("city", "string"), column("id", "long"))
    new = record(column("town", ["null", "string"], aliases=["city"]), column("id", "long"))
    assert lines(old, new) == ["changed town: name city -> town; type string -> string, may be null"]


def test_an_alias_of_a_column_that_is_there_still_renames_nothing() -> None:
    old = record(column("city", "string"))
    new = record(column("town", "string", aliases=["city"]), column("city", "string"))
    assert lines(old, new) == ["added town: string"]


def test_two_columns_are_not_one_renamed_twice() -> None:
    old = record(column("city", "string"))
    new = record(column("a", "string", aliases=["city"]), column("b", "string", aliases=["city"]))
    assert lines(old, new) == ["changed a: name city -> a", "added b: string"]


def test_what_changed_within_structures_is_named_by_its_path() -> None:
    def trip(*fields: Any) -> Any:
        stops = {"type": "array", "items": ["null", record(*fields, name="Stop")]}
        return record(column("row", record(column("stops", ["null", stops]), name="Inner")))

    old, new = (
        trip(column("lat", "float"), column("at", MILLIS)),
        trip(column("lat", "double"), column("lon", "double")),
    )
    assert lines(old, new) == [
        "changed row.stops[].lat: type float -> double",
        "added row.stops[].lon: double",
        "removed row.stops[].at: timestamp",
    ]


def test_the_structures_of_a_union_are_told_apart() -> None:
    def event(click: Any) -> Any:
        return record(column("event", [record(column("x", click), name="Click"), record(name="View")]))

    assert lines(event("int"), event("long")) == ["changed event(Click).x: type int -> long"]


def test_a_column_that_is_added_says_what_is_in_it() -> None:
    point = record(column("lat", "double"), column("tags", {"type": "map", "values": "string"}), name="Point")
    new = record(column("at", {"type": "array", "items": point}))
    assert lines(record(), new) == ["added at: array<struct<lat:double,tags:map<string,string>>>"]


def test_an_order_that_changed_is_a_change_of_the_structure() -> None:
    a, b, c = (column(name, "int") for name in "abc")
    assert lines(record(a, b), record(b, c, a)) == ["changed : order a, b -> b, a", "added c: int"]


def test_documentation_of_the_whole_and_a_schema_without_columns() -> None:
    assert lines(record(), record(doc="Trips")) == ["changed : documentation - -> Trips"]
    assert lines("int", "long") == ["changed : type int -> long"]
    assert lines("int", record(column("a", "int"))) == ["changed : type int -> struct"]


def test_what_no_column_has_is_no_change_and_yet_not_the_same() -> None:
    diff = schema_diff(record(column("a", "int")), record(column("a", "int"), owner="ana"))
    assert (diff.changes, diff.is_same) == ((), False)
    assert schema_diff(record(doc="x"), dict(reversed(record(doc="x").items()))).is_same


def test_a_structure_that_holds_itself_is_compared_once() -> None:
    def tree(type_: str) -> Any:
        return record(column("left", ["null", "Row"]), column("right", ["null", "Row"]), column("value", type_))

    assert lines(tree("int"), tree("long")) == ["changed value: type int -> long"]
    assert [each.path for each in columns_of(tree("int")).columns] == ["left", "right", "value"]


def chain(prefix: str, length: int = 3_000) -> Any:
    """Structures that name each other, in a JSON that is flat; what they are compared by comes last."""
    structs = [
        record(*([column("f", f"A{number - 1}")] if number else []), name=f"A{number}") for number in range(length)
    ]
    fields = [column(f"{prefix}{number}", struct) for number, struct in enumerate(structs)]
    return record(*fields, column("x", f"A{length - 1}"))


def test_chains_and_circles_of_thousands_of_structures_end() -> None:
    diff = schema_diff(chain("d"), chain("e"))
    assert (len(diff.changes), diff.is_cut) == (MAX_CHANGES, True)
    last_first = record(*reversed(chain("d")["fields"][:1]), column("x", "int"))
    assert schema_diff(last_first, chain("d")).is_cut
    assert columns_of(chain("d")).is_cut


def test_names_that_are_very_long_are_cut() -> None:
    name = "n" * 400_000
    new = record(column(name, record(*(column(f"f{number}", "int") for number in range(400)), name="Inner")))
    assert max(len(each.path) for each in columns_of(new).columns) < 200
    assert all(len(change.path) < 200 for change in schema_diff(record(), new).changes)


HOSTILE = ("<script>alert(1)</script>", "\u202elanigiro", "{{7*7}}", "`", "a\u0000b", "", "😀" * 50)


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_handed_on_as_they_are(text: str) -> None:
    changes = schema_diff(
        record(column("a", "string", doc="x")), record(column("a", "string", doc=text, default=text))
    ).changes
    assert changes[0].differences == (
        Difference("default", "", json.dumps(text, ensure_ascii=False)),
        Difference("documentation", "x", text),
    )


def test_of_captured_tables_the_row_changes() -> None:
    old = event_schema("trips", Schema.of({"id": "long", "fare": "decimal(9,2)"}))
    new = event_schema("trips", Schema.of({"id": "long", "fare": "decimal(12,2)", "at": "timestamp"}))
    assert lines(old, new) == [
        "changed row.fare: type decimal(9,2), may be null -> decimal(12,2), may be null",
        "added row.at: timestamp",
    ]


@given(schemas(), schemas())
@settings(max_examples=150, deadline=None)
def test_what_one_way_is_added_is_removed_the_other_way(old: Any, new: Any) -> None:
    there, back = schema_diff(old, new), schema_diff(new, old)
    assert schema_diff(old, old).is_same
    assert {change.path for change in there.changes if change.kind == ADDED} == {
        change.path for change in back.changes if change.kind == REMOVED
    }
    assert bool(there.changes) == bool(back.changes)


def test_columns_are_listed_with_their_types_in_words_of_the_lake() -> None:
    point = record(column("lat", "double"), name="Point")
    schema = record(
        column("id", "long"),
        column("at", ["null", MICROS], default=None, doc="When"),
        column("colour", COLOURS, default="RED"),
        column("points", {"type": "array", "items": point}),
        column("home", "Point"),
    )
    rows = [(each.path, each.level, each.type, each.avro_type, each.is_nullable) for each in columns_of(schema).columns]
    assert rows == [
        ("id", 0, "long", "long", False),
        ("at", 0, "timestamp", "timestamp-micros", True),
        ("colour", 0, "string", "enum", False),
        ("points", 0, "array<struct>", "array<record>", False),
        ("points[].lat", 1, "double", "double", False),
        ("home", 0, "struct", "record", False),
    ]
    by_path = {each.path: each for each in columns_of(schema).columns}
    assert (by_path["at"].default, by_path["at"].doc) == ("null", "When")
    assert by_path["colour"].symbols == "RED, BLUE"
    assert by_path["home"].shown_at == "points[]"
    assert (by_path["points[].lat"].parent, by_path["points[].lat"].name) == ("points[].", "lat")


@pytest.mark.parametrize(("schema", "type_"), [("string", "string"), ({"type": "array", "items": "int"}, "array<int>")])
def test_a_schema_that_is_no_record_is_one_column_without_a_name(schema: Any, type_: str) -> None:
    assert [(each.path, each.type) for each in columns_of(schema).columns] == [("", type_)]
