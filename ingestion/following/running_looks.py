"""The looks that are under way: who has a place, and which are ended because they are late or hold up others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from ingestion.domain.source_access.look_places import LookPlaces
from ingestion.following.source_looks import SourceLook
from ingestion.spark.contract.spec import JobSpec

ENDS_WITHIN_S = 30
"""What was interrupted and has not ended by then (it reads no database) is left to itself, and keeps its place."""


class Interrupted(Enum):
    """Why a look was ended from here."""

    SLOW = "the source was slow, and others wait for slow sources already: it is looked at again in its turn"
    LATE = "the look took longer than the deadline of its feed"


@dataclass(eq=False)
class RunningLook:
    look: SourceLook
    answer: Future[bool]
    """Is there anything new?"""
    ends_by: float
    ended_at: float | None = None
    """Both by the monotonic clock."""
    interrupted: Interrupted | None = None
    on_end: Callable[[], object] = lambda: None

    @property
    def has_failed(self) -> bool:
        """It has not ended, or with an error."""
        return not self.answer.done() or self.answer.exception() is not None


class RunningLooks:
    """`wake` is called, from any thread, when a look has an answer. `monotonic`: seconds of a clock that only grows."""

    def __init__(self, threads: Executor, *, wake: Callable[[], None], monotonic: Callable[[], float]) -> None:
        self._threads, self._wake, self._monotonic = threads, wake, monotonic
        self._places = LookPlaces()
        self._running: list[RunningLook] = []

    def has_place(self, connection: Hashable) -> bool:
        self.free_places()
        return self._places.has_place(connection)

    def begin(
        self,
        look: SourceLook,
        connection: Hashable,
        spec: JobSpec,
        secrets: Mapping[str, str],
        *,
        now: datetime,
        on_end: Callable[[], object],
    ) -> RunningLook:
        """There has to be a place for it. `on_end` is called in the thread that asks what has ended."""
        answer, began_at = Future[bool](), self._monotonic()
        running = RunningLook(look, answer, began_at + spec.deadline_s, on_end=on_end)
        self._places.begin(running, connection, now=began_at)
        running.answer = self._threads.submit(look.has_changes, spec, secrets, now=now)
        running.answer.add_done_callback(lambda _: self._note_end(running))
        self._running.append(running)
        return running

    def end_slow(self) -> None:
        """Interrupts what is late, or slow beyond its places: again and again, until it has ended."""
        self.free_places()
        deferred, now = self._places.note_slow(now=self._monotonic()), self._monotonic()
        for running in self._running:
            if running in deferred:
                running.interrupted = Interrupted.SLOW
            elif now >= running.ends_by and running.interrupted is None:
                running.interrupted = Interrupted.LATE
            if running.interrupted is not None:
                self._threads.submit(running.look.interrupt, running.interrupted.value)

    def is_over(self, running: RunningLook) -> bool:
        return running.ended_at is not None or self._monotonic() >= running.ends_by + ENDS_WITHIN_S

    def free_places(self) -> None:
        """Of looks that have ended."""
        for running in [each for each in self._running if each.ended_at is not None]:
            assert running.ended_at is not None
            self._places.end(running, has_answered=running.answer.exception() is None, now=running.ended_at)
            self._running.remove(running)
            running.on_end()

    def _note_end(self, running: RunningLook) -> None:
        running.ended_at = self._monotonic()
        self._wake()
