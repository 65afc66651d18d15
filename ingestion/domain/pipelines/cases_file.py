"""`tests.yaml`: by name of a test the rows that inputs hold, and the rows that the SELECT has to make of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE
from ingestion.domain.pipelines.problems import Problem
from ingestion.domain.pipelines.yaml_nodes import Fields, Items, Text, Value, parse_yaml
from lakehub.kernel.suggest import did_you_mean

TESTS_FILE = "tests.yaml"
Row = Mapping[str, str | None]
"""By column a value as text; None: null. Columns that are not named are null, in what is expected they are not looked at."""


@dataclass(frozen=True)
class PipelineTest:
    """`given`: by input. Of inputs that are not named there are no rows."""

    name: str
    given: Mapping[str, tuple[Row, ...]]
    expected: tuple[Row, ...]


def read_tests_file(
    text: str, columns: Mapping[str, Collection[str]], made: Collection[str], problems: list[Problem]
) -> tuple[PipelineTest, ...]:
    """`columns`: of the inputs, by what the SELECT calls them; `made`: of the target. What is wrong is added to `problems`."""
    parsed = parse_yaml(text, TESTS_FILE, problems)
    if not isinstance(parsed, Fields):
        problems += (
            []
            if problems
            else [Problem(TESTS_FILE, 1, "It has no tests: write `name of a test:`, with `given` and `expect`.")]
        )
        return ()
    return tuple(_Reader(columns, made, problems).tests(parsed))


@dataclass
class _Reader:
    columns: Mapping[str, Collection[str]]
    made: Collection[str]
    problems: list[Problem]

    def tests(self, parsed: Fields) -> Iterator[PipelineTest]:
        for name, value in parsed.fields.items():
            fields = value.fields if isinstance(value, Fields) else {}
            if {*fields} != {"given", "expect"} or not isinstance(fields["given"], Fields):
                self._refuse(
                    value.line, f"The test `{name}` has `given`, with rows by input, and `expect`, and nothing else."
                )
                continue
            given = {}
            for each, rows in fields["given"].fields.items():
                if each not in self.columns:
                    hint = did_you_mean(each, self.columns)
                    self._refuse(rows.line, f"{PIPELINE_FILE} has no input `{each}`.{hint}")
                    continue
                given[each] = tuple(self._rows(rows, self.columns[each]))
            yield PipelineTest(name, given, tuple(self._rows(fields["expect"], self.made)))

    def _rows(self, value: Value, columns: Collection[str]) -> Iterator[Row]:
        if isinstance(value, Text) and value.is_null:
            return  # `given: {flights: }` is easily written for no rows
        for each in value.items if isinstance(value, Items) else (value,):
            if not isinstance(each, Fields):
                self._refuse(each.line, "A row gives its columns values: `- {day: 2013-01-01, delay: 5}`.")
                continue
            yield dict(self._values(each, columns))

    def _values(self, row: Fields, columns: Collection[str]) -> Iterator[tuple[str, str | None]]:
        for name, value in row.fields.items():
            if name not in columns:
                self._refuse(row.lines[name], f"There is no column `{name}`.{did_you_mean(name, columns)}")
            elif not isinstance(value, Text):
                self._refuse(value.line, f"`{name}` is one plain value.")
            else:
                yield name, None if value.is_null else value.text

    def _refuse(self, line: int, text: str) -> None:
        self.problems.append(Problem(TESTS_FILE, line, text))
