"""How the story is told: numbered steps, each with its seconds; a claim is printed with whether it holds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class ClaimFailed(Exception):
    """A step did not show what it should."""


class Narrator:
    """Prints to `out`; on a terminal, what is being waited for is shown in place."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._in_place = out.isatty()
        self._began = time.monotonic()
        self.is_finished = False
        """Whether the story came to its end."""

    def end(self) -> None:
        self.is_finished = True
        self._print(f"\nThe whole story: {time.monotonic() - self._began:.0f} s")

    @contextmanager
    def step(self, number: int, title: str) -> Iterator[None]:
        self._print(f"\n{number}  {title}")
        began = time.monotonic()
        try:
            yield
        finally:
            self._print(f"   {time.monotonic() - began:.1f} s")

    def say(self, text: str) -> None:
        self._print(f"   {text}")

    def check(self, claim: str, holds: bool) -> None:
        """A claim of the story. Raises ClaimFailed where it does not hold."""
        self._print(f"   {'✓' if holds else '✗'} {claim}")
        if not holds:
            raise ClaimFailed(claim)

    def progress(self, text: str) -> None:
        if self._in_place:
            self._out.write(f"\r\x1b[2K   … {text}")
            self._out.flush()

    def _print(self, line: str) -> None:
        if self._in_place:
            self._out.write("\r\x1b[2K")
        print(line, file=self._out, flush=True)
