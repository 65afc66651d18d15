"""Every state that a page can show: its shape and its word. The colour follows from `data-state` (css/tokens.css)."""

from __future__ import annotations

from dataclasses import dataclass

from incidents.domain.rollup import WEIGHTS


@dataclass(frozen=True)
class State:
    name: str
    """The value of `data-state`."""
    icon: str
    word: str

    @property
    def weight(self) -> int:
        """What a list of states rolls up to: the heaviest."""
        return WEIGHTS[self.name]


STATES = {
    state.name: state
    for state in (
        State("fail", "fail", "Fail"),
        State("reported", "reported", "Reported"),
        State("unknown", "unknown", "Unknown"),
        State("warn", "warn", "Warn"),
        State("suppressed", "suppressed", "Suppressed"),
        State("snoozed", "snoozed", "Snoozed"),
        State("grace", "grace", "In grace"),
        State("held", "held", "Held"),
        State("running", "running", "Running"),
        State("pass", "pass", "Pass"),
        State("none", "none", "No test"),
    )
}
