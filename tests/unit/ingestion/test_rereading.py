"""A table that got other columns while a job was reading: its rows are written as the table is now, or read again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ingestion.domain.checkpoint import Checkpoint
from ingestion.domain.schema import Schema, SchemaEvolution, UnfitColumnName, evolve_schema
from ingestion.spark.loading import rereading

KEYS = ("id",)
AT_FIRST = Schema.of({"id": "long", "amount": "int"})
JOB: Any = SimpleNamespace(spark=None, table=SimpleNamespace(name="orders"))


def evolution_now(
    monkeypatch: pytest.MonkeyPatch, incoming: dict[str, str], stored_now: dict[str, str]
) -> SchemaEvolution:
    """Rows with the columns `incoming` were made to fit the table as it was at first."""
    monkeypatch.setattr(rereading.hudi, "stored_schema", lambda spark, table: Schema.of(stored_now))
    start = rereading.ReadingStart("20261116080000000", AT_FIRST, Checkpoint({}, "", 0))
    planned = evolve_schema(AT_FIRST, Schema.of(incoming), fixed=KEYS)
    staged = Schema(tuple(column for column in planned.target if column.name not in planned.missing))
    return rereading.evolution_now(JOB, start, planned, staged, KEYS)


def test_a_column_that_another_job_has_added_keeps_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"id": "long", "amount": "int", "note": "string"}
    evolution = evolution_now(monkeypatch, {"id": "long", "amount": "int"}, now)
    assert (evolution.target, evolution.missing) == (Schema.of(now), ("note",))


def test_a_column_that_both_add_is_added_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"id": "long", "amount": "int", "note": "string"}
    evolution = evolution_now(monkeypatch, both, both)
    assert (evolution.target, evolution.added) == (Schema.of(both), ())


def test_a_column_that_both_add_in_other_cases_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"id": "long", "amount": "int", "Note": "string"}
    with pytest.raises(
        UnfitColumnName, match=r"`orders` has the column `note`, and the table in the lake has it as `Note`"
    ):
        evolution_now(monkeypatch, {"id": "long", "amount": "int", "note": "string"}, now)


@pytest.mark.parametrize("now", [{"id": "long", "amount": "long"}, {"id": "long", "amount": "string"}])
def test_rows_made_to_fit_another_type_are_read_again(monkeypatch: pytest.MonkeyPatch, now: dict[str, str]) -> None:
    with pytest.raises(rereading.ReadAgain, match="other types"):
        evolution_now(monkeypatch, {"id": "long", "amount": "int"}, now)


def test_what_does_not_fit_is_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"id": "long", "amount": "int", "note": "string"}
    evolution = evolution_now(monkeypatch, {"id": "long", "amount": "timestamp"}, now)
    assert evolution.conflicts == (("amount", "int", "timestamp"),)
