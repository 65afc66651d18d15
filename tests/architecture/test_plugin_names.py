"""The product asks a plug-in's data what to do, never its name: a new plug-in needs no edit elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.imports import PACKAGES, ROOT

NAME_FIELDS = ("channel", "check", "check_name", "engine", "plugin")
"""Attributes, variables and lookups that hold the name of a plug-in."""
REGISTRIES = ("CHANNELS", "CHECKS", "ENGINES", "SOURCES", "STORAGES")
"""Whether a name is in them is what a user is told."""
LOOKUP = re.compile(r"__plugin(__|$)|(^|__)check_name(__|$)")
"""A query's condition. Not `check="finding"`: so a plug-in says its own name."""
IN_TEMPLATE = re.compile(rf"\b({'|'.join(NAME_FIELDS)})\s*(?:==|!=|\bin\b|\bnot\s+in\b)\s*[\"']")


def _comparisons(tree: ast.AST) -> Iterator[ast.AST]:
    """Where a name of a plug-in is compared with a text, or looked up by one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_holds_a_name(side) for side in sides) and any(_is_text(side) for side in sides):
                yield node
        elif isinstance(node, ast.Match) and _holds_a_name(node.subject):
            yield node.subject
        elif isinstance(node, ast.keyword) and LOOKUP.search(node.arg or "") and _is_text(node.value):
            yield node.value


def _holds_a_name(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", None)) in NAME_FIELDS


def _is_text(node: ast.AST) -> bool:
    """A text, several, or a constant: what is called in capitals."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_text(element) for element in node.elts)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(node.value)
    name = getattr(node, "attr", getattr(node, "id", ""))
    return name.strip("_").isupper() and name not in REGISTRIES


def _files(pattern: str) -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob(pattern)):
            yield path.relative_to(ROOT).as_posix(), path


def test_no_module_compares_the_name_of_a_plug_in_with_a_text() -> None:
    assert [
        f"{name}:{node.lineno}"  # type: ignore[attr-defined]  # expressions have one
        for name, path in _files("*.py")
        for node in _comparisons(ast.parse(path.read_text()))
    ] == []


def test_no_template_compares_the_name_of_a_plug_in_with_a_text() -> None:
    assert [name for name, path in _files("*.html") if IN_TEMPLATE.search(path.read_text())] == []


@pytest.mark.parametrize(
    "planted",
    [
        'test.check_name == "finding"',
        '"finding" != unit.test.check_name',
        "test.check == FINDING_CHECK",
        'check in ("finding", "custom")',
        'tests.exclude(check_name="finding")',
        'units.filter(test__check_name__in=["finding"])',
        'match test.check_name:\n    case "finding":\n        pass',
    ],
)
def test_a_planted_comparison_is_noticed(planted: str) -> None:
    assert list(_comparisons(ast.parse(planted)))


@pytest.mark.parametrize("allowed", ["rule.check == check", 'Definition(check="finding")', 'test.check_name == ""'])
def test_what_names_no_plug_in_is_allowed(allowed: str) -> None:
    assert not list(_comparisons(ast.parse(allowed)))
