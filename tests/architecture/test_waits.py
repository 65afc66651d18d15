"""Tests wait as long as the machine is slow: none has a deadline of its own in seconds."""

from __future__ import annotations

import ast

from tests.architecture.imports import ROOT

WAITS = {
    "run",
    "communicate",
    "wait",
    "join",
    "urlopen",
    "result",
    "check_output",
    "check_call",
    "set_options",
    "set_default_timeout",
}


def own_numbers(source: str) -> list[int]:
    """The lines of calls that wait for a second or longer, by a number or a constant of the module."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    pauses = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, ast.Constant) and type(node.value.value) in (int, float) and node.value.value < 1
    }
    return [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in WAITS
        for argument in [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "timeout")]
        if (isinstance(argument, ast.Constant) and type(argument.value) in (int, float) and argument.value >= 1)
        or (
            isinstance(argument, ast.Name)
            and argument.id.isupper()
            and argument.id.endswith("_S")
            and argument.id not in pauses
        )
    ]


def test_that_check_sees_such_numbers() -> None:
    lines = [
        "a.wait(5)",
        "b.communicate(timeout=WITHIN_S)",
        "c.wait(scaled(5))",
        "d.communicate(timeout=scaled(3))",
        "EVERY_S = 0.2",
        "e.wait(EVERY_S)",
        "LONG_S = 2",
        "f.wait(LONG_S)",
    ]
    assert own_numbers("\n".join(lines)) == [1, 2, 8]


def test_no_test_waits_for_a_process_or_thread_by_a_number_of_its_own() -> None:
    """A deadline is `scaled(...)`, or that of `wait_until`. Less than a second is a pause between two looks."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "polling.py"]
    assert {f"{path.relative_to(ROOT)}:{line}" for path in files for line in own_numbers(path.read_text())} == set()
