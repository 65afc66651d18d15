"""Many small jobs in one session: memory stays flat. 40 of them; `LAKEHUB_SOAK_JOBS=200` looks longer."""

from __future__ import annotations

import gc
import os
import time

import pytest
from pyspark.sql import SparkSession

from ingestion.launchers.warm import resident_mb
from ingestion.spark.session import jvm
from tests.spark.order_shop import Orders

JOBS = int(os.environ.get("LAKEHUB_SOAK_JOBS", "40"))
COMMITS_EVERY, WARMED_UP_AFTER, MEASURED_EVERY = 5, min(60, JOBS // 2), max(3, JOBS // 10)
COLLECTIONS = 6
MOST_HEAP_MB, MOST_PYTHON_MB = 30.0, 12.0
"""How much may be added from the first measurements after the warm-up to the last: the heap of a flat session moves by 20."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_jobs_leave_memory_flat(spark: SparkSession, orders: Orders) -> None:
    orders.fill(20, days=1)
    orders.run(spark, "bootstrap", "b")
    began, heaps, residents = time.monotonic(), [], []
    for number in range(JOBS):
        _small_job(spark, orders, number)
        if number >= WARMED_UP_AFTER and number % MEASURED_EVERY == 0:
            heaps.append(_heap_mb(spark))
            residents.append(float(resident_mb(os.getpid())))
    seconds = time.monotonic() - began
    print(f"{JOBS} jobs in {seconds:.0f} s ({seconds / JOBS:.2f} s each); heap {heaps}, Python {residents}")
    assert growth(heaps) < MOST_HEAP_MB
    assert growth(residents) < MOST_PYTHON_MB
    assert orders.rows(spark) == orders.source_rows()


def _small_job(spark: SparkSession, orders: Orders, number: int) -> None:
    """Mostly nothing is new; each fifth job commits a change."""
    commits = number % COMMITS_EVERY == 0
    if commits:
        orders.change(number % 20, float(number), f"2026-11-16 09:{number // 60:02}:{number % 60:02}")
    report = orders.run(spark, "incremental", f"i{number}")
    assert report.status == ("succeeded" if commits else "nothing_to_do"), report.error


def _heap_mb(spark: SparkSession) -> float:
    """What is alive in the JVM: the least after several collections, as one leaves behind what waits for Spark's cleaner."""
    gc.collect()
    runtime = jvm(spark).java.lang.Runtime.getRuntime()
    used = []
    for _ in range(COLLECTIONS):
        jvm(spark).java.lang.System.gc()
        used.append((runtime.totalMemory() - runtime.freeMemory()) / 2**20)
    return round(min(used), 1)


def growth(measured: list[float]) -> float:
    """From the least of the first three to the least of the last three: single peaks do not count."""
    return min(measured[-3:]) - min(measured[:3])
