"""How long each change takes from its commit in the source to the commit of the lake that has it.

Of every change, and not of some markers: the binlog says when it was committed, to the second below, so the lag that is told is half a second too long on average;
the log has its offset, and the checkpoint of a commit says up to which offset its rows are there.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import quantiles
from threading import Event, Thread
from typing import Any

from ingestion.spark.tables.timeline import Timeline


@dataclass(frozen=True)
class Lags:
    """In seconds, in the order of the changes."""

    seconds: Sequence[float]

    def percentile(self, percent: int) -> float:
        return quantiles(self.seconds, n=100)[percent - 1] if len(self.seconds) > 1 else 0.0

    @property
    def growth(self) -> float:
        """The median of the last third over that of the first."""
        third = len(self.seconds) // 3
        first, last = Lags(self.seconds[:third]), Lags(self.seconds[-third:])
        return last.percentile(50) / first.percentile(50) if third > 1 and first.percentile(50) else 1.0


@dataclass
class CommitWatch:
    """Looks at the timeline of a table five times a second: the older of its commits go to an archive."""

    uri: str
    topic: str
    offsets: list[int] = field(default_factory=list)
    completed: list[datetime] = field(default_factory=list)

    def __enter__(self) -> CommitWatch:
        self._is_over = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._is_over.is_set():
            self._look()
            time.sleep(0.2)

    def _look(self) -> None:
        fresh = []
        for commit in Timeline(self.uri).newest_first():
            if self.completed and commit.completed_at <= self.completed[-1]:
                break
            if commit.checkpoint and "log" in commit.checkpoint:
                fresh.append((commit.completed_at, int(commit.checkpoint["log"][self.topic].get("0", 0))))
        for completed, offset in reversed(fresh):
            self.completed.append(completed)
            self.offsets.append(offset)

    @property
    def reached(self) -> int:
        return self.offsets[-1] if self.offsets else 0

    def lags(self, events: Any, first: int) -> Lags:
        """`events`: (offset, when its change was committed); from the offset `first` on."""
        seconds = []
        for offset, committed_at in events:
            place = bisect_right(self.offsets, offset)
            if offset >= first and place < len(self.completed):
                seconds.append((self.completed[place] - committed_at).total_seconds())
        return Lags(seconds)
