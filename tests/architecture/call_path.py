"""Which files the product passes through, in the order in which their functions are called first, and how often it comes back.

Counted are the use cases: runs, planning, measuring, execution, incidents, messages, channels; not the tasks, which call one each. Left out are the
words that all of it shares and a reader knows by then (`kernel`, `domain`, `models` with the fields that they are made of, `db`),
and comprehensions and lambdas, which are part of the function around them; and the call that wakes another process: it hands
nothing over and decides nothing, because the next stage finds its work in the database, woken or not. So are lines of the log.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from tests.architecture.imports import PACKAGES, ROOT

SHARED = (
    *("lakehub/kernel/", "/domain/", "/models", "lakehub/db/"),
    *("lakehub/processes/task_wakeup.py", "lakehub/logs/"),
)
_FOLDERS = tuple(f"{ROOT}/{name}/" for name in PACKAGES)


@dataclass
class CallPath:
    """Functions in the order of their first call; each counts once."""

    _functions: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        """Each file once, in the order in which the path enters it first."""
        return list(dict.fromkeys(name for name, _ in self._functions))

    @property
    def visits(self) -> list[str]:
        """The files in the order in which the path enters them for something new; one that it comes back to is there again."""
        entered: list[str] = []
        for name, _ in self._functions:
            if not entered or entered[-1] != name:
                entered.append(name)
        return entered

    @property
    def returns(self) -> int:
        """How often it comes back to a file that it has left, for a function that it has not called before."""
        return len(self.visits) - len(self.files)

    @contextmanager
    def recording(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._profiler())
        try:
            yield
        finally:
            sys.setprofile(before)

    def _profiler(self) -> Callable[[FrameType, str, Any], None]:
        def profile(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and (name := _product_file(frame.f_code)) is not None:
                self._functions.setdefault((name, frame.f_code.co_qualname))

        return profile


def _product_file(code: CodeType) -> str | None:
    if not code.co_filename.startswith(_FOLDERS) or code.co_name.startswith("<"):
        return None
    name = code.co_filename.removeprefix(f"{ROOT}/")
    return None if any(shared in name for shared in SHARED) else name
