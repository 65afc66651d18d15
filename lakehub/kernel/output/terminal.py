"""Text on a terminal, which obeys control characters: it may clear the screen, or show another line than the one that is there."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text in one line, with what does not print written out, such as `\\x1b`."""
    return text if text.isprintable() else repr(text)[1:-1]
