"""Every state that a page can show: its shape and its word. The colour follows from `data-state` (css/tokens.css)."""

from __future__ import annotations

from dataclasses import dataclass

from incidents.domain.incident.health import STATE_WEIGHTS


@dataclass(frozen=True)
class ShownState:
    name: str
    """The value of `data-state`."""
    icon: str
    word: str

    @property
    def weight(self) -> int:
        """What a list of states rolls up to: the heaviest."""
        return STATE_WEIGHTS[self.name]


STATES = {
    state.name: state
    for state in (
        ShownState("fail", "fail", "Fail"),
        ShownState("reported", "reported", "Reported"),
        ShownState("unknown", "unknown", "Unknown"),
        ShownState("warn", "warn", "Warn"),
        ShownState("suppressed", "suppressed", "Suppressed"),
        ShownState("snoozed", "snoozed", "Snoozed"),
        ShownState("grace", "grace", "In grace"),
        ShownState("held", "held", "Held"),
        ShownState("running", "running", "Running"),
        ShownState("pass", "pass", "Pass"),
        ShownState("none", "none", "No test"),
    )
}
