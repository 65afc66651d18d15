"""What it costs to follow a table in which nothing changes: the share of a core of one idle SQLite table, looked at every 5 s.

The follower of the product in this process, on a database of its own, with a table of 100,000 rows and the position of its last
row. Counted is the processor time of this process, with all its threads, and the writes to the database.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.harness import Report, run

ROWS = 100_000
EVERY_S = 5
MAX_CORE_SHARE = 0.001


def main() -> int:
    return run("follow", bench, __doc__)


def bench(report: Report) -> None:
    looks = 60 if report.quick else 600
    with tempfile.TemporaryDirectory(prefix="lakehub-follow-") as home:
        os.environ |= {"LAKEHUB_HOME": home, "DJANGO_SETTINGS_MODULE": "lakehub.settings"}
        look_s, step_s, written = _measure(Path(home), looks)
    share = look_s / EVERY_S
    report.table(
        "An idle table", ["what", "ms of processor time"], [["a look", f"{1000 * look_s:.2f}"], ["a step without one", f"{1000 * step_s:.2f}"]]
    )  # fmt: skip
    report.figure("look_s", look_s)
    report.figure("step_s", step_s)
    report.figure("core_share", share)
    report.figure("writes", written)
    report.at_most("share of a core of an idle followed table", 100 * share, 100 * MAX_CORE_SHARE, unit=" %")


def _measure(home: Path, looks: int) -> tuple[float, float, int]:
    """Processor seconds of a look and of a step without one; how often the database was written to in all looks."""
    from lakehub.instance import prepare_instance

    prepare_instance(will_migrate=True)
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    call_command("migrate", verbosity=0)
    stand = _Stand(home)
    with CaptureQueriesContext(connection) as asked:
        stand.looks(12)
    written = sum(query["sql"].split()[0] in ("INSERT", "UPDATE", "DELETE") for query in asked.captured_queries)
    look_s = min(_processor_s(lambda: stand.looks(looks // 3)) for _ in range(3)) / (looks // 3)
    step_s = min(_processor_s(lambda: stand.steps(looks // 3)) for _ in range(3)) / (looks // 3)
    return look_s, step_s, written


def _processor_s(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class _Stand:
    """A copy that is followed, by a clock that the bench moves. The first look, which opens the source, is over."""

    def __init__(self, home: Path) -> None:
        from ingestion.following.follower import Follower
        from ingestion.models import JobKind
        from ingestion.runs import feed_schedule
        from ingestion.runs.run_worker import Worker
        from tests import factories
        from tests.factories import NOW
        from tests.following import AtOnce

        self.now = NOW
        url = _source(home / "source.db")
        factories.data_center("dc1", home.as_uri())
        dataset = factories.dataset("flights")
        factories.feed(dataset, connection=factories.connection("ops", url), every=timedelta(seconds=EVERY_S))
        _commit_of(factories.copy_of(dataset), url)
        factories.run(factories.copy_of(dataset), JobKind.BOOTSTRAP)
        feed_schedule.request_due_runs(now=NOW)
        launcher, staging = _no_launcher, home.as_uri()
        worker = Worker(
            "bench:1:a", launcher(), staging, lambda: self.now, timedelta, lambda: 0.0, lambda inputs, **_: []
        )
        news = iter([True])
        self._follower = Follower(
            worker, AtOnce(), has_news=lambda: next(news, False), wake=lambda: None, monotonic=time.monotonic
        )
        self.steps(1)

    def looks(self, number: int) -> None:
        for _ in range(number):
            self.now += timedelta(seconds=EVERY_S)
            self._follower.step()

    def steps(self, number: int) -> None:
        for _ in range(number):
            self._follower.step()


def _no_launcher() -> Any:
    """A job would be a look that has found something: the bench fails."""
    return None


def _source(file: Path) -> str:
    rows = ((number, "2026-11-16", f"2026-11-16 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}") for number in range(ROWS))  # fmt: skip
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE flights (id INTEGER PRIMARY KEY, flight_date TEXT, updated_at TEXT)")
        db.executemany("INSERT INTO flights VALUES (?, ?, ?)", rows)
        db.execute("CREATE INDEX at ON flights (updated_at)")
    return f"sqlite:///{file}"


def _commit_of(copy: Any, url: str) -> None:
    """The position of the whole table, as a bootstrap leaves it."""
    from ingestion.sources import SourceConfig
    from ingestion.sources.sql.source import SqlSource
    from tests.web.ingestion import hudi_timeline

    reading = SqlSource(SourceConfig(url, "flights", "updated_at", 120.0)).snapshot()
    for _ in reading.batches:
        pass
    facts = hudi_timeline.told_by("bench", read=ROWS, applied=ROWS, kind="bootstrap")
    hudi_timeline.commit(
        copy, "20261116120000000", {"2026-11-16": (ROWS, 0, 0)}, run=facts, checkpoint=reading.position()
    )


if __name__ == "__main__":
    sys.exit(main())
