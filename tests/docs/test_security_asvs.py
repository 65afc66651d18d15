"""The page about the OWASP ASVS: each requirement once, what it counts, and tests that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings

PROJECT = Path(settings.BASE_DIR)
PAGE = (PROJECT / "docs" / "security-asvs.md").read_text()
STATES = ("met", "met, not tested", "not met", "does not apply")
REQUIREMENTS = (27, 11, 19, 10, 9, 35, 18, 7, 7, 29, 14, 9, 13, 9, 13, 16, 7)
"""Of levels 1 and 2 in each chapter of ASVS 5.0."""
ROW = re.compile(r"^\| ((?:\d+\.\d+\.\d+(?:, )?)+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
COUNTS = re.compile(r"^\| \[?(V\d+|All)[^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
DEFINITION = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)


def states() -> list[tuple[str, str]]:
    """(requirement, state) of every row."""
    return [(number, state) for numbers, state, _ in ROW.findall(PAGE) for number in numbers.split(", ")]


def test_each_requirement_is_there_once() -> None:
    assert [number for number, times in Counter(number for number, _ in states()).items() if times > 1] == []
    chapters = Counter(int(number.split(".")[0]) for number, _ in states())
    assert tuple(chapters[chapter] for chapter in range(1, 18)) == REQUIREMENTS
    assert {state for _, state in states()} <= set(STATES)


def test_the_counts_are_those_of_the_rows() -> None:
    counted = Counter((f"V{number.split('.')[0]}", state) for number, state in states())
    counted.update(("All", state) for _, state in states())
    shown = {name: tuple(map(int, numbers)) for name, *numbers in COUNTS.findall(PAGE)}
    assert shown == {name: tuple(counted[name, state] for state in STATES) for name in shown}
    assert len(shown) == len(REQUIREMENTS) + 1


def test_what_is_met_names_a_test() -> None:
    assert [numbers for numbers, state, text in ROW.findall(PAGE) if state == "met" and "test" not in text] == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_a_test_that_is_named_exists(name: str) -> None:
    files = (PROJECT / "tests").rglob("test_*.py")
    assert [file for file in files if name in DEFINITION.findall(file.read_text())] != []
