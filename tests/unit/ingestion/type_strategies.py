"""Column types at random, nested ones too."""

from __future__ import annotations

from hypothesis import strategies as st

from ingestion.domain.column_types import SIMPLE_TYPES, ArrayOf, ColumnType, MapOf, Plain, StructOf

PLAIN_NAMES = (*SIMPLE_TYPES, "decimal(10,2)", "decimal(20,2)", "decimal(12,4)")
PLAIN = st.sampled_from(PLAIN_NAMES).map(Plain)


def _structs(types: st.SearchStrategy[ColumnType], names: st.SearchStrategy[str]) -> st.SearchStrategy[ColumnType]:
    fields = st.dictionaries(names, types, min_size=1, max_size=4)
    return fields.map(lambda types: StructOf(tuple(types.items())))


def column_types(names: st.SearchStrategy[str]) -> st.SearchStrategy[ColumnType]:
    return st.recursive(
        PLAIN,
        lambda inner: st.one_of(inner.map(ArrayOf), inner.map(MapOf), _structs(inner, names)),
        max_leaves=6,
    )


FEW_NAMES = st.sampled_from("abcd")
TYPES = column_types(FEW_NAMES)
