"""A JVM that survives its Python cannot commit behind the back of the next writer."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.jvm_process import JvmStart
from ingestion.spark.tables.fence import TableFenced, hold_fence, lock_path
from ingestion.spark.tables.timeline import DamagedTable
from ingestion.spark.tables.unfinished_writes import pending_writes
from tests.spark.job_processes import start, wait_until
from tests.spark.order_shop import Orders

LATER = "2026-11-16 09:00:00"
PROGRAM = ["-m", "tests.spark.surviving_jvm"]


def test_a_jvm_that_outlives_its_python_keeps_others_out_until_it_is_gone(spark: SparkSession, orders: Orders) -> None:
    with _orphaned_within_the_write(spark, orders, "untied") as java:
        refused = orders.run(spark, "incremental", "impatient", lock_wait_s=1.0)
        assert f"is being written by process {java} (Java)" in (refused.error or "")
        wait_until("the orphan's commit", lambda: len(orders.timeline.commits()) == 2)
        os.kill(java, signal.SIGKILL)
        report = orders.run(spark, "incremental", "next")
        assert (report.status, report.error) == ("nothing_to_do", None)
    assert orders.rows(spark) == orders.source_rows()


def test_a_jvm_ends_soon_after_its_python_though_its_input_stays_open(spark: SparkSession, orders: Orders) -> None:
    with _orphaned_within_the_write(spark, orders, "tied"):
        report = orders.run(spark, "incremental", "next")
        assert report.error is None
        assert len(orders.timeline.commits()) == 2
    assert orders.rows(spark) == orders.source_rows()


def test_the_fence_lets_one_in_at_a_time(spark: SparkSession, orders: Orders) -> None:
    with (
        hold_fence(spark, orders.table.uri, wait_s=1),
        pytest.raises(TableFenced, match="is being written by process"),
        hold_fence(spark, orders.table.uri, wait_s=0.2),
    ):
        raise AssertionError("two are within the fence")
    with hold_fence(spark, orders.table.uri, wait_s=1):
        assert lock_path(orders.table.uri) is not None


def test_the_end_of_its_jvm_does_not_hide_why_the_job_failed(tmp_path: Path) -> None:
    gateway = JvmStart().launch({})
    without_session = cast("SparkSession", SimpleNamespace(_jvm=gateway.jvm))
    with (
        pytest.raises(ValueError, match="what a transformer did"),
        hold_fence(without_session, (tmp_path / "table").as_uri(), wait_s=1),
    ):
        gateway.proc.kill()
        gateway.proc.wait()
        raise ValueError("what a transformer did")


def test_what_a_writer_left_cut_off_when_it_was_killed_is_rolled_back(spark: SparkSession, orders: Orders) -> None:
    """On a disk that was full: the table format gives a file its name although it could not write all of it."""
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    latest = orders.timeline.latest_time()
    orders.sql(f"update orders set amount = 7, updated_at = '{LATER}'")
    orders.run(spark, "incremental", "torn")
    _cut_off_last_commit(orders)
    with pytest.raises(DamagedTable):
        orders.timeline.commits()
    _leave_as_killed(orders, f"process 1 (Java)\nlatest {latest}\n")
    report = orders.run(spark, "incremental", "next")
    assert (report.status, report.error, report.counts.applied) == ("succeeded", None, 3)
    assert len(orders.timeline.commits()) == 2
    assert orders.rows(spark) == orders.source_rows()


def test_locks_of_a_killed_writer_are_removed_from_each_table_that_it_wrote(
    spark: SparkSession, orders: Orders
) -> None:
    """Left alone they would keep the next writers out for minutes."""
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.table = replace(orders.table, history_uri=f"{orders.table.uri}_history")
    locks = [_leave_lock(uri) for uri in (orders.table.uri, orders.table.error_uri, orders.table.history_uri)]
    with hold_fence(spark, orders.table.uri, wait_s=1, beside=orders.table.uris_beside):
        assert all(lock.exists() for lock in locks), "nobody was killed: they may be another machine's"
    _leave_as_killed(orders, "process 1 (Java)\nlatest \n")
    assert orders.run(spark, "incremental", "i").error is None
    assert not any(lock.exists() for lock in locks)


def test_what_is_damaged_since_is_named_and_never_removed(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    file = _cut_off_last_commit(orders)
    for owner in (
        "",
        "process 1 (Java)\n",
        f"process 1 (Java)\nlatest {orders.timeline.latest_time()}\n",
        "process 1 (Java)\nlatest 2",
    ):
        _leave_as_killed(orders, owner)
        report = orders.run(spark, "incremental", "next")
        assert f"{file.name} cannot be read" in (report.error or "")
        assert file.exists()


def _cut_off_last_commit(orders: Orders) -> Path:
    timeline = Path(unquote(urlsplit(orders.table.uri).path)) / ".hoodie" / "timeline"
    file = max(timeline.glob("*_*.*commit"))
    file.write_bytes(file.read_bytes()[:300])
    return file


def _leave_lock(uri: str) -> Path:
    lock = Path(unquote(urlsplit(uri).path)) / ".hoodie" / "lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    long_ago = lock.stat().st_mtime - 3600
    os.utime(lock, (long_ago, long_ago))
    return lock


def _leave_as_killed(orders: Orders, owner: str) -> None:
    path = lock_path(orders.table.uri)
    assert path is not None
    path.write_text(owner)


def test_a_lake_that_is_no_file_system_has_no_lock_file() -> None:
    assert lock_path("s3://lake/dc1/orders") is None


@contextmanager
def _orphaned_within_the_write(spark: SparkSession, orders: Orders, how: str) -> Iterator[int]:
    """A job's Python is killed while its JVM writes; yields the JVM's process id."""
    orders.fill(1500)
    orders.run(spark, "bootstrap", "b")
    orders.sql(f"update orders set amount = 7, updated_at = '{LATER}'")
    child = start(orders, "incremental", "orphan", command=[*PROGRAM, *(["untied"] if how == "untied" else [])])
    wait_until("the write to begin", lambda: bool(pending_writes(orders.timeline)))
    child.send_signal(signal.SIGKILL)
    child.wait()
    java = _holder(orders)
    try:
        yield java
    finally:
        if _lives(java):
            os.kill(java, signal.SIGKILL)


def _holder(orders: Orders) -> int:
    path = lock_path(orders.table.uri)
    assert path is not None
    match = re.search(r"process (\d+)", path.read_text())
    assert match is not None
    return int(match[1])


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
