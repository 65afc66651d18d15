"""Sends each task when it has something to do, and none otherwise.

Once a second one look at a mark that changes with every write to the database, and at instants that were asked for before.
Only where the mark has changed, or a task was sent, is the database asked again what is due when. Waits go by the
monotonic clock, so one that is set back or forth stops nothing; what is due is compared with the instance's clock each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehub.processes.wakeups import Wakeup

logger = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=1)
SENT_FOR_DUE_EXPIRES = timedelta(seconds=5)
"""What is still due then is sent again. What was sent for a change lives until it is sent anyway: it comes once."""


@dataclass
class _Task:
    wakeup: Wakeup
    sent_at: float | None = None
    """By the monotonic clock, in seconds."""
    is_asked: bool = False
    due_at: datetime | None = None
    has_changes: bool = False


class Pacemaker:
    """`now`: the instance's clock. `monotonic`: seconds. `change_mark`: a text that is another one after any write.
    `send(task, expires)`: to the workers."""

    def __init__(
        self,
        wakeups: Sequence[Wakeup],
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        change_mark: Callable[[], str],
        send: Callable[[str, timedelta], None],
    ) -> None:
        self._tasks = [_Task(wakeup) for wakeup in wakeups]
        self._now, self._monotonic, self._change_mark, self._send = now, monotonic, change_mark, send
        self._mark = ""

    def look(self) -> list[str]:
        """One look; the tasks that were sent. To be called every LOOK_EVERY."""
        mark = self._change_mark()
        if mark != self._mark:
            self._mark = mark
            self.ask_again()
            for task in self._tasks:
                task.has_changes = task.wakeup.on_change
        now, at = self._now(), self._monotonic()
        return [task.wakeup.task for task in self._tasks if self._send_if_needed(task, now, at)]

    def ask_again(self) -> None:
        """What was known of what is due may no longer hold."""
        for task in self._tasks:
            task.is_asked = False

    def _send_if_needed(self, task: _Task, now: datetime, at: float) -> bool:
        wakeup = task.wakeup
        waited = None if task.sent_at is None else timedelta(seconds=at - task.sent_at)
        if waited is not None and waited < wakeup.at_most_every:
            return False
        is_regular = waited is None or waited >= wakeup.at_least_every
        if not (is_regular or task.has_changes or self._is_due(task, now)):
            return False
        self._send(wakeup.task, wakeup.at_least_every if is_regular or task.has_changes else SENT_FOR_DUE_EXPIRES)
        task.sent_at, task.has_changes, task.is_asked = at, False, False
        return True

    def _is_due(self, task: _Task, now: datetime) -> bool:
        if task.wakeup.next_due is None:
            return False
        if not task.is_asked:
            task.due_at, task.is_asked = task.wakeup.next_due(now), True
        return task.due_at is not None and task.due_at <= now
