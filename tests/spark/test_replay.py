"""Rejected rows are corrected and applied, and never beat what is newer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.accounting import RowCounts
from ingestion.lake.error_rows import ErrorFilters, ErrorRow, ErrorState, read_error_page
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import ReplaySpec
from ingestion.spark.rejected import error_table
from tests.spark.order_shop import Orders

AT = "2026-11-17 08:00:00"
LATER = "2026-11-18 08:00:00"


def error_rows(orders: Orders, state: ErrorState = ErrorState.OPEN) -> list[ErrorRow]:
    return list(read_error_page(orders.table.error_uri, ErrorFilters(state=state)).rows)


def replay(
    spark: SparkSession, orders: Orders, fixes: Mapping[int, Mapping[str, Any]], run: str = "r", **fields: Any
) -> JobReport:
    """The open rows with these ids, each with its fix."""
    keys = {json.loads(row.raw)["id"]: row.error_key for row in error_rows(orders)}
    given = {keys[number]: json.dumps(fix) for number, fix in fixes.items()}
    spec = ReplaySpec(tuple(given), "olga", given)
    return orders.run(spark, "replay", run, replay=spec, source=None, **fields)


@pytest.fixture
def rejected(spark: SparkSession, orders: Orders) -> Orders:
    """Orders 0 to 2 are stored, 3 to 5 are rejected for their amount."""
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.add(*((number, "2026-11-01", "much", AT) for number in (3, 4, 5)))
    assert orders.run(spark, "incremental", "i").counts.errors == 3
    return orders


def test_a_corrected_row_is_applied_and_resolved_and_the_checkpoint_stays(
    spark: SparkSession, rejected: Orders
) -> None:
    before = rejected.timeline.checkpoint()
    report = replay(spark, rejected, {3: {"amount": 3.5}, 4: {"amount": "more"}})
    assert (report.error, report.counts) == (None, RowCounts(read=2, applied=1, errors=1))
    assert report.is_accounted
    assert (3, "2026-11-01", 3.5) in rejected.rows(spark)
    (resolved,) = error_rows(rejected, ErrorState.RESOLVED)
    assert (resolved.resolved_by, resolved.run, resolved.fixed) == ("olga", "r", '{"amount": 3.5}')
    reasons = {json.loads(row.raw)["id"]: row.reason for row in error_rows(rejected)}
    assert reasons[4] == '`amount` is "more" (str), which is no double'
    assert set(reasons) == {4, 5}
    after = rejected.timeline.checkpoint()
    assert before is not None
    assert after == replace(before, commits_since=1)


@pytest.mark.parametrize("reference_key", ["updated_at", None])
def test_a_replayed_row_never_beats_a_newer_one_and_beats_an_older_one(
    spark: SparkSession, orders: Orders, reference_key: str | None
) -> None:
    orders.table = replace(orders.table, reference_key=reference_key)
    orders.fill(3, days=1)
    orders.run(spark, "bootstrap", "b")
    orders.change(0, "much", AT)
    orders.change(1, "much", AT)
    assert orders.run(spark, "incremental", "i").counts.errors == 2
    orders.change(1, 11.0, LATER)
    assert orders.run(spark, "incremental", "j").counts.applied == 1
    report = replay(spark, orders, {0: {"amount": 5.0}, 1: {"amount": 6.0}})
    assert (report.error, report.counts) == (None, RowCounts(read=2, applied=1, superseded=1))
    assert orders.rows(spark) == [(0, "2026-11-01", 5.0), (1, "2026-11-01", 11.0), (2, "2026-11-01", 2.0)]
    assert error_rows(orders) == []


def test_a_replay_that_dies_after_its_commit_resolves_the_rows_when_it_is_tried_again(
    spark: SparkSession, rejected: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, calls = error_table.append_errors, []

    def die_once(*args: Any, **fields: Any) -> None:
        calls.append(fields["batch"])
        if len(calls) == 1:
            raise RuntimeError("dead")
        append(*args, **fields)

    monkeypatch.setattr(error_table, "append_errors", die_once)
    keys = [row.error_key for row in error_rows(rejected)]
    spec = ReplaySpec(tuple(keys), "olga", {}, '{"amount": 1.0}')
    reports = [rejected.run(spark, "replay", "r", replay=spec, source=None) for _ in range(3)]
    assert [report.status for report in reports] == ["failed", "nothing_to_do", "nothing_to_do"]
    assert [report.counts.redelivered for report in reports] == [0, 3, 0]
    assert (len(error_rows(rejected)), len(error_rows(rejected, ErrorState.RESOLVED))) == (0, 3)
    assert len(rejected.rows(spark)) == 6


def test_what_does_not_fit_stays_with_the_new_reason(spark: SparkSession, rejected: Orders) -> None:
    report = replay(
        spark, rejected, {3: {"nobody": 1, "amount": 1.0}, 4: {"day": None, "amount": 1.0}, 5: {"amount": 5.0}}
    )
    assert (report.error, report.counts) == (None, RowCounts(read=3, applied=1, errors=2))
    assert {row.reason for row in error_rows(rejected)} == {
        "`nobody` is no column of the source's schema",
        "`day` is null, but it is a key",
    }
    again = replay(spark, rejected, {3: {"amount": 3.0}}, run="again")
    assert (again.counts, [json.loads(row.raw)["id"] for row in error_rows(rejected)]) == (RowCounts(1, 1), [4])


def test_a_column_that_a_row_lacks_keeps_its_stored_value(spark: SparkSession, orders: Orders) -> None:
    """A replay of rows with different columns is a commit for each set of them."""
    orders.fill(2, days=1)
    orders.run(spark, "bootstrap", "b")
    orders.change(1, "much", AT)
    assert orders.run(spark, "incremental", "i").counts.errors == 1
    orders.sql("alter table orders add column note text")
    orders.sql(f"update orders set note = 'kept', amount = 1.5, updated_at = '{LATER}' where id = 1")
    orders.add((7, "2026-11-01", "much", LATER, "new"))
    assert orders.run(spark, "incremental", "j").counts == RowCounts(read=2, applied=1, errors=1)
    report = replay(spark, orders, {1: {"amount": 9.0, "updated_at": "2026-11-19 08:00:00"}, 7: {"amount": 7.0}})
    assert (report.error, report.counts) == (None, RowCounts(read=2, applied=2))
    assert orders.rows(spark, "id", "amount", "note") == [(0, 0.0, None), (1, 9.0, "kept"), (7, 7.0, "new")]
