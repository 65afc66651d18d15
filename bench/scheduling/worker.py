"""A process that claims and runs tests until it is told to stop, as a worker does, and counts what that took."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

IDLE_S = 0.02


@dataclass
class WorkerCounts:
    """`delays`: seconds from due to stored, of each execution; `writes`: statements that change rows; memory in MB."""

    executions: int = 0
    claims: int = 0
    scans: int = 0
    writes: int = 0
    queries: int = 0
    delays: list[float] = field(default_factory=list)
    memory_at_start: float = 0.0
    memory_at_end: float = 0.0
    processor_s: float = 0.0


def run_worker(stop: Event, answer: Connection, profile: str = "") -> None:
    """The whole life of the process. Sends what it counted in the end."""
    import django

    django.setup()
    profiled = _start_profile(profile) if profile else None
    answer.send(_run(stop))
    if profiled:
        profiled()


def _run(stop: Event) -> WorkerCounts:
    from django.db import connection

    from quality.engines.duckdb import DuckDbEngine
    from quality.execution.claims import ClaimQueue
    from quality.execution.worker import execute_claim

    counted, line = WorkerCounts(), ClaimQueue(f"bench:{os.getpid()}")
    measure = DuckDbEngine.measure

    def counting(self: DuckDbEngine, *arguments: Any) -> Any:
        measured = measure(self, *arguments)
        counted.scans += measured.scan_count
        return measured

    setattr(DuckDbEngine, "measure", counting)  # noqa: B010  # counts and calls the original
    with connection.execute_wrapper(_count_statements(counted)):
        while not stop.is_set():
            claimed = line.claim(now=datetime.now(UTC))
            if claimed is None:
                time.sleep(IDLE_S)
                continue
            due = [unit.due_at for unit in claimed.units if unit.due_at is not None]
            execute_claim(claimed, now=datetime.now(UTC))
            stored_at = datetime.now(UTC)
            counted.delays += [(stored_at - at).total_seconds() for at in due]
            counted.executions += len(claimed.units)
            counted.claims += 1
            counted.memory_at_start = counted.memory_at_start or (memory_mb() if counted.executions > 2000 else 0.0)
    counted.memory_at_end, counted.processor_s = memory_mb(), time.process_time()
    counted.memory_at_start = counted.memory_at_start or counted.memory_at_end
    return counted


def _count_statements(counted: WorkerCounts) -> Callable[..., Any]:
    def execute(run: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        verb = sql.lstrip()[:6].upper()
        counted.queries += 1
        counted.writes += verb in ("INSERT", "UPDATE", "DELETE")
        return run(sql, params, many, context)

    return execute


def memory_mb() -> float:
    """What the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _start_profile(file: str) -> Callable[[], None]:
    import cProfile

    profile = cProfile.Profile()
    profile.enable()

    def end() -> None:
        profile.disable()
        profile.dump_stats(file)

    return end
