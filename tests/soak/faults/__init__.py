"""What is done to the instance. A fault is begun and lifted by one call, which says what it found wrong meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from random import Random

from tests.soak.stand.stage import Stage

Strike = Callable[[Stage, Random], Sequence[str]]
_MODULES = ("kills", "servers", "network", "disk", "clock", "operator", "files")


@dataclass(frozen=True)
class Fault:
    name: str
    strike: Strike
    """Begins the fault, waits, and lifts it. What it found wrong."""
    is_alone: bool = False
    """It looks at what the instance does, which a second fault would change."""
    missing: Callable[[Stage], str] = lambda _stage: ""
    """What the stage lacks for it; empty where it can be."""
    may_double: bool = True
    """A sender that ends between sending and noting it sends again: at least once is all that can be had."""
    explains: str = ""
    """Exceptions that may stand in the log because of it: a pattern of their last lines."""


def all_faults() -> tuple[Fault, ...]:
    return tuple(fault for module in _MODULES for fault in import_module(f"{__name__}.{module}").FAULTS)


def only_on(database: str) -> Callable[[Stage], str]:
    return lambda stage: "" if stage.database == database else f"needs {database}"
