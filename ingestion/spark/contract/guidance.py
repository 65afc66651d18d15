"""What a job is told while it is at work, by whoever launched it: the job has no database.

In the launcher's process the job calls it. A job in a process of its own asks by files in the folder of `contract.write_lease`: `paused` is there
while the job is to stop; the job writes how many rows it has read into `rows_read`, and reads on when `rows_allowed` holds as many; the launcher writes into `index_requests_per_s`, again and again, how fast it may ask an index cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ingestion.domain.index_cluster.fresh_rate import FreshRate, written_rate
from ingestion.spark.contract.write_lease import read_or_empty, write_whole

_ANSWERS_A_PAUSE_CHECK = 20
"""Every two seconds."""


class Guidance(Protocol):
    def is_paused(self) -> bool:
        """Is the job to stop after the commit that it is in?"""

    def may_read_on(self, rows: int) -> bool:
        """May more be read after `rows`, the sum of all that the job has read? Asked again until it may."""

    def index_requests_per_s(self) -> float | None:
        """How many requests a second the job may send to an index cluster now; 0: none, until it is more. None: what its spec says."""


class NoGuidance:
    """For a job that nobody launched from a database."""

    def is_paused(self) -> bool:
        return False

    def may_read_on(self, rows: int) -> bool:
        return True

    def index_requests_per_s(self) -> float | None:
        return None


class GuidanceByFiles:
    """The job's side."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._told = folder, 0
        self._rate = FreshRate(lambda: read_or_empty(folder / "index_requests_per_s"), clock)

    def is_paused(self) -> bool:
        return (self._folder / "paused").exists()

    def may_read_on(self, rows: int) -> bool:
        if rows != self._told:
            write_whole(self._folder / "rows_read", str(rows))
            self._told = rows
        return int(read_or_empty(self._folder / "rows_allowed") or 0) >= rows

    def index_requests_per_s(self) -> float | None:
        return self._rate()


class GuidanceAnswers:
    """The launcher's side: `answer` is called again and again while the job's process runs."""

    def __init__(self, folder: Path, guidance: Guidance) -> None:
        self._folder, self._guidance = folder, guidance
        self._allowed, self._count = 0, 0
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("paused", "rows_read", "rows_allowed", "index_requests_per_s"):
            (folder / name).unlink(missing_ok=True)
        self._tell_requests()

    def answer(self) -> None:
        if self._count % _ANSWERS_A_PAUSE_CHECK == 0:
            self._tell_pause()
            self._tell_requests()
        self._count += 1
        rows = int(read_or_empty(self._folder / "rows_read") or 0)
        if rows > self._allowed and self._guidance.may_read_on(rows):
            self._allowed = rows
            write_whole(self._folder / "rows_allowed", str(rows))

    def _tell_pause(self) -> None:
        paused = self._folder / "paused"
        if self._guidance.is_paused():
            paused.touch()
        else:
            paused.unlink(missing_ok=True)

    def _tell_requests(self) -> None:
        rate = self._guidance.index_requests_per_s()
        if rate is not None:
            write_whole(self._folder / "index_requests_per_s", written_rate(rate, self._count))
