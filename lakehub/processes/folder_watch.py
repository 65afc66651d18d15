"""Waiting until a file appears in a folder: the kernel tells (inotify). Where it cannot, the caller looks again and again."""

from __future__ import annotations

import ctypes
import os
import select
import time
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_IN_MOVED_TO = 0x80  # linux/inotify.h
_EVENTS_AT_ONCE = 1 << 16
POLLING_S = 0.02
"""Where the kernel does not tell: another system, too many watches, a folder that is gone."""


class FolderWatch:
    """Of files that are renamed into `folder`. What comes between two waits ends the next one at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._events = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(_LIBC, "inotify_init1") else -1
        self._owner = os.getpid()
        self._add()

    def wait(self, timeout: float) -> None:
        """Returns when a file has appeared, after `timeout` seconds at the latest, or for no reason."""
        if not self._add():
            time.sleep(min(timeout, POLLING_S))
            return
        poll = select.poll()
        poll.register(self._events, select.POLLIN)
        if poll.poll(timeout * 1000):
            os.read(self._events, _EVENTS_AT_ONCE)

    def fileno(self) -> int:
        """For an event loop: readable when a file has appeared. Negative where the kernel does not tell."""
        return self._events

    def clear(self) -> None:
        """What has appeared up to now is known."""
        if self._add():
            with suppress(BlockingIOError):
                os.read(self._events, _EVENTS_AT_ONCE)

    def close(self) -> None:
        if self._events >= 0:
            os.close(self._events)
            self._events = -1

    def _add(self) -> bool:
        """Each time: it costs nothing where the watch is there, and a folder that was made again gets one."""
        # A fork shares the queue of events with its parent, and would take what the parent waits for.
        if self._events < 0 or os.getpid() != self._owner:
            return False
        return bool(_LIBC.inotify_add_watch(self._events, self._folder, _IN_MOVED_TO) >= 0)
