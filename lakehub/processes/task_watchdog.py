"""Ends a process one of whose tasks runs for too long, where its pool does not stop it.

Celery's own time limits need a pool of processes; `incidents` has threads and `spark` has neither. What hangs in a thread cannot be
stopped, so the process ends: what its tasks had claimed is claimed again, and whoever runs the instance starts it again.
"""

from __future__ import annotations

import faulthandler
import logging
import os
from collections.abc import Callable
from threading import Lock, Timer
from typing import Any

from celery import signals
from django.conf import settings

logger = logging.getLogger(__name__)

AFTER_POOL_S = 60
"""A pool of processes has stopped its task by then."""
STANDARD_ERROR = 2
"""The descriptor: Celery puts something else in the place of `sys.stderr`."""


def end_process(task: str) -> None:
    """With the stacks of all threads on standard error, to say what it waited for."""
    logger.critical(
        "%s runs for much longer than LAKEHUB_TASK_MINUTES=%s and cannot be stopped by itself: the process ends. What it had claimed is "
        "claimed again; what it waits for is in the stacks that follow.",
        task,
        settings.LAKEHUB_TASK_MINUTES,
    )
    logging.shutdown()
    faulthandler.dump_traceback(STANDARD_ERROR, all_threads=True)
    os._exit(1)


class TaskWatchdog:
    """Calls `end` with the name of a task that was begun more than `limit_s` seconds ago and has not ended. For any thread."""

    def __init__(self, limit_s: float, end: Callable[[str], None] = end_process) -> None:
        self._limit_s, self._end = limit_s, end
        self._timers: dict[str, Timer] = {}
        self._lock = Lock()

    def begin(self, task_id: str, name: str) -> None:
        timer = Timer(self._limit_s, self._end, (name,))
        timer.daemon = True
        with self._lock:
            self._timers[task_id] = timer
        timer.start()

    def finish(self, task_id: str) -> None:
        with self._lock:
            timer = self._timers.pop(task_id, None)
        if timer is not None:
            timer.cancel()


def watch_tasks() -> None:
    """All tasks of this process but those that say `has_own_deadline`."""
    watchdog = TaskWatchdog(settings.CELERY_TASK_TIME_LIMIT + AFTER_POOL_S)

    def begin(task_id: str, task: Any, **_: Any) -> None:
        if not getattr(task, "has_own_deadline", False):
            watchdog.begin(task_id, task.name)

    def finish(task_id: str, **_: Any) -> None:
        watchdog.finish(task_id)

    signals.task_prerun.connect(begin, weak=False)
    signals.task_postrun.connect(finish, weak=False)
