"""Every state that a page can show: its shape and its word. The colour follows from `data-state` (css/tokens.css)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    name: str
    """The value of `data-state`."""
    icon: str
    word: str
    weight: int
    """What a list of states rolls up to: the heaviest."""


STATES = {
    state.name: state
    for state in (
        State("fail", "fail", "Fail", 100),
        State("reported", "reported", "Reported", 90),
        State("unknown", "unknown", "Unknown", 80),
        State("warn", "warn", "Warn", 70),
        State("suppressed", "suppressed", "Suppressed", 60),
        State("snoozed", "snoozed", "Snoozed", 50),
        State("grace", "grace", "In grace", 40),
        State("held", "held", "Held", 35),
        State("running", "running", "Running", 30),
        State("pass", "pass", "Pass", 10),
        State("none", "none", "No test", 0),
    )
}


def heaviest(names: Iterable[str]) -> str:
    """What several states show as together; of none: no test."""
    return max(names, key=lambda name: STATES[name].weight, default="none")
