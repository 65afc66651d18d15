"""How a table's schema may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.schema import (
    SIMPLE_TYPES,
    Schema,
    SchemaColumn,
    UnfitColumnName,
    UnknownColumn,
    UnknownType,
    evolve_schema,
    is_widening,
)

TYPES = st.sampled_from((*SIMPLE_TYPES, "decimal(10,2)", "decimal(20,2)", "decimal(12,4)"))
SCHEMAS = st.dictionaries(st.sampled_from("abcdef"), TYPES).map(Schema.of)


@given(SCHEMAS, SCHEMAS)
def test_no_column_is_lost_and_stored_types_only_widen(stored: Schema, incoming: Schema) -> None:
    target = evolve_schema(stored, incoming).target
    assert set(target.names) == {*stored.names, *incoming.names}
    assert target.names[: len(stored.names)] == stored.names
    assert all(is_widening(type_, target.types[name]) for name, type_ in stored.types.items())


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
        ("float", "double", True),
        ("long", "string", False),
        ("decimal(10,2)", "decimal(20,2)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("decimal(10,2)", "double", False),
    ],
)
def test_widening(narrow: str, wide: str, fits: bool) -> None:
    assert is_widening(narrow, wide) is fits


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
