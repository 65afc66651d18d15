"""Followed sources that connect and never answer hold up nobody else, and no process that ends."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from ingestion.domain.source_access.look_places import QUICK_PLACES, SLOW_AFTER, SLOW_PLACES
from ingestion.following.follower import Follower
from ingestion.following.look_threads import LookThreads
from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import feed_schedule
from ingestion.runs.run_worker import Worker
from ingestion.sources import SourceConfig
from ingestion.sources.sql.source import SqlSource
from lakehub.catalog.datasets.feed_options import FEED_OPTIONS
from lakehub.catalog.models import DatasetCopy
from lakehub.setup.artifacts import PROJECT_ROOT
from tests import factories as given
from tests.factories import NOW
from tests.polling import scaled, wait_until
from tests.tcp_forwarder import TcpForwarder
from tests.web.ingestion import hudi_timeline
from tests.web.ingestion.conftest import FakeLauncher, open_gate

WITHIN_S = 30


@pytest.fixture
def silent_urls() -> Iterator[list[str]]:
    with ExitStack() as ends:
        servers = [ends.enter_context(TcpForwarder()) for _ in range(QUICK_PLACES)]
        yield [f"mysql+pymysql://ops:x@127.0.0.1:{server.port}/ops?connect_timeout=60" for server in servers]


class Process:
    """A process that follows: real threads, and a clock for how long looks take that the test moves."""

    def __init__(self) -> None:
        self.monotonic, self.now = 0.0, NOW
        worker = Worker(
            "host:1:a", FakeLauncher(), "file:///staging", lambda: self.now, timedelta, lambda: 0.0, open_gate
        )
        self.follower = Follower(
            worker, LookThreads(), has_news=lambda: False, wake=lambda: None, monotonic=lambda: self.monotonic
        )
        self.follower._claim(NOW)

    def step(self) -> bool:
        self.follower.step()
        return True

    def looked(self) -> set[str]:
        return {str(each.run.copy.dataset) for each in self.follower._followed.values() if each.sums.looks}

    def under_way(self) -> set[str]:
        return {str(each.run.copy.dataset) for each in self.follower._followed.values() if each.running}


def followed(name: str, url: str, rows: Path) -> DatasetCopy:
    """Loaded with what the database `rows` holds. Its source is at `url`."""
    dataset = given.dataset(name)
    given.feed(dataset, connection=given.connection(f"c-{name}", url), object="flights")
    copy = given.copy_of(dataset)
    run = given.run(copy, JobKind.BOOTSTRAP)
    reading = SqlSource(SourceConfig(f"sqlite:///{rows}", "flights", "updated_at", 120.0)).snapshot()
    list(reading.batches)
    facts = hudi_timeline.told_by(str(run.key), read=1, applied=1, kind="bootstrap")
    hudi_timeline.commit(copy, "20261116080000000", {"2026-11-16": (1, 0, 0)}, run=facts, checkpoint=reading.position())
    return copy


@pytest.mark.django_db
def test_they_are_left_after_a_moment_and_come_again_in_their_turn(tmp_path: Path, silent_urls: list[str]) -> None:
    given.data_center("dc1", tmp_path.as_uri())
    rows = tmp_path / "ops.db"
    with sqlite3.connect(rows) as db:
        db.execute("CREATE TABLE flights (id INTEGER PRIMARY KEY, flight_date TEXT, updated_at TEXT)")
        db.execute("INSERT INTO flights VALUES (1, '2026-11-16', '2026-11-16 08:00:00')")
    for number, url in enumerate(silent_urls):
        followed(f"silent-{number}", url, rows)
    followed("quick", f"sqlite:///{rows}", rows)
    feed_schedule.request_due_runs(now=NOW)
    JobRun.objects.exclude(copy__dataset__name="quick").update(due_at=NOW - timedelta(minutes=1))
    process = Process()
    process.step()
    silent = {f"silent-{number}" for number in range(QUICK_PLACES)}
    assert (process.under_way(), process.looked()) == (silent, set()), "all places are taken"

    process.monotonic = SLOW_AFTER
    wait_until(lambda: process.step() and process.looked() == {"quick"}, within_s=WITHIN_S)
    wait_until(lambda: process.step() and len(process.under_way()) == SLOW_PLACES, within_s=WITHIN_S)
    assert {run.state for run in JobRun.objects.filter(kind=JobKind.FOLLOW)} == {JobState.RUNNING}, "none has failed"

    process.monotonic = float(FEED_OPTIONS["deadline_s"].default)
    failed = JobRun.objects.filter(kind=JobKind.FOLLOW, state=JobState.QUEUED)
    wait_until(lambda: process.step() and failed.count() == SLOW_PLACES, within_s=WITHIN_S)
    assert {run.error.partition(" did not answer: ")[2] for run in failed} == {
        "the look took longer than the deadline of its feed"
    }
    # Their places are others' now.
    wait_until(lambda: process.step() and len(process.under_way()) == SLOW_PLACES, within_s=WITHIN_S)
    assert process.under_way().isdisjoint({str(run.copy.dataset) for run in failed})


def test_a_process_that_ends_does_not_wait_for_them() -> None:
    code = (
        "import time; from ingestion.following.look_threads import LookThreads; "
        "print(LookThreads().submit(divmod, 7, 2).result(), flush=True); LookThreads().submit(time.sleep, 600)"
    )
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT_ROOT,
        timeout=scaled(WITHIN_S),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "(3, 1)\n"
    assert time.monotonic() - began < scaled(WITHIN_S)
