"""What runs too long is stopped from outside.

One thread of a process watches over all blocks: a look at a source has five, and a thread for each was a third of what the look cost.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from threading import Condition, Event, Thread

logger = logging.getLogger(__name__)
STOP_RETRY_INTERVAL = timedelta(seconds=1)


@contextmanager
def deadline(timeout: timedelta, stop: Callable[[], object]) -> Iterator[Event]:
    """Calls `stop` in a thread of its own where the block has not ended in time; the event is set from then on.

    And again, until it has: what was not at work yet at the first call could not be stopped by it.
    """
    block = _Block(time.monotonic() + timeout.total_seconds(), stop)
    _watch.add(block)
    try:
        yield block.is_over
    finally:
        block.ended.set()
        with _watch.changed:
            # The thread is left to sleep: most blocks end long before their time, and it would wake for each.
            _watch.blocks.discard(block)


@dataclass(eq=False)
class _Block:
    ends_by: float
    """By the monotonic clock."""
    stop: Callable[[], object]
    ended: Event = field(default_factory=Event)
    is_over: Event = field(default_factory=Event)

    def stop_until_ended(self) -> None:
        while not self.ended.is_set():
            self.stop()
            self.ended.wait(STOP_RETRY_INTERVAL.total_seconds())


class _Watch:
    """The blocks that have not ended, and a thread that sleeps until the first of them is over its time."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.blocks: set[_Block] = set()
        self._wakes_at = inf
        self._thread: Thread | None = None

    def add(self, block: _Block) -> None:
        with self.changed:
            if self._thread is None:
                thread = Thread(target=self._run, name="deadlines", daemon=True)
                thread.start()
                self._thread = thread
            self.blocks.add(block)
            if block.ends_by < self._wakes_at:
                self.changed.notify()

    def _run(self) -> None:
        while True:
            with self.changed:
                self._wakes_at = min((block.ends_by for block in self.blocks), default=inf)
                left = self._wakes_at - time.monotonic()
                if left > 0:
                    self.changed.wait(None if left == inf else left)
                overdue = [block for block in self.blocks if block.ends_by <= time.monotonic()]
                self.blocks.difference_update(overdue)
            for block in overdue:
                self._begin_to_stop(block)

    def _begin_to_stop(self, block: _Block) -> None:
        """What stops a block may itself wait for a server, and holds up no other block."""
        block.is_over.set()
        try:
            Thread(target=block.stop_until_ended, name="deadline", daemon=True).start()
        except RuntimeError:  # the system has no thread left
            logger.exception("A block that is over its time is not stopped yet; it is tried again")
            with self.changed:
                block.ends_by = time.monotonic() + STOP_RETRY_INTERVAL.total_seconds()
                self.blocks.add(block)


_watch = _Watch()


def _begin_anew() -> None:
    """A process that was forked has none of the threads of the one that it comes from."""
    global _watch
    _watch = _Watch()


os.register_at_fork(after_in_child=_begin_anew)
