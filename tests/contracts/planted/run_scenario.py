"""A scenario is played, and what Lakehub says is held against what the model expects, phase by phase."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from tests.contracts.planted import system_under_test as system
from tests.contracts.planted.layouts import NAMES
from tests.contracts.planted.model import Expectation, Model, held_back
from tests.contracts.planted.scenario import Phase, Plant, Scenario, Signal
from tests.contracts.planted.system_under_test import Opened, SystemUnderTest

MAX_NAMED = 12


def run_scenario(scenario: Scenario, folder: Path) -> list[str]:
    """What is not as it should be, in words; empty where all is."""
    lakehub, model = SystemUnderTest(scenario, folder), Model(scenario)
    lakehub.set_the_scene()
    problems = [
        f"The wrong {field} are not refused: {refusal!r}"
        for field, named in scenario.refusals.items()
        if named not in (refusal := lakehub.refusal(field))
    ]
    for number, phase in enumerate(scenario.phases, 1):
        lakehub.begin(phase)
        if number == 1:
            problems += _problems_of_messages(scenario, phase)
        for now in (phase.noticed_at, phase.settled_at):
            system.wake_everything(now)
        expectation = model.expect(phase)
        problems += [f"Phase {number}: {problem}" for problem in _problems(phase, expectation)]
        if problems:  # what comes later follows from it
            break
    return [*_described(scenario), *problems] if problems else []


def _problems_of_messages(scenario: Scenario, phase: Phase) -> Iterator[str]:
    """Of the incidents that are opened at once."""
    at_once = Model(scenario).expect(replace(phase, settled_at=phase.now))
    for opened in system.opened_at(phase.now):
        is_held = held_back(at_once, scenario, opened.category, opened.dataset, opened.copies, opened.since)
        if opened.state != ("held" if is_held else "sent"):
            yield f"the message of {opened} should be {'held' if is_held else 'sent'}"
        if lacking := [name for name in _names_needed(scenario, opened) if name not in opened.text.lower()]:
            yield f"the message of {opened} does not name {', '.join(lacking)}"


def _names_needed(scenario: Scenario, opened: Opened) -> Iterator[str]:
    """The dataset, one of its copies, the category, and where what is wrong begins."""
    table = next(table for table in scenario.tables if table.name == opened.dataset)
    yield from (table.name, opened.category, min(opened.copies).center)
    period = next((period for period in scenario.calendars[table.name] if period.start == opened.since), None)
    if period is not None and opened.category != "freshness":
        yield NAMES[table.grain](period, period.start).lower()


def _problems(phase: Phase, expectation: Expectation) -> Iterator[str]:
    signals = system.signals()
    for plant in phase.plants:
        if plant.signals and _is_due(plant, phase) and not any(_is_given(signal, signals) for signal in plant.signals):
            yield f"not told: {_plant_text(plant)}"
    yield from _differences("signals", signals, expectation.signals)
    yield from _differences("failing tests", system.failing_units(), expectation.units)
    gate = system.gate_verdicts(expectation.gate, phase.settled_at)
    yield from _differences("gate", gate.items(), expectation.gate.items())


def _is_due(plant: Plant, phase: Phase) -> bool:
    return plant.due_at is None or plant.due_at <= phase.settled_at


def _is_given(signal: Signal, signals: Collection[Signal]) -> bool:
    """Of staleness there is one range: it begins where the oldest of several defects does."""
    if signal.category == "freshness":
        return any((given.place, given.category) == (signal.place, "freshness") for given in signals)
    return signal in signals


def _differences(what: str, given: Collection[object], expected: Collection[object]) -> Iterator[str]:
    for text, of in (("missing", set(expected) - set(given)), ("too many", set(given) - set(expected))):
        for each in sorted(map(str, of))[:MAX_NAMED]:
            yield f"{what}, {text}: {each}"


def _described(scenario: Scenario) -> Iterator[str]:
    for table in scenario.tables:
        columns = ", ".join(f"{column.name} {column.type}" for column in table.layout.columns)
        yield (
            f"{table.name}: by {table.grain} in {table.zone}, tier {table.tier}, {columns} as {table.layout.form.text!r}, "
            f"key {table.layout.key}, {dict(table.kinds)}, by event time: {table.by_event_time}"
        )
    for number, phase in enumerate(scenario.phases, 1):
        yield f"Phase {number} at {phase.now:%Y-%m-%d %H:%M}, settled at {phase.settled_at:%Y-%m-%d %H:%M}, gone: {phase.gone}"
        yield from (f"- {_plant_text(plant)}" for plant in phase.plants)


def _plant_text(plant: Plant) -> str:
    over = "" if plant.period is None else f" in {plant.period.local:%Y-%m-%d %H:%M}"
    return f"{plant.kind} in {'@'.join(plant.place)}{over}: {[(*signal.place, signal.category) for signal in plant.signals]}"
