"""How much a job reads for one commit, so that it is written before the job's deadline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestion.domain.batch_limits import UNLIMITED
from ingestion.spark.job import Job
from tests.spark.order_shop import Orders


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    orders = Orders(tmp_path)
    orders.fill(1000)
    orders.source = replace(orders.source, commit_rows=5_000_000, commit_s=900.0)
    return orders


def job_of(orders: Orders, *, elapsed: float = 0.0, **fields: Any) -> Job:
    job = Job(orders.spec("bootstrap", "b", **fields), SimpleNamespace(), orders.secrets)  # type: ignore[arg-type]
    job.started_monotonic -= elapsed
    return job


@pytest.mark.parametrize(
    ("deadline_s", "elapsed", "seconds"), [(3600.0, 0, 900), (3600.0, 1700, 900), (300.0, 0, 150), (300.0, 150, 75), (300.0, 400, 1)]
)  # fmt: skip
def test_a_reading_leaves_time_to_write_what_was_read(
    orders: Orders, deadline_s: float, elapsed: float, seconds: float
) -> None:
    limits = job_of(orders, deadline_s=deadline_s, elapsed=elapsed).reading_limits
    assert (limits.rows, limits.seconds) == (5_000_000, pytest.approx(seconds, abs=1))


def test_without_limits_everything_is_read_at_once(orders: Orders) -> None:
    orders.source = replace(orders.source, commit_rows=None, commit_s=None)
    assert job_of(orders).reading_limits == UNLIMITED


@pytest.mark.parametrize(("rows_per_s", "rows"), [(None, 1000), (5000.0, 1000), (20.0, 200), (0.01, 1)])
def test_the_chunks_of_a_slow_pace_are_small(orders: Orders, rows_per_s: float | None, rows: int) -> None:
    """Else one of 20,000 rows would take hours of a job that ends between two."""
    orders.source = replace(orders.source, rows_per_s=rows_per_s)
    reading = job_of(orders).open_source().snapshot()
    assert next(reading.batches).rows == rows
