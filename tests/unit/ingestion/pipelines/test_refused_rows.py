"""How the error of a run says which rows it refuses."""

from __future__ import annotations

from ingestion.spark.etl.checks.words import in_rows, misfits_in_rows


def test_problems_have_the_number_of_their_rows() -> None:
    assert in_rows({"`day` is null": 1, "`airline` is null": 1_200}) == (
        "`day` is null in 1 row, `airline` is null in 1,200 rows"
    )
    assert not in_rows({})


def test_values_do_not_fit_the_type_of_their_column() -> None:
    types = {"n": "int", "price": "decimal(12,2)"}
    assert misfits_in_rows({"price": 2, "n": 1}, types) == (
        "`price` does not fit decimal(12,2) in 2 rows, `n` does not fit int in 1 row"
    )
