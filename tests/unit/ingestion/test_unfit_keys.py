"""Columns whose values have no text that stays are no keys: the job says so before it reads."""

from __future__ import annotations

import pytest

from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.loading.write_path import UnfitKey, plan_schema

EMPTY = Schema(())


def table(*key: str, reference_key: str | None = None) -> TableSpec:
    return TableSpec("orders", "file:///lake/orders", "file:///lake/orders_errors", key, reference_key)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("binary", "has bytes .*`id`, which is a part of the record key. Load a view"),
        ("array<long>", "has the type `array<long>` in the column `id`, which is a key"),
    ],
)
def test_a_record_key_holds_plain_values(type_: str, message: str) -> None:
    """Hudi wrote where the bytes lay in memory: each change of a row was stored as another row."""
    arriving = Schema.of({"id": type_, "day": "date"})
    with pytest.raises(UnfitKey, match=message):
        plan_schema(arriving, table("day", "id"), EMPTY)


def test_a_reference_key_may_be_bytes() -> None:
    arriving = Schema.of({"id": "long", "version": "binary"})
    assert plan_schema(arriving, table("id", reference_key="version"), EMPTY).target.names == ("id", "version")
