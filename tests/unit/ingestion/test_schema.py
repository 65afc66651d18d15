"""How a table's schema may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.column_types import Plain, UnknownType, evolve_type, is_plain_widening, parse_type
from ingestion.domain.schema import Schema, SchemaColumn, UnfitColumnName, UnknownColumn, evolve_schema
from tests.unit.ingestion.type_strategies import TYPES

SCHEMAS = st.dictionaries(st.sampled_from("abcdef"), TYPES.map(str)).map(Schema.of)


@given(SCHEMAS, SCHEMAS)
def test_no_column_is_lost_and_stored_types_only_widen(stored: Schema, incoming: Schema) -> None:
    target = evolve_schema(stored, incoming).target
    assert set(target.names) == {*stored.names, *incoming.names}
    assert target.names[: len(stored.names)] == stored.names
    for name, type_ in stored.types.items():
        assert evolve_type(parse_type(type_), parse_type(target.types[name]), name).conflicts == ()


@given(SCHEMAS, SCHEMAS)
def test_evolving_twice_changes_nothing_more(stored: Schema, incoming: Schema) -> None:
    once = evolve_schema(stored, incoming)
    again = evolve_schema(once.target, incoming)
    assert again.target == once.target
    assert again.conflicts == once.conflicts


@given(SCHEMAS, SCHEMAS)
def test_fixed_columns_keep_their_type(stored: Schema, incoming: Schema) -> None:
    target = evolve_schema(stored, incoming, fixed=stored.names).target
    assert {name: target.types[name] for name in stored.names} == stored.types


@pytest.mark.parametrize(
    ("narrow", "wide", "fits"),
    [
        ("int", "long", True),
        ("long", "int", False),
        ("int", "double", True),
        ("long", "double", False),
        ("float", "double", True),
        ("long", "string", False),
        ("decimal(10,2)", "decimal(20,2)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("decimal(10,2)", "double", False),
    ],
)
def test_widening(narrow: str, wide: str, fits: bool) -> None:
    assert is_plain_widening(Plain(narrow), Plain(wide)) is fits


def test_a_structure_that_grew_is_widened_and_a_conflict_in_it_keeps_the_rest() -> None:
    stored, incoming = Schema.of({"p": "struct<a:int,b:int>"}), Schema.of({"p": "struct<a:long,b:date,c:date>"})
    evolution = evolve_schema(stored, incoming)
    assert evolution.target.types == {"p": "struct<a:long,b:int,c:date>"}
    assert (evolution.widened, evolution.conflicts) == (("p",), (("p.b", "int", "date"),))


def test_a_field_that_the_lake_cannot_hold_is_named_by_its_path() -> None:
    with pytest.raises(UnfitColumnName, match=r"cannot hold the columns `p\[\].two words`"):
        Schema.of({"p": "array<struct<`two words`:int>>"}).require_lake_names("The source of `orders`")


def test_a_narrower_source_is_no_conflict() -> None:
    assert evolve_schema(Schema.of({"a": "long"}), Schema.of({"a": "int"})).conflicts == ()


def test_a_misspelt_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match=r"The table has no column `fligth`\. Did you mean `flight`"):
        Schema.of({"flight": "long", "origin": "string"}).require(["fligth"], "The table")


def test_a_misspelt_type_too() -> None:
    with pytest.raises(UnknownType, match="Did you mean `double`"):
        SchemaColumn("a", "doubel")


@pytest.mark.parametrize(
    "name", ["two words", "2nd", "Größe", "注文", "a.b", "", "a\n", "ID", "_hoodie_commit_time", "_Lakehub_fate"]
)
def test_a_column_that_the_lake_cannot_hold_is_named_before_anything_is_written(name: str) -> None:
    """`Größe` could be written: then no reader but Spark could read the table."""
    schema = Schema.of({"id": "long", "_ok2": "string", name: "string"})
    with pytest.raises(UnfitColumnName) as refused:
        schema.require_lake_names("The source of `orders`")
    assert f"The lake cannot hold the columns `{name}`: names there have the letters A to Z" in str(refused.value)
    Schema.of({"id": "long", "_ok2": "string"}).require_lake_names("The source of `orders`")
