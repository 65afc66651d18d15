"""The text of a column type and what it stands for; and how a nested type may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.column_types import (
    MAX_DEPTH,
    MAX_FIELDS,
    STRING,
    ArrayOf,
    ColumnType,
    MapOf,
    Plain,
    StructOf,
    UnknownType,
    depth_of,
    evolve_type,
    has_map,
    in_lake,
    is_nested,
    parse_type,
    plain_types_in,
    struct_in_lake,
    unfit_field_names,
)
from tests.unit.ingestion.type_strategies import TYPES, column_types

ANY_NAMES = st.one_of(st.sampled_from(["a", "two words", "ti`ck", "order", "a:b", "<", ","]), st.text(min_size=1))


@given(column_types(ANY_NAMES).filter(lambda type_: depth_of(type_) <= MAX_DEPTH))
def test_a_type_is_read_from_its_own_text(type_: ColumnType) -> None:
    assert parse_type(str(type_)) == type_


def test_blanks_between_the_parts_do_not_matter() -> None:
    spaced = " struct< a : array < decimal( 10 , 2 ) > , `b c` : map < string , long > > "
    assert str(parse_type(spaced)) == "struct<a:array<decimal(10,2)>,`b c`:map<string,long>>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("aray<long>", r"there is no type `aray`. Did you mean `array`\?"),
        ("struct<a:lnog>", r"there is no type `lnog`. Did you mean `long`\?"),
        ("bigint", "there is no type `bigint`"),
        ("", "it ends too soon"),
        ("array<long", "`>` is missing at its end"),
        ("array long", "`<` is missing before `long`"),
        ("array<long>>", "`>` follows its end"),
        ("map<long,string>", "the keys of a map are texts, not `long`"),
        ("map<string>", "`,` is missing before `>`"),
        ("struct<>", "`:` is missing"),
        ("struct<a:long,a:long>", "it has the field `a` twice"),
        ("decimal(１０,２)", r"there is no type `decimal`\. Did you mean `decimal\(10,2\)`"),
        ("decimal(39,2)", "a decimal has 1 to 38 digits"),
        ("decimal(2,3)", "and no more of them behind the point"),
        ("array<" * MAX_DEPTH + "long" + ">" * MAX_DEPTH, f"it is nested deeper than {MAX_DEPTH}"),
        (f"struct<{','.join(f'a{n}:int' for n in range(MAX_FIELDS + 1))}>", "a structure has 1,000 fields at most"),
    ],
)
def test_what_is_wrong_with_a_text_is_named(text: str, reason: str) -> None:
    with pytest.raises(UnknownType, match=reason):
        parse_type(text)


@given(TYPES, TYPES)
def test_a_type_that_evolves_loses_no_field_and_evolving_again_changes_nothing(
    stored: ColumnType, incoming: ColumnType
) -> None:
    evolution = evolve_type(stored, incoming, "c")
    assert evolve_type(stored, evolution.target, "c").conflicts == ()
    assert evolve_type(evolution.target, stored, "c") == evolve_type(evolution.target, evolution.target, "c")
    again = evolve_type(evolution.target, incoming, "c")
    assert (again.target, again.conflicts) == (evolution.target, evolution.conflicts)


@pytest.mark.parametrize(
    ("stored", "incoming", "target"),
    [
        ("struct<a:int>", "struct<b:date,a:long>", "struct<a:long,b:date>"),
        ("struct<a:long,b:date>", "struct<a:int>", "struct<a:long,b:date>"),
        ("array<struct<a:int>>", "array<struct<a:int,b:string>>", "array<struct<a:int,b:string>>"),
        ("map<string,float>", "map<string,double>", "map<string,double>"),
        ("string", "struct<a:int>", "string"),
    ],
)
def test_what_a_nested_type_may_become(stored: str, incoming: str, target: str) -> None:
    evolution = evolve_type(parse_type(stored), parse_type(incoming), "c")
    assert (str(evolution.target), evolution.conflicts) == (target, ())


@pytest.mark.parametrize(
    ("stored", "incoming", "conflict"),
    [
        ("struct<a:int,b:int>", "struct<a:string,b:long>", ("c.a", "int", "string")),
        ("array<map<string,int>>", "array<map<string,date>>", ("c[][]", "int", "date")),
        ("struct<a:int>", "array<int>", ("c", "struct<a:int>", "array<int>")),
        ("struct<a:int>", "string", ("c", "struct<a:int>", "string")),
        ("struct<a:int>", "struct<a:int,A:int>", ("c.A", "(none)", "int")),
    ],
)
def test_another_type_inside_is_a_conflict_at_its_path(
    stored: str, incoming: str, conflict: tuple[str, str, str]
) -> None:
    assert evolve_type(parse_type(stored), parse_type(incoming), "c").conflicts == (conflict,)


def test_what_the_lake_cannot_hold_as_a_structure_is_text() -> None:
    assert struct_in_lake({"a": STRING}) == StructOf((("a", STRING),))
    assert struct_in_lake({}) == STRING
    for names in (("two words",), ("Id", "id"), ("a.b",)):
        assert struct_in_lake(dict.fromkeys(names, STRING)) == STRING
    inner = StructOf(tuple((f"f{number}", STRING) for number in range(MAX_FIELDS)))
    assert struct_in_lake({"a": inner}) == StructOf((("a", inner),))
    assert struct_in_lake({"a": inner, "b": ArrayOf(STRING)}) == STRING
    assert plain_types_in(MapOf(inner)) == MAX_FIELDS


@given(TYPES, st.integers(1, 4))
def test_what_is_too_deep_is_text(type_: ColumnType, allowed: int) -> None:
    cut = in_lake(type_, allowed)
    assert depth_of(cut) == min(depth_of(type_), allowed)
    assert (cut == type_) is (depth_of(type_) <= allowed)


def test_maps_and_unfit_names_are_found_however_deep() -> None:
    deep = parse_type("array<struct<a:map<string,struct<`b c`:long>>>>")
    assert has_map(deep)
    assert [*unfit_field_names(deep, "top")] == ["top[].a[].b c"]
    assert not has_map(parse_type("array<struct<a:long>>"))
    assert is_nested("array<long>")
    assert not is_nested("decimal(10,2)")
    assert Plain("long").decimal is None
