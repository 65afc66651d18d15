"""Writes the log in a thread of its own: a full disk, or a reader that reads no more, keeps the supervisor from nothing.

What waits is bounded. Lines that do not fit, and those that could not be written, are left out and counted; how many it were is said
before the next line that is written.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

MAX_WAITING = 8 << 20
"""Characters."""
CLOSE_S = 2.0
"""At the end so long is waited for what is still to be written."""


class LogWriter:
    """A text stream. `left_out`: makes the line that says how many were."""

    def __init__(self, descriptor: int, *, max_waiting: int = MAX_WAITING) -> None:
        self._descriptor, self._max_waiting = descriptor, max_waiting
        self.left_out: Callable[[int], str] = "{} lines were left out\n".format
        self._line = ""
        self._changed = Condition()
        # Under the lock of `_changed`.
        self._waiting, self._size, self._dropped, self._is_closed = deque[str](), 0, 0, False
        # The thread's own.
        self._lost, self._is_within_line = 0, False
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """To be called after the last fork, as a child must find no lock held by a thread that it does not have. Till then lines wait."""
        self._thread.start()

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, text: str) -> int:
        self._line += text
        return len(text)

    def flush(self) -> None:
        """Hands on what was written, as one: it never waits."""
        text, self._line = self._line, ""
        with self._changed:
            # Once one was left out all are, until there is room again: else the count would stand in the wrong place.
            if self._dropped or self._size + len(text) > self._max_waiting:
                self._dropped += 1
            else:
                self._waiting.append(text)
                self._size += len(text)
            self._changed.notify()

    def close(self, within_s: float = CLOSE_S) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread.ident is None:
            self._thread.start()
        self._thread.join(within_s)

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            texts, dropped = taken
            self._put(texts)
            self._lost += dropped
        if self._lost:
            self._put([])

    def _take(self) -> tuple[list[str], int] | None:
        """All that waits, and how many were left out after it. None: it is the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._dropped or self._is_closed)
            if not (self._waiting or self._dropped):
                return None
            taken = list(self._waiting), self._dropped
            self._waiting.clear()
            self._size = self._dropped = 0
            return taken

    def _put(self, texts: list[str]) -> None:
        if self._lost and not self._write_all(self.left_out(self._lost)):
            self._lost = 0
        if self._lost:
            self._lost += len(texts)
        else:
            self._lost = self._write_all("".join(texts)).count(b"\n")

    def _write_all(self, text: str) -> bytes:
        """What could not be written. A line that was cut off by an error is ended before the next one."""
        rest = (("\n" if self._is_within_line else "") + text).encode(errors="replace") if text else b""
        while rest:
            try:
                count = os.write(self._descriptor, rest)
            except OSError:
                break
            self._is_within_line = rest[count - 1 : count] != b"\n"
            rest = rest[count:]
        return rest
