"""The life of an incident: one table (state, move) -> state for what tests detect, one for what users report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from lakehub.kernel.errors import Conflict
from lakehub.kernel.suggest import did_you_mean


class State(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    REPORTED = "reported"
    MATCHED = "matched"
    WAITING = "waiting"
    REJECTED = "rejected"


class Move(StrEnum):
    ACKNOWLEDGE = "acknowledge"
    RELEASE = "release"
    RESOLVE = "resolve"
    REOPEN = "reopen"
    MATCH = "match"
    UNMATCH = "unmatch"
    ASK_PRODUCER = "ask_producer"
    REJECT = "reject"
    DISPUTE = "dispute"


Moves = Mapping[tuple[State, Move], State]

DETECTED: Moves = MappingProxyType(
    {
        (State.OPEN, Move.ACKNOWLEDGE): State.ACKNOWLEDGED,
        (State.OPEN, Move.RESOLVE): State.RESOLVED,
        (State.ACKNOWLEDGED, Move.RELEASE): State.OPEN,
        (State.ACKNOWLEDGED, Move.RESOLVE): State.RESOLVED,
        (State.RESOLVED, Move.REOPEN): State.OPEN,
    }
)

REPORTED: Moves = MappingProxyType(
    {
        (State.REPORTED, Move.MATCH): State.MATCHED,
        (State.REPORTED, Move.ASK_PRODUCER): State.WAITING,
        (State.MATCHED, Move.UNMATCH): State.WAITING,
        (State.MATCHED, Move.RESOLVE): State.RESOLVED,
        (State.WAITING, Move.MATCH): State.MATCHED,
        (State.WAITING, Move.ACKNOWLEDGE): State.ACKNOWLEDGED,
        (State.WAITING, Move.REJECT): State.REJECTED,
        (State.ACKNOWLEDGED, Move.RELEASE): State.WAITING,
        (State.ACKNOWLEDGED, Move.RESOLVE): State.RESOLVED,
        (State.REJECTED, Move.DISPUTE): State.WAITING,
        (State.REJECTED, Move.RESOLVE): State.RESOLVED,
        (State.RESOLVED, Move.REOPEN): State.WAITING,
    }
)


class NoSuchMove(Conflict):
    """The table has no such pair."""


def after(state: State, move: Move, *, reported: bool = False) -> State:
    """The state that `move` leads to. Raises NoSuchMove, which names the moves that there are."""
    table = REPORTED if reported else DETECTED
    try:
        return table[state, move]
    except KeyError:
        possible = moves_from(state, reported=reported)
        ways = f"From {state} it can: {', '.join(possible)}." if possible else f"{state} is not one of its states."
        kind = "A reported incident" if reported else "An incident"
        raise NoSuchMove(f"{kind} that is {state} cannot {move.replace('_', ' ')}. {ways}") from None


def moves_from(state: State, *, reported: bool = False) -> tuple[Move, ...]:
    """What can be done now."""
    return tuple(move for was, move in (REPORTED if reported else DETECTED) if was is state)


def is_closed(state: State) -> bool:
    return state is State.RESOLVED


def move_named(name: str) -> Move:
    """The move called `name`. Raises NoSuchMove with the nearest one."""
    try:
        return Move(name)
    except ValueError:
        raise NoSuchMove(f"There is no move `{name}`.{did_you_mean(name, [move.value for move in Move])}") from None


# The table as a person reads it


def as_markdown(moves: Moves) -> str:
    rows = (f"| {was} | {move.replace('_', ' ')} | {becomes} |" for (was, move), becomes in moves.items())
    return _lines("| from | move | to |", "| --- | --- | --- |", *rows)


def as_mermaid(moves: Moves) -> str:
    start = next(iter(moves))[0]
    arrows = (f"    {was} --> {becomes}: {move.replace('_', ' ')}" for (was, move), becomes in moves.items())
    return _lines("stateDiagram-v2", f"    [*] --> {start}", *arrows)


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def reachable(moves: Moves, start: State) -> frozenset[State]:
    """Every state that some sequence of moves leads to."""
    found: set[State] = set()
    front: Iterable[State] = [start]
    while front:
        found.update(front)
        front = [becomes for (was, _), becomes in moves.items() if was in found and becomes not in found]
    return frozenset(found)
