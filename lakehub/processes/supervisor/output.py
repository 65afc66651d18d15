"""The lines of all processes on one standard output."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import TextIO

from honcho.colour import get_colours
from honcho.printer import Message, Printer

from lakehub.processes.supervisor.log_writer import LogWriter

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 1 << 20
"""A line that is longer is written in parts."""
_CHUNK = 1 << 16


class Output:
    """Writes the processes' lines with time and name in front; `raw`: as they are, where a program reads them."""

    def __init__(self, names: Iterable[str], *, raw: bool = False, stream: TextIO | LogWriter | None = None) -> None:
        self._raw, self._stream = raw, stream
        self._printer = Printer(stream or sys.stdout, prefix=not raw)
        self._printer.width = max(map(len, ("system", *names)))
        self._colours = dict(zip(names, get_colours(), strict=False))

    def write(self, name: str, text: bytes) -> None:
        # The hour of this machine's clock on the wall, for whoever looks on.
        now = datetime.now()  # noqa: DTZ005
        self._printer.write(Message("line", text, now, name, self._colours.get(name)))

    def say(self, text: str) -> None:
        """What the supervisor itself has to say."""
        if self._raw and self._stream is not None:
            self._log(text, self._stream)
        elif self._raw:
            logger.info(text)
        else:
            self.write("system", text.encode())

    def tell_left_out(self, count: int) -> str:
        """The line that says so, for a `LogWriter`."""
        text = f"{count} lines of the log were left out here: the disk was full, or nobody read them"
        return f"{_record_line(text)}\n" if self._raw else f"{datetime.now():%H:%M:%S} system | {text}\n"  # noqa: DTZ005

    def _log(self, text: str, stream: TextIO | LogWriter) -> None:
        # In turn with the processes' lines, and by a stream that never waits.
        if logger.isEnabledFor(logging.INFO):
            stream.write(f"{_record_line(text)}\n")
            stream.flush()


def _record_line(text: str) -> str:
    from lakehub.logs import line_formatter, log_format  # where lines are raw only: it takes time to import

    record = logger.makeRecord(logger.name, logging.INFO, __file__, 0, text, (), None)
    return line_formatter(log_format()).format(record)


class Lines:
    """What one process writes into its pipe, line by line; nothing waits for the rest of a line."""

    def __init__(self, name: str, pipe: int, output: Output) -> None:
        os.set_blocking(pipe, False)
        self._name, self.pipe, self._output = name, pipe, output
        self.is_open, self._rest = True, b""

    def read(self) -> bool:
        """Passes on what is there, if anything is. At the end `is_open` turns false."""
        try:
            chunk = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return False
        self.is_open = bool(chunk)
        whole, end, self._rest = (self._rest + chunk).rpartition(b"\n")
        if not chunk or len(self._rest) > MAX_LINE_BYTES:
            whole, self._rest = whole + end + self._rest, b""
        if whole:
            self._output.write(self._name, whole)
        return self.is_open
