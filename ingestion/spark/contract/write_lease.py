"""The lease of a copy, as a job asks for it around what it writes. The job has no database: whoever launched it answers.

In the launcher's process the job calls it. A job in a process of its own asks by files in a folder that both reach: it writes `request`
with a name that was never used, the launcher answers with the same name in `granted` and, as long as it lives, counts in `watched`. The
lease ends when the request is gone or the job's process has ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Protocol
from uuid import uuid4

POLL_INTERVAL_S = 0.1
SILENCE_S = 60.0
"""A launcher that did not count for as long has ended."""

_POLLS_A_COUNT = 50


class WriteLease(Protocol):
    def try_acquire(self) -> bool:
        """True where the copy may be written now, by nobody else, until `release`."""

    def release(self) -> None:
        """Also where it was never acquired."""


class LeaseUnanswered(RuntimeError):
    """Nobody answers who could grant the lease."""


class LeaseTaken(RuntimeError):
    """Another job has held it for longer than this one may wait."""


class NoLease:
    """For a job that nobody launched from a database: the table's fence alone keeps others out."""

    def try_acquire(self) -> bool:
        return True

    def release(self) -> None:
        """Nothing was taken."""


@contextmanager
def hold_lease(lease: WriteLease, *, check_deadline: Callable[[], None], wait_s: float | None = None) -> Iterator[None]:
    """Waits for it as long as the job has time: what was read is worth more than the wait. With `wait_s` only so long; raises LeaseTaken."""
    give_up_at = inf if wait_s is None else time.monotonic() + wait_s
    try:
        while not lease.try_acquire():
            check_deadline()
            if time.monotonic() >= give_up_at:
                raise LeaseTaken(f"Another job has held the copy for {wait_s:g} s; nothing was written.")
            time.sleep(POLL_INTERVAL_S)
        yield
    finally:
        lease.release()


class LeaseByFiles:
    """The job's side. Raises LeaseUnanswered where the launcher falls silent for `silence_s` while it is asked."""

    def __init__(self, folder: Path, *, silence_s: float = SILENCE_S) -> None:
        self._folder, self._silence_s = folder, silence_s
        self._name = ""
        self._seen, self._seen_at = "", 0.0

    def try_acquire(self) -> bool:
        if not self._name:
            self._name, self._seen_at = uuid4().hex, time.monotonic()
            write_whole(self._folder / "request", self._name)
        if read_or_empty(self._folder / "granted") == self._name:
            return True
        self._check_watched()
        return False

    def release(self) -> None:
        self._name = ""
        (self._folder / "request").unlink(missing_ok=True)

    def _check_watched(self) -> None:
        seen, now = read_or_empty(self._folder / "watched"), time.monotonic()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        elif now - self._seen_at > self._silence_s:
            raise LeaseUnanswered(
                f"The process that launched this job has not answered in {self._folder} for {self._silence_s:g} s, so it has ended. "
                "Nothing was written; the run is started again when its own lease has run out."
            )


class LeaseAnswers:
    """The launcher's side: `answer` is called again and again while the job's process runs, `close` when it has ended, however it did."""

    def __init__(self, folder: Path, lease: WriteLease) -> None:
        self._folder, self._lease = folder, lease
        self._granted, self._count = "", 0
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("request", "granted", "watched"):
            (folder / name).unlink(missing_ok=True)

    def answer(self) -> None:
        if self._count % _POLLS_A_COUNT == 0:
            write_whole(self._folder / "watched", str(self._count))
        self._count += 1
        request = read_or_empty(self._folder / "request")
        if self._granted and request != self._granted:
            self._release()
        if request and not self._granted and self._lease.try_acquire():
            self._granted = request
            write_whole(self._folder / "granted", request)

    def close(self) -> None:
        if self._granted:
            self._release()

    def _release(self) -> None:
        (self._folder / "granted").unlink(missing_ok=True)
        self._granted = ""
        self._lease.release()


def read_or_empty(path: Path) -> str:
    """Empty where it is not there."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def write_whole(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
