"""One batch: the source changes, the jobs bring that to the lake while they are harmed, and what must hold is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from ingestion.spark.contract.spec import ClusterSpec, DeleteSpec
from tests.soak.index.checks import require_index, require_rows
from tests.soak.index.faults import Fault
from tests.soak.index.jobs import Stage
from tests.soak.index.source import SIZES, Batch

_EVENTS = ("cluster", "", "backfill", "", "rebuild_index", "replace", "")
"""What happens beside the changes, in some order."""


@dataclass(frozen=True)
class Played:
    number: int
    fault: str
    what: str
    rows: int
    took_s: float
    finding: str = ""

    def __str__(self) -> str:
        verdict = "FAILED" if self.finding else "ok"
        line = f"{self.number:4}  {verdict:6}  {self.fault:45}  {self.what}; {self.rows:,} rows; {self.took_s:5.1f} s"
        return line + (f"\n        {self.finding}" if self.finding else "")


def bootstrap(stage: Stage, keys: int) -> Played:
    """In two commits, between which the job dies."""
    fault = Fault("bootstrap", "ingestion.between_commits")
    return _played(0, str(fault), f"bootstrap of {keys:,} keys", lambda: _load(stage, fault, keys))


def _load(stage: Stage, fault: Fault, keys: int) -> int:
    source = replace(stage.source.source, commit_rows=keys // 2 + 1)
    stage.run("bootstrap", "bootstrap", fault, source=source)
    return _compare_all(stage)


def play(stage: Stage, faults: Iterable[Fault]) -> Iterator[Played]:
    sizes, events = _cards(stage, SIZES), _cards(stage, _EVENTS)
    for number, fault in enumerate(faults, start=1):
        event = fault.job if fault.job not in ("incremental", "delete") else next(events)
        batch = stage.source.draw(number, next(sizes), is_late=event == "backfill")
        what = f"{batch.size.name}: " + ", ".join(f"{count:,} {name}" for name, count in batch.counts.items())
        what += f"; {event}" if event else ""
        yield _played(number, str(fault), what, lambda: _bring(stage, batch, event, fault))  # noqa: B023  used at once


def verify(stage: Stage) -> Iterator[Played]:
    """At the end, whole."""
    yield _played(0, "", "all keys compared, index verified", lambda: _compare_all(stage))


def _compare_all(stage: Stage) -> int:
    rows = require_rows(stage)
    require_index(stage)
    return rows


def _bring(stage: Stage, batch: Batch, event: str, fault: Fault) -> int:
    deleted = DeleteSpec(keys=tuple((str(key),) for key in batch.deleted))
    jobs: dict[str, dict[str, Any]] = {"incremental": {}, "delete": {"delete": deleted, "source": None}}
    if event:
        jobs[event] = _fields(event, batch)
    for job, fields in jobs.items():
        stage.run(job, f"{batch.number}-{job}", fault if job == fault.job else None, **fields)
    return require_rows(stage, batch.keys)


def _fields(event: str, batch: Batch) -> dict[str, Any]:
    if event == "backfill":
        return {"partitions": (batch.late_day,)}
    if event == "cluster":
        return {"cluster": ClusterSpec(quiet_s=0.0), "source": None}
    return {"source": None} if event == "rebuild_index" else {}


def _cards(stage: Stage, cards: tuple[Any, ...]) -> Iterator[Any]:
    """All of them in some order, again and again."""
    for _ in cycle([None]):
        yield from stage.random.sample(cards, len(cards))


def _played(number: int, fault: str, what: str, do: Callable[[], int]) -> Played:
    began, rows, finding = time.monotonic(), 0, ""
    try:
        rows = do()
    except AssertionError as problem:
        finding = str(problem)
    return Played(number, fault, what, rows, time.monotonic() - began, finding)
