"""What is wrong with one unit is its ERROR, and costs no other unit of its claim a result."""

from __future__ import annotations

from typing import Any

import pytest

from lakehub.kernel.interval import EVERYTHING
from quality.apps import engine_limits_name_engines
from quality.domain.evaluation.evaluate import evaluate
from quality.domain.language import formula
from quality.execution import claims
from quality.execution.store import result_detail
from quality.measuring import cache
from quality.measuring.measure import measure_units
from quality.measuring.requests import build_request
from quality.models import CachedMeasurement, Lane, Result, Unit
from quality.state.baseline_exclusions import confirmed_bad_ranges
from tests import factories
from tests.factories import HOUR, NOW
from tests.web.quality.conftest import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def others(world: World) -> World:
    """A world in which the units of one copy are due, in one claim."""
    world.monitored()
    Result.objects.all().delete()
    units = Unit.objects.filter(test__key="duplicates", copy=world.copy("dc1"), end__lte=NOW)
    units.update(due_at=NOW, lane=Lane.DUE)
    return world


def broken(world: World, expression: str) -> Unit:
    test = factories.test(world.flights, expression=expression, cadence=HOUR)
    return factories.unit(test, world.copy("dc1"), EVERYTHING, due_at=NOW, lane=Lane.DUE)


def outcomes() -> list[str]:
    return sorted(Result.objects.values_list("outcome", flat=True))


def cause(unit: Unit) -> str:
    """Why it is an ERROR; it is run again in its rhythm, and the claim is over."""
    unit.refresh_from_db()
    assert unit.due_at is not None
    assert (unit.latest_outcome, unit.leased_by, unit.due_at > NOW) == ("error", "", True)
    assert outcomes() == ["error", "pass", "pass", "pass"]
    return str(unit.detail["cause"])


def test_a_number_that_is_too_large_for_a_float(others: World) -> None:
    power = "rows(this)"
    for _ in range(7):
        power = f"({power} * {power})"
    unit = broken(others, f"{power} > 0")
    others.run(NOW)
    assert cause(unit).endswith("is too large")


def test_a_test_that_is_not_understood_any_more(others: World) -> None:
    unit = broken(others, "rows(this) > > 0")
    others.run(NOW)
    assert cause(unit).startswith("The test is not understood: ")


def test_one_that_was_never_run_is_not_understood_either(others: World) -> None:
    unit = Unit.objects.filter(test__key="duplicates", copy=others.copy("dc1"), end__lte=NOW)[0]
    test = factories.test(others.flights, expression="rows(this) > > 0", cadence=None)
    fresh = Unit.objects.create(test=test, copy=unit.copy, start=unit.start, end=unit.end, due_at=NOW)
    others.run(NOW)
    assert cause(fresh).startswith("The test is not understood: ")


def test_an_evaluation_that_raises(others: World, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = broken(others, "rows(this) > 1")

    def fails(expression: Any, *given: Any, **more: Any) -> Any:
        if "repeated" not in formula(expression.assertion):
            raise ValueError("a value of the data")
        return evaluate(expression, *given, **more)

    monkeypatch.setattr("quality.execution.evaluate.evaluate", fails)
    others.run(NOW)
    assert cause(unit) == "The evaluation failed (ValueError): see the worker's log"


def test_a_result_that_cannot_be_stored(others: World, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = broken(others, "rows(this) > 1")
    monkeypatch.setattr(
        "quality.execution.store.result_detail",
        lambda evaluation, reused: (
            {"x": {1, 2}}
            if evaluation.formula == "rows(this) > 1" and not evaluation.cause
            else result_detail(evaluation, reused)
        ),
    )
    others.run(NOW)
    assert cause(unit) == "The result cannot be stored (TypeError): see the worker's log"


def test_an_answer_that_cannot_be_kept_is_used_all_the_same(others: World, monkeypatch: pytest.MonkeyPatch) -> None:
    CachedMeasurement.objects.all().delete()
    monkeypatch.setattr(cache, "to_json", lambda answer: {1, 2})
    others.run(NOW)
    assert (outcomes(), CachedMeasurement.objects.count()) == (["pass"] * 3, 0)


def test_an_answer_that_cannot_be_read_is_measured_anew(others: World) -> None:
    CachedMeasurement.objects.update(answer={"roman": "IX"})
    others.run(NOW)
    assert outcomes() == ["pass"] * 3


def test_what_a_test_asks_for_cannot_be_looked_up(others: World, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = broken(others, "rows(this) > 1")

    def fails(expression: Any, *given: Any, now: Any) -> Any:
        if "repeated" not in formula(expression.assertion):
            raise KeyError("x")
        return build_request(expression, *given, now=now)

    monkeypatch.setattr("quality.measuring.requests.build_request", fails)
    others.run(NOW)
    assert cause(unit) == "rows(this): it cannot be looked up (KeyError): see the worker's log"


def test_a_claim_that_fails_as_a_whole_is_free_again_at_once(
    others: World, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.LAKEHUB_ENGINE_LIMITS = {"duckdb": 1}

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("quality.execution.worker.measure_units", fails)
    with pytest.raises(RuntimeError):
        others.run(NOW)
    assert (Unit.objects.exclude(leased_by="").count(), claims.full_resources(), outcomes()) == (0, [], [])


def test_a_claim_that_fails_keeps_no_other_copy_waiting(others: World, monkeypatch: pytest.MonkeyPatch) -> None:
    Unit.objects.filter(test__key="duplicates", copy=others.copy("dc2"), end__lte=NOW).update(
        due_at=NOW, lane=Lane.LATE
    )
    first = others.copy("dc1")

    def fails(copy: Any, *given: Any, **more: Any) -> Any:
        if copy == first:
            raise RuntimeError("the disk is full")
        return measure_units(copy, *given, **more)

    monkeypatch.setattr("quality.execution.worker.measure_units", fails)
    with pytest.raises(RuntimeError):
        others.run(NOW)
    assert (outcomes(), Unit.objects.exclude(leased_by="").count()) == (["pass"] * 3, 0)


def test_a_test_that_is_not_understood_takes_no_baseline_from_the_others(others: World) -> None:
    broken(others, "rows(this) > > 0")
    assert confirmed_bad_ranges(others.copy("dc1")) == ()


def test_a_limit_of_an_engine_that_does_not_exist_is_an_error_of_the_settings(settings: Any) -> None:
    settings.LAKEHUB_ENGINE_LIMITS = {"sprak": 1, "duckdb": 1}
    (problem,) = engine_limits_name_engines(None)
    assert "'sprak'" in problem.msg
    assert "Did you mean `spark`" in problem.msg
