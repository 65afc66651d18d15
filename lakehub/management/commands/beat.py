from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string

from lakehub import wiring
from lakehub.clock.set_back import ClockWatch
from lakehub.db.change_mark import ChangeMark
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.processes.pacemaker import LOOK_EVERY, Pacemaker
from lakehub.processes.task_wakeup import send_task


class Command(BaseCommand):
    help = "Wake the workers when there is something to do: the process `beat`, once in an instance."

    def handle(self, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        beat = Beat(now=wiring.clock.now, monotonic=time.monotonic, send=send_task)
        while not stop.is_set():
            with log_and_continue("A look at what is due"):
                beat.look()
            # By the monotonic clock.
            stop.wait(LOOK_EVERY.total_seconds())


class Beat:
    """The pacemaker with this instance's tasks and database, and with an eye on a clock that was set back."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        send: Callable[[str, timedelta], None],
    ) -> None:
        wakeups = list(chain.from_iterable(import_string(path) for path in settings.LAKEHUB_WAKEUPS))
        self._pacemaker = Pacemaker(wakeups, now=now, monotonic=monotonic, change_mark=ChangeMark(), send=send)
        self._clock_watch = ClockWatch(now=now, monotonic=monotonic)

    def look(self) -> list[str]:
        """The tasks that were sent. Raises DatabaseError and what the broker raises; the next look tries again."""
        try:
            if self._clock_watch.look():
                self._pacemaker.ask_again()
            return self._pacemaker.look()
        except DatabaseError:
            connection.close()
            raise
