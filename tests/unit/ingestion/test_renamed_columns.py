"""A column that the source spells in other cases than the table: the job says so before it reads, as Spark could not read a table with both."""

from __future__ import annotations

import pytest

from ingestion.domain.schema import Schema, UnfitColumnName
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.loading.write_path import plan_schema

STORED = Schema.of({"id": "long", "Amount": "double"})
ORDERS = TableSpec("orders", "file:///lake/orders", "file:///lake/orders_errors", ("id",))


@pytest.mark.parametrize("name", ["amount", "AMOUNT"])
def test_a_column_renamed_in_case_only_is_refused_with_both_spellings_and_the_remedy(name: str) -> None:
    with pytest.raises(UnfitColumnName) as refused:
        plan_schema(Schema.of({"id": "long", name: "double"}), ORDERS, STORED)
    assert str(refused.value) == (
        f"The source of `orders` has the column `{name}`, and the table in the lake has it as `Amount`: names there differ by more than "
        f"their case. Nothing was written. Name the column `Amount` again at the source, or load a view that does; to have it as `{name}`, "
        "drop the copy and let it be loaded anew."
    )


def test_what_the_table_holds_already_is_no_reason_to_refuse() -> None:
    """A column that the source has no more may have a name that was taken before names were checked."""
    stored = Schema.of({"id": "long", "Größe": "double"})
    assert plan_schema(Schema.of({"id": "long", "note": "string"}), ORDERS, stored).added == ("note",)
