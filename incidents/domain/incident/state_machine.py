"""The life of an incident: one table (state, move) -> state for what tests detect, one for what users report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from lakehub.kernel.errors import Conflict


class IncidentState(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    REPORTED = "reported"
    MATCHED = "matched"
    WAITING = "waiting"
    REJECTED = "rejected"


class Transition(StrEnum):
    ACKNOWLEDGE = "acknowledge"
    RELEASE = "release"
    RESOLVE = "resolve"
    REOPEN = "reopen"
    MATCH = "match"
    UNMATCH = "unmatch"
    ASK_PRODUCER = "ask_producer"
    REJECT = "reject"
    DISPUTE = "dispute"


TransitionTable = Mapping[tuple[IncidentState, Transition], IncidentState]

DETECTED_TRANSITIONS: TransitionTable = MappingProxyType(
    {
        (IncidentState.OPEN, Transition.ACKNOWLEDGE): IncidentState.ACKNOWLEDGED,
        (IncidentState.OPEN, Transition.RESOLVE): IncidentState.RESOLVED,
        (IncidentState.ACKNOWLEDGED, Transition.RELEASE): IncidentState.OPEN,
        (IncidentState.ACKNOWLEDGED, Transition.RESOLVE): IncidentState.RESOLVED,
        (IncidentState.RESOLVED, Transition.REOPEN): IncidentState.OPEN,
    }
)

REPORTED_TRANSITIONS: TransitionTable = MappingProxyType(
    {
        (IncidentState.REPORTED, Transition.MATCH): IncidentState.MATCHED,
        (IncidentState.REPORTED, Transition.ASK_PRODUCER): IncidentState.WAITING,
        (IncidentState.MATCHED, Transition.UNMATCH): IncidentState.WAITING,
        (IncidentState.MATCHED, Transition.RESOLVE): IncidentState.RESOLVED,
        (IncidentState.WAITING, Transition.MATCH): IncidentState.MATCHED,
        (IncidentState.WAITING, Transition.ACKNOWLEDGE): IncidentState.ACKNOWLEDGED,
        (IncidentState.WAITING, Transition.REJECT): IncidentState.REJECTED,
        (IncidentState.ACKNOWLEDGED, Transition.RELEASE): IncidentState.WAITING,
        (IncidentState.ACKNOWLEDGED, Transition.RESOLVE): IncidentState.RESOLVED,
        (IncidentState.REJECTED, Transition.DISPUTE): IncidentState.WAITING,
        (IncidentState.REJECTED, Transition.RESOLVE): IncidentState.RESOLVED,
        (IncidentState.RESOLVED, Transition.REOPEN): IncidentState.WAITING,
    }
)


class InvalidTransition(Conflict):
    """The table has no such pair."""


def next_state(state: IncidentState, move: Transition, *, reported: bool = False) -> IncidentState:
    """The state that `move` leads to. Raises InvalidTransition, which names the moves that there are."""
    table = REPORTED_TRANSITIONS if reported else DETECTED_TRANSITIONS
    try:
        return table[state, move]
    except KeyError:
        possible = allowed_transitions(state, reported=reported)
        ways = f"From {state} it can: {', '.join(possible)}." if possible else f"{state} is not one of its states."
        kind = "A reported incident" if reported else "An incident"
        raise InvalidTransition(f"{kind} that is {state} cannot {move.replace('_', ' ')}. {ways}") from None


def allowed_transitions(state: IncidentState, *, reported: bool = False) -> tuple[Transition, ...]:
    """What can be done now."""
    return tuple(move for was, move in (REPORTED_TRANSITIONS if reported else DETECTED_TRANSITIONS) if was is state)


# The table as a person reads it


def as_markdown(moves: TransitionTable) -> str:
    rows = (f"| {was} | {move.replace('_', ' ')} | {becomes} |" for (was, move), becomes in moves.items())
    return _lines("| from | move | to |", "| --- | --- | --- |", *rows)


def as_mermaid(moves: TransitionTable) -> str:
    start = next(iter(moves))[0]
    arrows = (f"    {was} --> {becomes}: {move.replace('_', ' ')}" for (was, move), becomes in moves.items())
    return _lines("stateDiagram-v2", f"    [*] --> {start}", *arrows)


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def reachable_states(moves: TransitionTable, start: IncidentState) -> frozenset[IncidentState]:
    """Every state that some sequence of moves leads to."""
    reached: set[IncidentState] = set()
    front: Iterable[IncidentState] = [start]
    while front:
        reached.update(front)
        front = [becomes for (was, _), becomes in moves.items() if was in reached and becomes not in reached]
    return frozenset(reached)
