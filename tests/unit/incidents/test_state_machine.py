from __future__ import annotations

from pathlib import Path

import pytest

from incidents.domain.incident.state_machine import (
    DETECTED_TRANSITIONS,
    REPORTED_TRANSITIONS,
    IncidentState,
    InvalidTransition,
    Transition,
    TransitionTable,
    allowed_transitions,
    as_markdown,
    as_mermaid,
    next_state,
    reachable_states,
)

TABLES = [(DETECTED_TRANSITIONS, False, IncidentState.OPEN), (REPORTED_TRANSITIONS, True, IncidentState.REPORTED)]


@pytest.mark.parametrize(("table", "reported", "start"), TABLES)
def test_every_pair_is_in_the_table_or_is_refused(table: TransitionTable, reported: bool, start: IncidentState) -> None:
    for state in IncidentState:
        for move in Transition:
            if (state, move) in table:
                assert next_state(state, move, reported=reported) is table[state, move]
            else:
                with pytest.raises(InvalidTransition, match=f"that is {state} cannot {move.replace('_', ' ')}"):
                    next_state(state, move, reported=reported)


@pytest.mark.parametrize(("table", "reported", "start"), TABLES)
def test_every_state_can_be_reached_and_every_state_can_end(
    table: TransitionTable, reported: bool, start: IncidentState
) -> None:
    states = {state for state, _ in table} | set(table.values())
    assert reachable_states(table, start) == states
    assert all(IncidentState.RESOLVED in reachable_states(table, state) for state in states)


def test_an_incident_is_acknowledged_resolved_and_reopened() -> None:
    state = IncidentState.OPEN
    for move in (Transition.ACKNOWLEDGE, Transition.RESOLVE, Transition.REOPEN, Transition.RESOLVE):
        state = next_state(state, move)
    assert state is IncidentState.RESOLVED


def test_a_report_waits_for_the_producer_who_may_reject_it() -> None:
    state = IncidentState.REPORTED
    for move in (
        Transition.ASK_PRODUCER,
        Transition.REJECT,
        Transition.DISPUTE,
        Transition.ACKNOWLEDGE,
        Transition.RESOLVE,
    ):
        state = next_state(state, move, reported=True)
    assert state is IncidentState.RESOLVED


def test_a_refused_transition_names_those_that_there_are() -> None:
    with pytest.raises(
        InvalidTransition, match=r"that is resolved cannot acknowledge\. From resolved it can: reopen\."
    ):
        next_state(IncidentState.RESOLVED, Transition.ACKNOWLEDGE)
    with pytest.raises(InvalidTransition, match="waiting is not one of its states"):
        next_state(IncidentState.WAITING, Transition.ACKNOWLEDGE)


def test_the_table_is_drawn_whole() -> None:
    assert allowed_transitions(IncidentState.OPEN) == (Transition.ACKNOWLEDGE, Transition.RESOLVE)
    assert len(as_markdown(REPORTED_TRANSITIONS).splitlines()) == 2 + len(REPORTED_TRANSITIONS)
    assert as_mermaid(DETECTED_TRANSITIONS).splitlines()[:3] == [
        "stateDiagram-v2",
        "    [*] --> open",
        "    open --> acknowledged: acknowledge",
    ]


@pytest.mark.parametrize("table", [DETECTED_TRANSITIONS, REPORTED_TRANSITIONS])
def test_the_table_in_the_docs_is_the_table(table: TransitionTable) -> None:
    page = Path(__file__).parents[3] / "docs" / "incidents.md"
    assert as_markdown(table) in page.read_text()


@pytest.mark.parametrize("table", [DETECTED_TRANSITIONS, REPORTED_TRANSITIONS])
def test_the_drawing_in_the_docs_is_the_table(table: TransitionTable) -> None:
    docs = Path(__file__).parents[3] / "docs" / "incidents.md"
    assert f"```mermaid\n{as_mermaid(table)}\n```" in docs.read_text()
