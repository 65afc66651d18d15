"""18,000 tests on 2,000 datasets through the real path: claim, fuse, DuckDB over Hudi tables, evaluate, store, verdict.

Every table gets a commit before each round, so that no answer can be used again; some commits double rows and the next one
mends them, so that verdicts change. A round makes all tests due at once: the delay of the last one is that of a full queue.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any
from uuid import uuid4

from bench.harness import ChildFailed, Report, run
from bench.scheduling.tables import cached_table
from bench.scheduling.worker import WorkerCounts, run_worker
from lakehub.instance import prepare_instance

TARGET_MINUTES = {"sqlite": 30, "postgresql": 20}
SERVER = "postgresql://postgres@127.0.0.1:5499/postgres"
BAD_COMMIT_EVERY = 20
POLL_INTERVAL_S = 0.2


@dataclass(frozen=True)
class Size:
    datasets: int
    executions: int


FULL, QUICK = Size(2000, 100_000), Size(150, 4_000)


def main() -> int:
    return run("schedule", bench, __doc__, options=_options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", choices=TARGET_MINUTES, default="sqlite", help="which kind holds the fleet")
    parser.add_argument("--workers", type=int, default=2, help="processes that claim and run")
    parser.add_argument("--datasets", type=int, help="how many, of nine tests each")
    parser.add_argument("--executions", type=int, help="how many in all")
    parser.add_argument("--profile", default="", help="writes what the first worker spent its time on to this file")


def bench(report: Report) -> None:
    arguments = report.arguments
    size = QUICK if report.quick else FULL
    size = Size(arguments.datasets or size.datasets, arguments.executions or size.executions)
    cached_table()  # in the cache before the fleet is made
    with instance(arguments.database) as home:
        rounds = _Rounds(home, size, report)
        with _workers(arguments.workers, arguments.profile) as (processes, counted):
            seconds = rounds.run(processes)
        _report_results(report, arguments.database, size, seconds, counted)


@contextmanager
def instance(database: str, *, settings: str = "lakehub.settings") -> Iterator[Path]:
    """An empty instance of its own. Settings are read from the environment, so this comes before Django."""
    with tempfile.TemporaryDirectory(prefix="lakehub-bench-") as folder:
        home = Path(folder)
        os.environ |= {"LAKEHUB_HOME": folder, "DJANGO_SETTINGS_MODULE": settings, "LAKEHUB_REUSE_RESULTS": "0"}
        with _database(database, home) as url:
            os.environ["LAKEHUB_DATABASE_URL"] = url
            import django
            from django.core.management import call_command
            from django.db import connections

            prepare_instance(will_migrate=True)
            django.setup()
            call_command("migrate", verbosity=0)
            yield home
            connections.close_all()


@contextmanager
def _database(kind: str, home: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{home / 'lakehub.db'}"
        return
    import psycopg

    server, name = os.environ.get("LAKEHUB_TEST_POSTGRESQL_URL", SERVER), f"bench_{uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield f"{server.rpartition('/')[0]}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _workers(count: int, profile: str) -> Iterator[tuple[list[SpawnProcess], list[WorkerCounts]]]:
    """Processes that are at work in the block; what they counted is in the list after it."""
    spawn = multiprocessing.get_context("spawn")
    stop, counted, started = spawn.Event(), list[WorkerCounts](), []
    for number in range(count):
        receiver, sender = spawn.Pipe(duplex=False)
        process = spawn.Process(target=run_worker, args=(stop, sender, "" if number else profile), daemon=True)
        process.start()
        started.append((process, receiver))
    try:
        yield [process for process, _ in started], counted
    finally:
        stop.set()
    for process, receiver in started:
        counted.append(receiver.recv())
        process.join()


class _Rounds:
    """Commits to every table, makes tests due, waits until they are done; again until there were enough."""

    def __init__(self, home: Path, size: Size, report: Report) -> None:
        from bench.scheduling import fleet

        self._fleet, self._size, self._report = fleet, size, report
        self._table, self._now = cached_table(), datetime.now(UTC)
        begun = time.monotonic()
        self._folders = fleet.build(home / "lake", size.datasets, now=self._now)
        for folder in self._folders:
            self._table.copy_to(folder)
        report.print_line(
            f"{size.datasets:,} tables and {size.datasets * len(fleet.TEST_EXPRESSIONS):,} tests made in {time.monotonic() - begun:.0f} s"
        )

    def run(self, processes: list[SpawnProcess]) -> float:
        """The seconds in which tests were due. Raises ChildFailed where a worker has died."""
        seconds, left, number = 0.0, self._size.executions, 0
        while left > 0:
            self._commit(number)
            count = min(left, self._size.datasets * len(self._fleet.TEST_EXPRESSIONS))
            took = self._round(count, processes)
            self._report.print_line(f"round {number + 1}: {count:,} executions in {took:.1f} s, {count / took:.0f}/s")
            seconds, left, number = seconds + took, left - count, number + 1
        return seconds

    def _commit(self, number: int) -> None:
        at = datetime.now(UTC)
        for place, folder in enumerate(self._folders):
            self._table.commit_to(folder, at, bad=(place + number) % BAD_COMMIT_EVERY == 0)
        self._fleet.create_commits(now=at)

    def _round(self, count: int, processes: list[SpawnProcess]) -> float:
        begun = time.monotonic()
        self._fleet.make_due(count, now=datetime.now(UTC))
        while self._fleet.are_units_due(now=datetime.now(UTC)):
            if not all(process.is_alive() for process in processes):
                raise ChildFailed("A worker has died; what it wrote last is above.")
            time.sleep(POLL_INTERVAL_S)
        return time.monotonic() - begun


def _report_results(report: Report, database: str, size: Size, seconds: float, counted: list[WorkerCounts]) -> None:
    from quality.models import Flip, Result

    done, flips = Result.objects.count(), Flip.objects.count()
    delays = statistics.quantiles(
        [delay for worker_counts in counted for delay in worker_counts.delays], n=100, method="inclusive"
    )
    start, end = (
        max(getattr(worker_counts, name) for worker_counts in counted) for name in ("memory_at_start", "memory_at_end")
    )
    total: dict[str, float] = {
        name: sum(getattr(worker_counts, name) for worker_counts in counted)
        for name in ("executions", "claims", "scans", "writes", "queries")
    }
    report.figure("executions", done)
    report.figure("seconds", seconds)
    report.figure("executions_per_s", done / seconds)
    for percent in (50, 95, 99):
        report.figure(f"delay_p{percent}_s", delays[percent - 1])
    for name in ("writes", "queries", "scans"):
        report.figure(f"{name}_per_execution", total[name] / total["executions"])
    report.figure("executions_per_claim", total["executions"] / total["claims"])
    report.figure(
        "worker_ms_per_execution",
        1000 * sum(worker_counts.processor_s for worker_counts in counted) / total["executions"],
    )
    report.figure("flips", flips)
    report.figure("memory_start_mb", start)
    report.figure("memory_end_mb", end)
    rows: list[tuple[str, Any]] = [(name.replace("_", " "), f"{value:,.2f}") for name, value in report.figures.items()]
    report.table(f"{len(counted)} workers, {database}", ["", "value"], rows)
    limit = TARGET_MINUTES[database]
    report.at_most(f"100,000 executions on {database}", 100_000 * seconds / done / 60, limit, unit=" min")
    report.at_most("memory of a worker at the end, of that at the start", end / start, 1.1, unit="x")
    report.at_least("of what was due exactly once", min(done, size.executions) / max(done, size.executions), 1)


if __name__ == "__main__":
    sys.exit(main())
