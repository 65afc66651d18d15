"""What may become of a backfill. A pair that is absent is refused."""

from __future__ import annotations

TRANSITIONS = {
    ("running", "pause"): "paused",
    ("paused", "resume"): "running",
    ("running", "cancel"): "cancelled",
    ("paused", "cancel"): "cancelled",
    ("running", "succeed"): "succeeded",
    ("running", "fail"): "failed",
    ("failed", "retry"): "running",
}
"""By state and event. It fails when all chunks have ended and some were given up."""
ACTIONS = ("pause", "resume", "cancel", "retry")
"""The events that people bring about."""


def states_for(event: str) -> list[str]:
    """In which it takes this event."""
    return [state for state, known in TRANSITIONS if known == event]
