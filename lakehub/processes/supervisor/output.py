"""The lines of all processes on one standard output."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from datetime import datetime

from honcho.colour import get_colours
from honcho.printer import Message, Printer

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 1 << 20
"""A line that is longer is written in parts."""
_CHUNK = 1 << 16


class Output:
    """Writes the processes' lines with time and name in front; `raw`: as they are, where a program reads them."""

    def __init__(self, names: Iterable[str], *, raw: bool = False) -> None:
        self._raw = raw
        self._printer = Printer(sys.stdout, prefix=not raw)
        self._printer.width = max(map(len, ("system", *names)))
        self._colours = dict(zip(names, get_colours(), strict=False))

    def write(self, name: str, text: bytes) -> None:
        # The hour of this machine's clock on the wall, for whoever looks on.
        now = datetime.now()  # noqa: DTZ005
        self._printer.write(Message("line", text, now, name, self._colours.get(name)))

    def say(self, text: str) -> None:
        """What the supervisor itself has to say."""
        if self._raw:
            logger.info(text)
        else:
            self.write("system", text.encode())


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
