"""Which schema may follow which: by the rules of Avro, with Apache's own checker as the judge, and why not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.domain.avro import compatibility as module
from ingestion.domain.avro.compatibility import (
    MAX_REASONS,
    Compatibility,
    Incompatibility,
    TooManyPairs,
    incompatibilities,
    refusals,
)
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_schema import event_schema

PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def record(**fields: Any) -> dict[str, Any]:
    """A tuple is (type, default)."""
    return {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": name, "type": type_[0], "default": type_[1]}
            if isinstance(type_, tuple)
            else {"name": name, "type": type_}
            for name, type_ in fields.items()
        ],
    }


def problems(reader: Any, writer: Any) -> list[str]:
    return [str(problem) for problem in incompatibilities(reader, writer)]


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """Records in records, each name once in a schema, so that Apache's parser takes it; the letters are often those of another schema."""
    numbers = iter(range(100))

    def name() -> str:
        return f"{draw(st.sampled_from('NM'))}{next(numbers)}"

    def any_type(depth: int) -> Any:
        kinds = ["primitive", "union", "enum", "fixed"] + (["array", "map", "record"] if depth else [])
        match draw(st.sampled_from(kinds)):
            case "primitive":
                return draw(st.sampled_from(PRIMITIVE))
            case "union":
                return draw(st.lists(st.sampled_from(PRIMITIVE), min_size=1, max_size=3, unique=True))
            case "array":
                return {"type": "array", "items": any_type(depth - 1)}
            case "map":
                return {"type": "map", "values": any_type(depth - 1)}
            case "enum":
                symbols = draw(st.lists(st.sampled_from("ABC"), min_size=1, unique=True))
                return {"type": "enum", "name": name(), "symbols": symbols}
            case "fixed":
                return {"type": "fixed", "name": name(), "size": draw(st.integers(1, 2))}
        return any_record(depth - 1)

    def any_record(depth: int) -> Any:
        names = draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True))
        own = name()
        fields = [{"name": name, "type": any_type(depth)} for name in names]
        for each in fields:
            if draw(st.booleans()) and each["type"] in ("int", "string"):
                each["default"] = 0 if each["type"] == "int" else ""
        return {"type": "record", "name": own, "fields": fields}

    return any_record(2)


@settings(max_examples=300)
@given(schemas(), schemas())
def test_what_can_be_read_is_what_apaches_checker_says(reader: Any, writer: Any) -> None:
    verdict = ReaderWriterCompatibilityChecker().get_compatibility(parse(json.dumps(reader)), parse(json.dumps(writer)))
    is_compatible = verdict.compatibility is SchemaCompatibilityType.compatible
    assert (not problems(reader, writer)) == is_compatible, (problems(reader, writer), verdict.messages)


@given(schemas())
def test_what_was_written_by_a_schema_is_read_by_it(schema: Any) -> None:
    assert problems(schema, schema) == []


@pytest.mark.parametrize(
    ("reader", "writer", "reasons"),
    [
        (record(a="long"), record(a="int"), []),
        (record(a="int"), record(a="long"), ["`a` was written as long, and is read as int"]),
        (record(a=("int", 0)), record(), []),
        (record(a="int"), record(), ["`a` is not there in what was written, and has no default"]),
        (record(), record(a="int"), []),
        (record(a=["null", "long"]), record(a="int"), []),
        (record(a="int"), record(a=["null", "int"]), ["`a` was written as null, and is read as int"]),
        (record(a=["null", "string"]), record(a=["null", "int"]), ["`a` was written as int, and is read as null or string"]),
        (record(a=["null", "int"]), record(a=["null", "long"]), ["`a` was written as long, and is read as null or int"]),
        (record(a={"type": "array", "items": "int"}), record(a={"type": "array", "items": "string"}), ["`a[]` was written as string, and is read as int"]),
        (record(a=decimal(12, 2)), record(a=decimal(10, 2)), []),
        (record(a=decimal(10, 2)), record(a=decimal(12, 2)), ["`a` was written as decimal(12, 2), and is read as decimal(10, 2)"]),
        (record(a=["null", decimal(9, 3)]), record(a=["null", decimal(9, 2)]), ["`a` was written as decimal(9, 2), and is read as decimal(9, 3)"]),
        (record(a=MICROS), record(a=MILLIS), ["`a` was written as timestamp-millis, and is read as timestamp-micros"]),
        (record(a="long"), record(a=MICROS), []),
    ],
)  # fmt: skip
def test_why_it_cannot_be_read(reader: Any, writer: Any, reasons: list[str]) -> None:
    assert problems(reader, writer) == reasons


def test_a_field_that_was_renamed_is_found_by_its_alias() -> None:
    renamed = record(b="int")
    renamed["fields"][0]["aliases"] = ["a"]
    assert problems(renamed, record(a="int")) == []


def test_another_record_is_not_read_unless_it_is_known_by_that_name_too() -> None:
    other = record(a="int") | {"name": "shop.Other"}
    assert problems(other, record(a="int")) == ["was written as the record Row, and is read as shop.Other"]
    assert problems(other | {"aliases": ["old.Row"]}, record(a="int")) == []


