from __future__ import annotations

from pathlib import Path

import pytest

from incidents.domain.lifecycle import (
    DETECTED,
    REPORTED,
    Move,
    Moves,
    NoSuchMove,
    State,
    after,
    as_markdown,
    as_mermaid,
    move_named,
    moves_from,
    reachable,
)

TABLES = [(DETECTED, False, State.OPEN), (REPORTED, True, State.REPORTED)]


@pytest.mark.parametrize(("table", "reported", "start"), TABLES)
def test_every_pair_is_in_the_table_or_is_refused(table: Moves, reported: bool, start: State) -> None:
    for state in State:
        for move in Move:
            if (state, move) in table:
                assert after(state, move, reported=reported) is table[state, move]
            else:
                with pytest.raises(NoSuchMove, match=f"that is {state} cannot {move.replace('_', ' ')}"):
                    after(state, move, reported=reported)


@pytest.mark.parametrize(("table", "reported", "start"), TABLES)
def test_every_state_can_be_reached_and_every_state_can_end(table: Moves, reported: bool, start: State) -> None:
    states = {state for state, _ in table} | set(table.values())
    assert reachable(table, start) == states
    assert all(State.RESOLVED in reachable(table, state) for state in states)


def test_an_incident_is_acknowledged_resolved_and_reopened() -> None:
    state = State.OPEN
    for move in (Move.ACKNOWLEDGE, Move.RESOLVE, Move.REOPEN, Move.RESOLVE):
        state = after(state, move)
    assert state is State.RESOLVED


def test_a_report_waits_for_the_producer_who_may_reject_it() -> None:
    state = State.REPORTED
    for move in (Move.ASK_PRODUCER, Move.REJECT, Move.DISPUTE, Move.ACKNOWLEDGE, Move.RESOLVE):
        state = after(state, move, reported=True)
    assert state is State.RESOLVED


def test_a_refused_move_names_those_that_there_are() -> None:
    with pytest.raises(NoSuchMove, match=r"that is resolved cannot acknowledge\. From resolved it can: reopen\."):
        after(State.RESOLVED, Move.ACKNOWLEDGE)
    with pytest.raises(NoSuchMove, match="waiting is not one of its states"):
        after(State.WAITING, Move.ACKNOWLEDGE)


def test_an_unknown_move_is_answered_with_the_nearest() -> None:
    with pytest.raises(NoSuchMove, match=r"no move `aknowledge`\. Did you mean `acknowledge`\?"):
        move_named("aknowledge")


def test_the_table_is_drawn_whole() -> None:
    assert moves_from(State.OPEN) == (Move.ACKNOWLEDGE, Move.RESOLVE)
    assert len(as_markdown(REPORTED).splitlines()) == 2 + len(REPORTED)
    assert as_mermaid(DETECTED).splitlines()[:3] == [
        "stateDiagram-v2",
        "    [*] --> open",
        "    open --> acknowledged: acknowledge",
    ]


@pytest.mark.parametrize("table", [DETECTED, REPORTED])
def test_the_table_in_the_docs_is_the_table(table: Moves) -> None:
    page = Path(__file__).parents[3] / "docs" / "incidents.md"
    assert as_markdown(table) in page.read_text()


@pytest.mark.parametrize("table", [DETECTED, REPORTED])
def test_the_drawing_in_the_docs_is_the_table(table: Moves) -> None:
    docs = Path(__file__).parents[3] / "docs" / "incidents.md"
    assert f"```mermaid\n{as_mermaid(table)}\n```" in docs.read_text()
