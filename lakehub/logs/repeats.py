"""What says the same again and again is logged a few times a minute, with how often it was left out: a fault must not fill the disk.

One kind of line is the logger, the level, the error's type and the message without its numbers. Of what visitors cause (VISITORS) it
is the form of the message, not its text: they choose that, a path for instance. That a disk is full is one kind, whoever meets it,
and is logged once a minute.
"""

from __future__ import annotations

import errno
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

WINDOW_S = 60.0
LINES_A_WINDOW = 20
_MAX_KINDS = 1000
"""Remembered at a time; what was not met for longest is forgotten."""
VISITORS = ("django.request", "django.security", "gunicorn.error")
"""Loggers, and those below them, whose lines quote what somebody sent who need not be signed in."""
VISITORS_LINE = 500
"""Characters of such a message; an address alone may have thousands."""
_BEGINNING = 24
"""Of a visitor's line that was put together before it was logged: "Invalid request from ip=", "Invalid HTTP_HOST header"."""
_KIND_LENGTH = 200
_NUMBERS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|\d+", re.IGNORECASE)
_FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_FULL_DISK_WORDS = ("No space left on device", "Disk quota exceeded", "database or disk is full")
"""As the system, SQLite and PostgreSQL say it, also within an error of a library."""
_FULL_FOR_SQLITES_INDEX = "SQLITE_IOERR_SHMSIZE"
"""All it says is "disk I/O error"; the index of its write-ahead log could not grow."""
_FULL_DISK = ("full disk",)
_FULL_DISK_REMEDY = "Make room; work goes on by itself then. This is logged once a minute."
_MAX_CAUSES = 20


@dataclass
class _Window:
    """Since when lines of a kind are counted, and how many were logged and left out since."""

    began: float
    logged: int = 0
    left_out: int = 0


class RepeatLimit(logging.Filter):
    """For a handler: lets warnings and errors, and what visitors cause, through as long as there are few of their kind.

    `clock`: seconds that only go forward.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._windows: OrderedDict[tuple[str, ...], _Window] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        of_visitor = _is_of_visitor(record.name)
        if record.levelno < logging.WARNING and not (of_visitor and record.levelno >= logging.INFO):
            return True
        kind = _kind_of_visitor(record) if of_visitor else _kind_of(record)
        allowed = 1 if kind == _FULL_DISK else LINES_A_WINDOW
        with self._lock:
            left_out = self._count(kind, allowed)
        if left_out is None:
            return False
        if of_visitor and len(message := record.getMessage()) > VISITORS_LINE:
            cut = len(message) - VISITORS_LINE
            record.msg, record.args = f"{message[:VISITORS_LINE]}... ({cut:,} more characters)", None
        remarks = [_FULL_DISK_REMEDY] if kind == _FULL_DISK else []
        remarks += [f"{left_out} more lines like it were left out."] if left_out else []
        if remarks:
            record.msg, record.args = f"{record.getMessage().rstrip()} ({' '.join(remarks)})", None
        return True

    def _count(self, kind: tuple[str, ...], allowed: int) -> int | None:
        """None: there were enough. Else how many were left out of the window before."""
        now, left_out = self._clock(), 0
        window = self._windows.get(kind)
        if window is None or now - window.began >= WINDOW_S:
            left_out = 0 if window is None else window.left_out
            window = self._windows[kind] = _Window(now)
        self._windows.move_to_end(kind)
        if len(self._windows) > _MAX_KINDS:
            self._windows.popitem(last=False)
        if window.logged >= allowed:
            window.left_out += 1
            return None
        window.logged += 1
        return left_out


def _kind_of(record: logging.LogRecord) -> tuple[str, ...]:
    error = _error_of(record)
    message = record.getMessage()
    if _tells_of_full_disk(message) or any(_is_full_disk(cause) for cause in _causes(error)):
        return _FULL_DISK
    shortened = _NUMBERS.sub("#", message[: 2 * _KIND_LENGTH])[:_KIND_LENGTH]
    return record.name, record.levelname, type(error).__name__, shortened


def _is_of_visitor(logger: str) -> bool:
    return any(logger == name or logger.startswith(f"{name}.") for name in VISITORS)


def _kind_of_visitor(record: logging.LogRecord) -> tuple[str, ...]:
    """Nothing in it is a visitor's choice; nor can their words pass for a full disk, which would hide a real one."""
    error = _error_of(record)
    if any(_is_full_disk(cause) for cause in _causes(error)):
        return _FULL_DISK
    form = str(record.msg) if record.args else _NUMBERS.sub("#", str(record.msg)[:_BEGINNING])
    status = str(getattr(record, "status_code", ""))
    return record.name, record.levelname, type(error).__name__, _raised_at(error), status, form


def _raised_at(error: BaseException | None) -> str:
    """The line of code, so that one fault of ours that somebody asks for again and again does not hide another."""
    trace, place = None if error is None else error.__traceback__, ""
    while trace is not None:
        place, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
    return place


def _error_of(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if isinstance(record.exc_info, tuple) else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that it came from."""
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_full_disk(error: BaseException) -> bool:
    return (
        (isinstance(error, OSError) and error.errno in _FULL_DISK_ERRORS)
        or getattr(error, "sqlite_errorname", None) == _FULL_FOR_SQLITES_INDEX
        or _tells_of_full_disk(str(error))
    )


def _tells_of_full_disk(text: str) -> bool:
    return any(words in text for words in _FULL_DISK_WORDS)
