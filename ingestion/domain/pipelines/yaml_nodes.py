"""A YAML text as plain values that know their lines. Anchors are refused: a few of them can stand for more values than memory holds."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from ingestion.domain.pipelines.problems import Problem

MAX_LENGTH = 100_000
"""Characters."""
_MAX_DEPTH = 8


@dataclass(frozen=True)
class Text:
    line: int
    text: str
    is_null: bool = False


@dataclass(frozen=True)
class Items:
    line: int
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Fields:
    """By name; of a name that is there twice the last."""

    line: int
    fields: dict[str, Value]
    lines: dict[str, int]
    """Of the names."""


Value = Text | Items | Fields


def parse_yaml(text: str, file: str, problems: list[Problem]) -> Value | None:
    """None: it is no YAML, or empty. What is wrong is added to `problems`."""
    if len(text) > MAX_LENGTH:
        problems.append(Problem(file, 0, f"It has {len(text):,} characters, {MAX_LENGTH:,} at most."))
        return None
    try:
        if (problem := _unreadable(text, file)) is not None:
            problems.append(problem)
            return None
        node = yaml.compose(text, yaml.SafeLoader)
        return None if node is None else _value(node, file, problems)
    except yaml.MarkedYAMLError as problem:
        line = 0 if problem.problem_mark is None else problem.problem_mark.line + 1
        problems.append(Problem(file, line, f"The YAML cannot be read: {problem.problem}."))
    except (yaml.YAMLError, RecursionError) as problem:
        problems.append(Problem(file, 0, f"The YAML cannot be read: {str(problem).splitlines()[0]}."))
    return None


def _unreadable(text: str, file: str) -> Problem | None:
    """An anchor or alias, or what is nested too deep: the time to read that grows with the square of its depth."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        line = 0 if event.start_mark is None else event.start_mark.line + 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if getattr(event, "anchor", None) is not None:
            return Problem(file, line, "Anchors and aliases are not taken: write the value out.")
        if depth > _MAX_DEPTH:
            return Problem(file, line, f"It is nested more than {_MAX_DEPTH} deep.")
    return None


def _value(node: yaml.Node, file: str, problems: list[Problem]) -> Value:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        is_null = node.tag.endswith(":null")
        return Text(line, "" if is_null else str(node.value), is_null)
    if isinstance(node, yaml.SequenceNode):
        return Items(line, tuple(_value(each, file, problems) for each in node.value))
    assert isinstance(node, yaml.MappingNode)
    fields, lines = dict[str, Value](), dict[str, int]()
    for key, value in node.value:
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
        if name in fields:
            problems.append(Problem(file, key.start_mark.line + 1, f"`{name}` is given twice."))
        fields[name] = _value(value, file, problems)
        lines[name] = key.start_mark.line + 1
    return Fields(line, fields, lines)
