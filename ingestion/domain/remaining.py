"""How long a phase of a run still takes, by how long its part so far took."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

MIN_SHARE = 0.02
MIN_ELAPSED = timedelta(seconds=5)
"""Before that much an estimate would jump."""


def phase_time_left(progress: Mapping[str, Any]) -> timedelta | None:
    """Of what a job told last (the fields of JobProgress, perhaps of another version); None: nothing can be said."""
    phase_s = progress.get("phase_s")
    if not isinstance(phase_s, int | float):
        return None
    return time_left(timedelta(seconds=phase_s), *phase_amounts(progress))


def phase_amounts(progress: Mapping[str, Any]) -> tuple[int, int | None]:
    """What is done of what there is in the phase: rows while it reads, then Spark's tasks."""
    done, total = ("rows_read", "rows_total") if progress.get("phase") == "read" else ("tasks_done", "tasks_total")
    return amount(progress, done), amount(progress, total) or None


def amount(progress: Mapping[str, Any], name: str) -> int:
    value = progress.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def time_left(elapsed: timedelta, done: int, total: int | None) -> timedelta | None:
    """None where nothing can be said: the total is not known, too little is done, or all of it."""
    if not total or done >= total or done / total < MIN_SHARE or elapsed < MIN_ELAPSED:
        return None
    return elapsed * ((total - done) / done)
