"""The rows that a pipeline is tested with, as its `tests.yaml` has them."""

from __future__ import annotations

import pytest

from ingestion.domain.pipelines.cases_file import PipelineTest, read_tests_file
from ingestion.domain.pipelines.problems import Problem

COLUMNS = {"flights": ("day", "carrier", "delay"), "airlines": ("carrier", "name")}
MADE = ("day", "airline", "delay")
TEXT = """late:
  given:
    flights:
      - {day: 2013-01-01, carrier: "", delay: null}
      - {day: '2013-01-02', carrier: UA, delay: 1.50}
    airlines:
  expect:
    - {day: 2013-01-01, airline: ~}
nothing of nothing:
  given: {}
  expect: []
"""


def read(text: str) -> tuple[tuple[PipelineTest, ...], list[str]]:
    problems: list[Problem] = []
    tests = read_tests_file(text, COLUMNS, MADE, problems)
    return tests, [str(problem) for problem in problems]


def test_rows_are_read_as_texts_and_nulls() -> None:
    (late, nothing), problems = read(TEXT)
    assert problems == []
    assert late.given["flights"] == ({"day": "2013-01-01", "carrier": "", "delay": None}, {"day": "2013-01-02", "carrier": "UA", "delay": "1.50"})  # fmt: skip
    assert (late.given["airlines"], late.expected) == ((), ({"day": "2013-01-01", "airline": None},))
    assert (nothing.given, nothing.expected) == ({}, ())


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    airlines:\n", "    airline:\n", "tests.yaml:6: pipeline.yaml has no input `airline`. Did you mean `airlines`?"),
        ("delay: 1.50", "dely: 1.50", "tests.yaml:5: There is no column `dely`. Did you mean `delay`?"),
        ("airline: ~", "airlines: ~", "tests.yaml:8: There is no column `airlines`. Did you mean `airline`?"),
        ("  expect: []", "  expects: []", "tests.yaml:10: The test `nothing of nothing` has `given`"),
        ("given: {}", "given: []", "tests.yaml:10: The test `nothing of nothing` has `given`"),
        ("delay: 1.50", "delay: [1]", "tests.yaml:5: `delay` is one plain value."),
        ("  expect: []", "  expect: [1]", "tests.yaml:11: A row gives its columns values"),
        (TEXT, "", "tests.yaml:1: It has no tests"),
        (TEXT, "a: 1", "tests.yaml:1: The test `a` has `given`"),
        (TEXT, "a: [", "tests.yaml:1: The YAML cannot be read"),
    ],
)  # fmt: skip
def test_what_is_no_test_is_told_with_its_line(old: str, new: str, problem: str) -> None:
    assert TEXT.count(old) == 1
    (first, *_) = read(TEXT.replace(old, new))[1]
    assert first.startswith(problem)
