"""How much a job reads for one commit, so that it is written before the job's deadline."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestion.domain.batch_limits import UNLIMITED
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, EventBatch, SourceReading
from ingestion.spark.job import DeadlinePassed, Job
from ingestion.spark.loading import write_path
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
    job = job_of(orders)
    job.reading_pace.sleep = lambda seconds: None
    reading = job.open_source().snapshot()
    assert next(reading.batches).rows == rows


@dataclass
class Payments:
    """What a job asks whoever launched it."""

    sums: list[int] = field(default_factory=list)

    def is_paused(self) -> bool:
        return False

    def may_read_on(self, rows: int) -> bool:
        self.sums.append(rows)
        return True


@pytest.fixture
def without_cursor(orders: Orders) -> Orders:
    """3,500 rows that have none: each reading of changes looks at all of them, and hands over none that is known."""
    orders.sql("update orders set updated_at = null")
    orders.sql("insert into orders select id + 1000, day, amount, null from orders")
    orders.sql("insert into orders select id + 2000, day, amount, null from orders where id < 1500")
    orders.add((9000, "2026-11-01", 1.0, "2026-11-16 08:00:00"))
    orders.source = replace(orders.source, chunk_rows=500, is_paid_for=True)
    return orders


def position_of(orders: Orders) -> Position:
    reading = job_of(orders).open_source().snapshot()
    for _ in reading.batches:
        pass
    return reading.position()


def test_rows_that_a_job_only_looks_at_are_paid_for_as_they_are_read(without_cursor: Orders) -> None:
    position, job = position_of(without_cursor), job_of(without_cursor)
    job.guidance = payments = Payments()
    arriving, _ = write_path.begin_reading(job, job.open_source().changes(position))
    assert arriving is None, "nothing is new"
    assert payments.sums[-1] >= 3500
    assert all(later - earlier <= 500 for earlier, later in pairwise([0, *payments.sums]))


def test_a_job_that_only_looks_at_rows_ends_at_its_deadline(without_cursor: Orders) -> None:
    position, job = position_of(without_cursor), job_of(without_cursor, elapsed=4000.0)
    job.guidance = payments = Payments()
    with pytest.raises(DeadlinePassed, match="longer than its deadline of 3600 s"):
        write_path.begin_reading(job, job.open_source().changes(position))
    assert payments.sums == []


def test_a_source_that_does_not_tell_what_it_reads_is_paid_for_what_it_hands_over(without_cursor: Orders) -> None:
    job, schema = job_of(without_cursor), Schema.of({"id": "long"})
    job.guidance = payments = Payments()
    batches = (EventBatch.of(Chunk({"id": list(range(rows))}), schema) for rows in (2, 1))
    arriving, reading = write_path.begin_reading(job, SourceReading(batches, dict))
    assert (arriving, sum(batch.rows for batch in reading.batches)) == (schema, 3)
    assert payments.sums == [2, 3]
