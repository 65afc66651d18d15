"""What a category goes by, for every combination of what its units and its incidents say."""

from __future__ import annotations

from itertools import chain, combinations, product

import pytest

from incidents.domain.incident.health import (
    SILENCED_STATES,
    STATE_WEIGHTS,
    OpenIncidentFacts,
    category_state,
    incident_state,
    worst_state,
)

VERDICTS = ("pass", "warn", "unknown", "fail")
SHOWN = ("pass", "reported", "fail", "snoozed", "suppressed", "grace")


def subsets(values: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(values, n) for n in range(len(values) + 1)))


@pytest.mark.parametrize(
    ("facts", "in_grace", "shown"),
    [
        (OpenIncidentFacts(failing=True), False, "fail"),
        (OpenIncidentFacts(failing=True), True, "grace"),
        (OpenIncidentFacts(failing=True, suppressed=True), True, "suppressed"),
        (OpenIncidentFacts(failing=True, suppressed=True, snoozed=True), False, "snoozed"),
        (OpenIncidentFacts(waiting=True, snoozed=True), False, "reported"),
        (OpenIncidentFacts(acknowledged_report=True), True, "fail"),
        (OpenIncidentFacts(), False, "pass"),
        (OpenIncidentFacts(snoozed=True), False, "pass"),
    ],
)
def test_an_incident_goes_by_what_keeps_it_quiet(facts: OpenIncidentFacts, in_grace: bool, shown: str) -> None:
    assert incident_state(facts, in_grace=in_grace) == shown


def test_what_fails_is_never_shown_as_pass() -> None:
    for verdicts, incidents, in_grace in product(subsets(VERDICTS), subsets(SHOWN), (False, True)):
        if "fail" in verdicts or set(incidents) - {"pass"}:
            assert category_state(verdicts, incidents, in_grace=in_grace) not in ("pass", "none")


def test_a_loud_failure_is_never_hidden_by_a_quiet_one() -> None:
    for verdicts, incidents, in_grace in product(subsets(VERDICTS), subsets(SHOWN), (False, True)):
        if "fail" in incidents:
            assert category_state(verdicts, incidents, in_grace=in_grace) == "fail"


def test_unknown_is_louder_than_what_is_quiet() -> None:
    for quiet in SILENCED_STATES:
        assert category_state({"fail", "unknown"}, [quiet], in_grace=False) == "unknown"


def test_a_failing_category_goes_by_the_name_of_its_quiet_incident() -> None:
    for quiet in SILENCED_STATES:
        assert category_state({"fail", "pass"}, [quiet], in_grace=quiet == "grace") == quiet


@pytest.mark.parametrize(
    ("verdict", "in_grace", "shown"),
    [("fail", True, "grace"), ("warn", True, "grace"), ("warn", False, "warn"), ("unknown", True, "unknown")],
)
def test_in_grace_failures_have_that_name_and_unknown_keeps_its_own(verdict: str, in_grace: bool, shown: str) -> None:
    assert category_state({"pass", verdict}, [], in_grace=in_grace) == shown


def test_a_failure_without_an_incident_yet_fails() -> None:
    assert category_state({"fail"}, ["reported"], in_grace=False) == "fail"


def test_more_states_never_weigh_less() -> None:
    for states in subsets(SHOWN):
        for more in STATE_WEIGHTS:
            assert STATE_WEIGHTS[worst_state([*states, more])] >= STATE_WEIGHTS[worst_state(states)]


def test_of_nothing_there_is_no_test() -> None:
    assert category_state(set(), [], in_grace=False) == "none"
