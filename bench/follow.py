"""What it costs to follow tables in which nothing changes, each looked at every 5 s: the share of a core of one of them.

The follower of the product in this process, on a database of its own, with a SQLite table of 100,000 rows and the position of its last row. Twice:
one table by a clock that the bench moves, with the processor time of a look alone; and 100 tables as the process `follow` does it, in real time, with
a thread for each look and a database to which others write all the time, as on PostgreSQL. There all the processor time of the process counts.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.harness import Report, run
from bench.schedule import instance

if TYPE_CHECKING:
    from ingestion.following.follower import Follower

ROWS = 100_000
EVERY_S = 5
MAX_CORE_SHARE = 0.001
TABLES, CONNECTIONS = 100, 10
FULL_S, QUICK_S, TURNS = 60, 6, 3
"""How long a turn is in which the many tables are followed, after the looks that open their sources. The least counts: other work on the machine
disturbs it."""


def main() -> int:
    return run("follow", bench, __doc__, options=_options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")


def bench(report: Report) -> None:
    looks = 60 if report.quick else 600
    with instance(report.arguments.database) as home:
        url = _source(home / "source.db")
        look_s, step_s, written = _measure_one(home, url, looks)
        many = _measure_many(home, url, QUICK_S if report.quick else FULL_S)
    share = look_s / EVERY_S
    report.table(
        "An idle table", ["what", "ms of processor time"], [["a look", f"{1000 * look_s:.2f}"], ["a step without one", f"{1000 * step_s:.2f}"]]
    )  # fmt: skip
    report.table(
        f"{TABLES} idle tables, of the whole process", ["what", "a table"],
        [["% of a core", f"{100 * many.core_share:.3f}"], ["looks a minute", f"{many.looks_a_minute:.1f}"], ["queries a minute", f"{many.queries_a_minute:.1f}"], ["steps a minute, of all", f"{many.steps_a_minute:.0f}"]],
    )  # fmt: skip
    report.figure("look_s", look_s)
    report.figure("step_s", step_s)
    report.figure("core_share", share)
    report.figure("writes", written)
    report.figure("core_share_of_many", many.core_share)
    report.figure("queries_a_minute_of_many", many.queries_a_minute)
    report.at_most("share of a core of an idle followed table", 100 * share, 100 * MAX_CORE_SHARE, unit=" %")
    report.at_most(
        f"the same, of each of {TABLES}, with all else that the process does", 100 * many.core_share, 100 * MAX_CORE_SHARE, unit=" %"
    )  # fmt: skip


def _measure_one(home: Path, url: str, looks: int) -> tuple[float, float, int]:
    """Processor seconds of a look and of a step without one; how often the database was written to in all looks."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    alone = _Alone(home, url)
    with CaptureQueriesContext(connection) as asked:
        alone.looks(12)
    written = sum(query["sql"].split()[0] in ("INSERT", "UPDATE", "DELETE") for query in asked.captured_queries)
    look_s = min(_processor_s(lambda: alone.looks(looks // 3)) for _ in range(3)) / (looks // 3)
    step_s = min(_processor_s(lambda: alone.steps(looks // 3)) for _ in range(3)) / (looks // 3)
    alone.end()
    return look_s, step_s, written


def _processor_s(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class _Alone:
    """A copy that is followed, by a clock that the bench moves. The first look, which opens the source, is over."""

    def __init__(self, home: Path, url: str) -> None:
        from tests.factories import NOW
        from tests.following import AtOnce

        self.now = NOW
        _followed_table("flights", home, url, connection="ops")
        news = iter([True])
        self._follower = _follower(
            home, AtOnce(), clock=lambda: self.now, has_news=lambda: next(news, False), wake=lambda: None
        )
        self.steps(1)

    def looks(self, number: int) -> None:
        for _ in range(number):
            self.now += timedelta(seconds=EVERY_S)
            self._follower.step()

    def steps(self, number: int) -> None:
        for _ in range(number):
            self._follower.step()

    def end(self) -> None:
        """Nobody else follows it after this."""
        from ingestion.models import JobRun, JobState
        from lakehub.catalog.models import Feed

        self._follower.give_back()
        Feed.objects.update(paused=True)
        JobRun.objects.filter(state=JobState.QUEUED).update(state=JobState.CANCELLED)


class _Cost:
    """Of a table, or of all, while many are followed."""

    def __init__(self, *, seconds: float, processor_s: float, looks: int, queries: int, steps: int) -> None:
        self.core_share = processor_s / seconds / TABLES
        a_minute = 60 / seconds
        self.looks_a_minute, self.queries_a_minute = a_minute * looks / TABLES, a_minute * queries / TABLES
        self.steps_a_minute = a_minute * steps


def _measure_many(home: Path, url: str, seconds: float) -> _Cost:
    """As the command `follow` does it; the copies have a table of the source each, of the same rows."""
    from ingestion.following.look_threads import LookThreads
    from ingestion.following.news import News
    from lakehub.db.change_mark import ChangeMark
    from tests.factories import NOW

    for number in range(TABLES):
        _followed_table(f"flights-{number}", home, url, connection=f"ops-{number % CONNECTIONS}")
    mark, writes, wake, begun = ChangeMark(), count(), threading.Event(), time.monotonic()
    news = News(lambda: f"{mark()} {next(writes)}", free_leases=_free_leases_of_nobody, monotonic=time.monotonic)
    follower = _follower(
        home, LookThreads(), has_news=news, wake=wake.set,
        clock=lambda: NOW + timedelta(seconds=time.monotonic() - begun),
    )  # fmt: skip
    _follow(follower, wake, 2 * EVERY_S)
    _spread_looks(follower)
    _follow(follower, wake, 2 * EVERY_S)
    return min((_turn(follower, wake, seconds) for _ in range(TURNS)), key=lambda cost: cost.core_share)


def _turn(follower: Follower, wake: threading.Event, seconds: float) -> _Cost:
    from django.db import connection

    looks, queries = _looks_of(follower), count()
    with connection.execute_wrapper(lambda execute, *query: (next(queries), execute(*query))[1]):
        processor, at = time.process_time(), time.monotonic()
        steps = _follow(follower, wake, seconds)
        processor, passed = time.process_time() - processor, time.monotonic() - at
    return _Cost(
        seconds=passed, processor_s=processor, looks=_looks_of(follower) - looks, queries=next(queries), steps=steps
    )


def _free_leases_of_nobody() -> int:
    """With the queries that it takes."""
    from ingestion.runs import leases

    return leases.release_leases_of_dead_processes("bench")


def _follow(follower: Follower, wake: threading.Event, seconds: float) -> int:
    """How many steps."""
    ends_at, wait_s, steps = time.monotonic() + seconds, 0.0, 0
    while time.monotonic() < ends_at:
        wake.wait(wait_s)
        wake.clear()
        wait_s, steps = follower.step().total_seconds(), steps + 1
    return steps


def _spread_looks(follower: Follower) -> None:
    """As where copies were loaded one after the other: those that were claimed together are looked at together, which saves queries."""
    for number, followed in enumerate(follower._followed.values()):
        followed.due_at += timedelta(seconds=EVERY_S * number / TABLES)


def _looks_of(follower: Follower) -> int:
    if len(follower._followed) != TABLES:
        raise RuntimeError(f"{len(follower._followed)} of {TABLES} tables are followed.")
    return sum(followed.sums.looks for followed in follower._followed.values())


def _follower(
    home: Path,
    looks: Executor,
    *,
    clock: Callable[[], datetime],
    has_news: Callable[[], bool],
    wake: Callable[[], None],
) -> Follower:
    from ingestion.following.follower import Follower
    from ingestion.runs.run_worker import Worker

    name = f"elsewhere:{os.getpid()}:{time.monotonic_ns()}"
    worker = Worker(name, _no_launcher(), home.as_uri(), clock, timedelta, lambda: 0.0, lambda inputs, **_: [])
    return Follower(worker, looks, has_news=has_news, wake=wake, monotonic=time.monotonic)


def _no_launcher() -> Any:
    """A job would be a look that has found something: the bench fails."""
    return None


def _followed_table(name: str, home: Path, url: str, *, connection: str) -> None:
    """A loaded copy, and the run that follows it."""
    from ingestion.models import JobKind
    from ingestion.runs import feed_schedule
    from tests import factories
    from tests.factories import NOW

    factories.data_center("dc1", home.as_uri())
    dataset = factories.dataset(name)
    connected = factories.connection(connection, url)
    factories.feed(dataset, connection=connected, object="flights", every=timedelta(seconds=EVERY_S))
    copy = factories.copy_of(dataset)
    _commit_of(copy, url)
    factories.run(copy, JobKind.BOOTSTRAP)
    feed_schedule.request_due_runs(now=NOW)


def _source(file: Path) -> str:
    rows = ((number, "2026-11-16", f"2026-11-16 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}") for number in range(ROWS))  # fmt: skip
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE flights (id INTEGER PRIMARY KEY, flight_date TEXT, updated_at TEXT)")
        db.executemany("INSERT INTO flights VALUES (?, ?, ?)", rows)
        db.execute("CREATE INDEX at ON flights (updated_at)")
    return f"sqlite:///{file}"


def _commit_of(copy: Any, url: str) -> None:
    """The position of the whole table, as a bootstrap leaves it."""
    from tests.web.ingestion import hudi_timeline

    facts = hudi_timeline.told_by("bench", read=ROWS, applied=ROWS, kind="bootstrap")
    touched = {"2026-11-16": (ROWS, 0, 0)}
    hudi_timeline.commit(copy, "20261116120000000", touched, run=facts, checkpoint=_end_of(url))


@cache
def _end_of(url: str) -> Any:
    from ingestion.sources import SourceConfig
    from ingestion.sources.sql.source import SqlSource

    reading = SqlSource(SourceConfig(url, "flights", "updated_at", 120.0)).snapshot()
    for _ in reading.batches:
        pass
    return reading.position()


if __name__ == "__main__":
    sys.exit(main())
