"""What a writer of the lake is told: how long it may be slow, how long others wait for it, and how many tasks it takes."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.session import submit_settings
from ingestion.spark.tables import fence, growing_time, hudi
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.tables.unfinished_writes import pending_writes

INSTANT = "20261116080000000"
TABLE = TableSpec("orders", "file:///lake/orders", "file:///lake/_errors/orders", ("id",))


def pending_write(folder: Path, *, silent_s: float) -> Path:
    """A write that was begun and whose heartbeat is this old; the heartbeat's file."""
    heartbeat = folder / ".hoodie" / ".heartbeat" / INSTANT
    for path in (folder / ".hoodie" / "timeline" / f"{INSTANT}.commit.requested", heartbeat):
        path.parent.mkdir(parents=True)
        path.touch()
    os.utime(heartbeat, (at := time.time() - silent_s, at))
    return heartbeat


def wait(folder: Path, *, died: bool) -> None:
    """As the fence does, and not a moment longer."""
    fence._wait_for_pending_writes(Timeline(folder.as_uri()), time.monotonic(), died=died)


def test_a_writer_may_be_silent_for_half_a_minute() -> None:
    options = hudi.table_options(TABLE, parallelism=2)
    interval, misses = (
        int(options[f"hoodie.client.heartbeat.{name}"]) for name in ("interval_in_ms", "tolerable.misses")
    )
    assert timedelta(milliseconds=interval * misses) == fence.HEARTBEAT_TIMEOUT == timedelta(seconds=30)


@pytest.mark.parametrize("uri", ["s3://lake/t", "hdfs://lake/t", "gs://lake/t", "file:///proc/t"])
def test_only_who_writes_to_a_disk_of_this_machine_waits_for_no_other_clock(uri: str, tmp_path: Path) -> None:
    wait = "hoodie.time.generator.max_expected_clock_skew_ms"
    assert hudi.local_options(tmp_path.as_uri())[wait] == "10"
    assert hudi.local_options(uri) == {}


def test_a_slow_writer_elsewhere_is_waited_for(tmp_path: Path) -> None:
    heartbeat = pending_write(tmp_path, silent_s=15)
    with pytest.raises(fence.TableFenced, match=f"unfinished write {INSTANT}, whose writer is alive"):
        wait(tmp_path, died=False)
    assert heartbeat.exists()


def test_a_writer_that_was_silent_for_longer_is_not(tmp_path: Path) -> None:
    heartbeat = pending_write(tmp_path, silent_s=31)
    wait(tmp_path, died=False)
    assert heartbeat.exists()


def test_a_heartbeat_of_a_clock_that_was_hours_ahead_is_nobodys(tmp_path: Path) -> None:
    pending_write(tmp_path, silent_s=-5 * 3600)
    wait(tmp_path, died=False)


def test_one_that_the_fence_knows_to_be_dead_is_succeeded_in_seconds_and_rolled_back_by_the_next_cleaning(
    tmp_path: Path,
) -> None:
    heartbeat = pending_write(tmp_path, silent_s=7)
    wait(tmp_path, died=True)
    assert not heartbeat.exists()
    assert pending_writes(Timeline(tmp_path.as_uri())) == {INSTANT: None}


def test_a_heartbeat_that_goes_on_though_the_writer_of_this_machine_died_is_another_machines(tmp_path: Path) -> None:
    heartbeat = pending_write(tmp_path, silent_s=2)
    with pytest.raises(fence.TableFenced, match="is alive"):
        wait(tmp_path, died=True)
    assert heartbeat.exists()


class RecordingWriter:
    """Stands for Spark's writer: what a commit is written with."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def format(self, _name: str) -> RecordingWriter:
        return self

    def options(self, **options: str) -> RecordingWriter:
        self.given |= options
        return self

    def option(self, name: str, value: str) -> RecordingWriter:
        return self.options(**{name: value})

    def mode(self, _name: str) -> RecordingWriter:
        return self

    def save(self, uri: str) -> None:
        self.given["uri"] = uri


@pytest.mark.parametrize(("cores", "tasks"), [(1, "2"), (2, "2"), (7, "7"), (64, "64"), (5000, "200")])
def test_shuffles_follow_the_cores_of_the_session_within_bounds(
    monkeypatch: pytest.MonkeyPatch, cores: int, tasks: str
) -> None:
    monkeypatch.setattr(growing_time, "go_on_after_latest", lambda spark, uri: None)
    writer = RecordingWriter()
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores))
    frame: Any = SimpleNamespace(write=writer, sparkSession=session)
    hudi.write_commit(frame, TABLE, "upsert", {}, {})
    given = {name: value for name, value in writer.given.items() if name.endswith("shuffle.parallelism")}
    assert given == {
        f"hoodie.{name}.shuffle.parallelism": tasks for name in ("bulkinsert", "upsert", "insert", "delete")
    }
    assert writer.given["uri"] == TABLE.uri


@pytest.mark.parametrize(
    ("master", "partitions"),
    [("local", "2"), ("local[2]", "2"), ("local[6]", "6"), ("local[6,3]", "6"), ("local[*]", str(max(2, os.cpu_count() or 1)))],
)  # fmt: skip
def test_a_local_session_has_as_many_shuffle_partitions_as_cores(master: str, partitions: str) -> None:
    assert submit_settings(master, "1g", "hudi.jar")["spark.sql.shuffle.partitions"] == partitions


def test_a_cluster_keeps_its_own() -> None:
    assert "spark.sql.shuffle.partitions" not in submit_settings("spark://here:7077", "1g", "hudi.jar")
