from __future__ import annotations

import io
from typing import Any

import pytest

from bench import checks
from bench.checks import FLOOR, LAKEHUB, Contender, ContenderRun, Disagreement, require_agreement
from bench.contenders.lakehub import COLUMNS, expression
from bench.harness import Report, Timing
from bench.suite import KEY, Check, suite
from quality.domain.language import Scope, understand

CHECKS = suite(copies=10)
SCOPE = Scope(tables={"this": frozenset(COLUMNS)}, primary_key=KEY)


def ran(seconds: float = 1.0, **values: list[Any]) -> ContenderRun:
    right = {check.name: [True, 1.0] for check in CHECKS}
    return ContenderRun(
        "1", seconds, Timing((seconds,)), 1, {**right, **{name.replace("_", " "): it for name, it in values.items()}}, 1
    )


def test_there_are_twenty_checks_and_some_fail() -> None:
    assert len({check.name for check in CHECKS}) == 20


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_each_is_a_test_that_a_person_can_write(check: Check) -> None:
    assert understand(expression(check, "spark"), SCOPE).parameters.engine == "spark"


def test_contenders_that_find_the_same_agree() -> None:
    require_agreement({FLOOR: ran(), LAKEHUB: ran(carriers=[True, None])}, copies=10)


@pytest.mark.parametrize("value", [[False, 1.0], [True, 1.0001]])
def test_another_outcome_or_value_ends_the_bench(value: list[Any]) -> None:
    with pytest.raises(Disagreement, match=r"`mean delay`: Lakehub on duckdb found"):
        require_agreement({FLOOR: ran(), LAKEHUB: ran(mean_delay=value)}, copies=10)


def test_targets_compare_each_tool_on_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Contender("Soda", "soda", "duckdb", "duckdb")
    report = Report("checks", out=io.StringIO())
    checks.report_targets(report, {FLOOR: 1.0, LAKEHUB: 1.5, peer: 1.2})
    assert {target.name: (target.got, target.met) for target in report.targets} == {
        "Lakehub over the hand-written query": ("1.5x", True),
        "Lakehub over Soda on duckdb": ("1.25x", False),
    }