def test_a_type_that_holds_itself_is_compared_once() -> None:
    def tree(leaf: str) -> dict[str, Any]:
        return record(leaf=leaf, children={"type": "array", "items": "Row"})

    assert problems(tree("long"), tree("int")) == []
    assert problems(tree("int"), tree("long")) == ["`leaf` was written as long, and is read as int"]


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        (Compatibility.NONE, {"add", "drop", "widen", "narrow", "back"}),
        (Compatibility.BACKWARD, {"add", "drop", "widen", "back"}),
        (Compatibility.BACKWARD_TRANSITIVE, {"add", "drop", "widen"}),
        (Compatibility.FORWARD, {"add", "drop", "narrow"}),
        (Compatibility.FULL, {"add", "drop"}),
        (Compatibility.FULL_TRANSITIVE, {"add", "drop"}),
    ],
)
def test_the_rules(rule: Compatibility, accepted: set[str]) -> None:
    """Of the events of a table, whose columns may all be null."""
    first, last = (
        event_schema("t", Schema.of(types)) for types in ({"id": "long", "n": "string"}, {"id": "long", "n": "int"})
    )
    steps: dict[str, dict[str, str]] = {
        "add": {"id": "long", "n": "int", "city": "string"},
        "drop": {"id": "long"},
        "widen": {"id": "long", "n": "long"},
        "narrow": {"id": "int", "n": "int"},
        "back": {"id": "long", "n": "long"},
    }
    both = [(1, first), (2, last)]
    older = {name: both if name == "back" and rule.is_transitive else both[1:] for name in steps}
    taken = {
        name for name, types in steps.items() if not [*refusals(rule, event_schema("t", Schema.of(types)), older[name])]
    }
    assert taken == accepted


@pytest.mark.parametrize(
    ("reader", "writer", "is_read"),
    [
        ("string", decimal(4, 2), False), ("bytes", decimal(4, 2), False), (decimal(4, 2), "bytes", False), ("double", MILLIS, False),
        (MILLIS, "int", False), (MILLIS, "long", True), ("long", MILLIS, True), ({"type": "int", "logicalType": "foo"}, {"type": "int", "logicalType": "bar"}, True),
        ({"type": "bytes", "logicalType": "decimal"}, "bytes", True),
    ],
)  # fmt: skip
def test_a_type_of_times_and_decimals_is_no_number_of_another_type(reader: Any, writer: Any, is_read: bool) -> None:
    assert (not problems(record(a=reader), record(a=writer))) == is_read


def named(name: str, type_: Any = "int", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "v", "type": type_}], **more}


def test_a_short_name_is_that_of_its_namespace() -> None:
    old = named("a.R") | {
        "fields": [
            {"name": "p", "type": named("a.I", "int")},
            {"name": "q", "type": named("b.I", "string")},
            {"name": "y", "type": "I"},
        ]
    }
    new = json.loads(json.dumps(old).replace('"type": "I"', '"type": "b.I"'))
    assert problems(old, old) == []
    assert problems(new, old) == ["`y.v` was written as int, and is read as string"]
    hidden = named("z.R") | {"fields": [{"name": "p", "type": named("z.long", "int")}, {"name": "n", "type": "long"}]}
    assert problems(hidden, hidden) == []


def test_what_is_wrong_with_a_pair_of_types_is_said_wherever_it_comes() -> None:
    def schema(type_: str) -> dict[str, Any]:
        branches = ["null", named("I", type_)]
        return named("R") | {"fields": [{"name": "u", "type": branches}, {"name": "x", "type": "I"}]}

    assert problems(schema("int"), schema("string")) == [
        "`u.v` was written as string, and is read as int",
        "`x.v` was written as string, and is read as int",
    ]


def test_many_branches_and_many_reasons_are_compared_in_time_that_grows_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = ([named(f"{letter}{number}") for number in range(2_000)] for letter in "AB")
    compared: list[object] = []
    monkeypatch.setattr(module, "_mismatch", lambda *pair: (compared.append(pair), Incompatibility("", "no"))[1])
    assert len(incompatibilities(reader, writer)) == MAX_REASONS
    assert len(compared) <= MAX_REASONS
    wide = [{"type": "enum", "name": f"E{number}", "symbols": ["A"]} for number in range(2_000)]
    (reason, *_) = problems("int", wide)
    assert len(reason) < 200


def test_types_of_one_short_name_are_not_compared_each_with_each_without_end() -> None:
    """Of another namespace each, so that none is there twice, and each may read each."""
    union = [named(f"n{number}.R") | {"fields": []} for number in range(1_000)]
    assert problems(union[:100], union[:100]) == []
    with pytest.raises(TooManyPairs):
        incompatibilities(union, union)
    versions = [(number, union[:400]) for number in range(1, 100)]
    with pytest.raises(TooManyPairs):
        list(refusals(Compatibility.FULL_TRANSITIVE, union[:400], versions))


def test_a_refusal_says_of_which_version_and_why() -> None:
    types = ((3, "decimal(10,2)"), (4, "decimal(12,2)"))
    versions = [(number, event_schema("t", Schema.of({"id": "long", "fare": type_}))) for number, type_ in types]
    proposed = event_schema("t", Schema.of({"id": "long", "fare": "decimal(11,2)"}))
    assert [str(refusal) for refusal in refusals(Compatibility.FULL_TRANSITIVE, proposed, versions)] == [
        "Readers of version 3 cannot read it: `row.fare` was written as decimal(11, 2), and is read as decimal(10, 2).",
        "The new schema cannot read what version 4 wrote: `row.fare` was written as decimal(12, 2), and is read as decimal(11, 2).",
    ]
