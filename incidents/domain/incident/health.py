"""What a category, and with it its dataset, goes by: the worst that counts, and what is kept quiet by its own name.

A failed test fails its category, the category fails the table. What fails and is snoozed, suppressed or in grace is shown
as such, never as pass; and one quiet failure hides neither another that is not quiet nor what is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

STATE_WEIGHTS = {
    "fail": 100,
    "reported": 90,
    "unknown": 80,
    "warn": 70,
    "suppressed": 60,
    "snoozed": 50,
    "grace": 40,
    "held": 35,
    "running": 30,
    "pass": 10,
    "none": 0,
}
"""Every state that is shown; several are shown as the heaviest."""
SILENCED_STATES = frozenset({"suppressed", "snoozed", "grace"})


def worst_state(states: Iterable[str]) -> str:
    """What several states show as together; of none: no test."""
    return max(states, key=STATE_WEIGHTS.__getitem__, default="none")


@dataclass(frozen=True)
class OpenIncidentFacts:
    """What of an open incident counts here. `failing`: one of its units is of a gating test and fails."""

    failing: bool = False
    waiting: bool = False
    """A user's report that nobody has answered."""
    acknowledged_report: bool = False
    snoozed: bool = False
    suppressed: bool = False


def incident_state(facts: OpenIncidentFacts, *, in_grace: bool) -> str:
    """What it goes by. `pass`: it does not count, as tests that do not gate, reports that are explained or refused."""
    if facts.waiting:
        return "reported"
    if not facts.failing and not facts.acknowledged_report:
        return "pass"
    if facts.snoozed:
        return "snoozed"
    if facts.suppressed:
        return "suppressed"
    # What a person saw and the owners confirmed is no test that still has to settle in.
    return "grace" if in_grace and facts.failing else "fail"


def category_state(verdicts: Collection[str], incidents: Iterable[str], *, in_grace: bool) -> str:
    """`verdicts`: of its gating units, none of them: no test. `incidents`: what its open incidents go by.

    A unit that fails goes by its incident; where there is none yet, it fails.
    """
    shown = [state for state in incidents if state != "pass"]
    is_failure_shown = any(state in SILENCED_STATES or state == "fail" for state in shown)
    for verdict in verdicts:
        if verdict == "fail" and is_failure_shown:
            continue
        shown.append("grace" if in_grace and verdict in ("fail", "warn") else verdict)
    return worst_state(shown)
