"""An error names the thing, the value and the remedy: `did you mean ...`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_HINTS = 5
"""Of many unknown words: each hint is a search through all names."""


class HintBudget:
    """How many more unknown words get a hint: one budget for all that a request asks for."""

    def __init__(self, most: int = MAX_HINTS) -> None:
        self._left = most

    def take(self) -> bool:
        """Whether this word gets one."""
        self._left -= 1
        return self._left >= 0


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """` Did you mean `x`?`, or the choices where none is close; starts with a space, may be empty."""
    names = sorted(set(choices))
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f" Did you mean `{close[0]}`?"
    if not names:
        return ""
    shown = ", ".join(f"`{name}`" for name in names[:12])
    return f" There are: {shown}{', ...' if len(names) > 12 else '.'}"
