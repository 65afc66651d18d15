"""Locals, and the variables of templates, say what they hold: none is called by a word that fits everything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.imports import PACKAGES, ROOT

EMPTY_NAMES = {"one", "found", "said", "told"}
_TEMPLATE_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}")
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")
_TEMPLATE_NAME = re.compile(rf"(?<![\w.|-])({'|'.join(sorted(EMPTY_NAMES))})\b")
FOLDERS = (*PACKAGES, "lakehub_client", "bench", "tests")


def empty_names(source: str) -> Iterator[str]:
    """Variables, parameters and the names of loops; not fields, nor keywords of calls."""
    tree = ast.parse(source)
    fields = {id(field) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for field in _fields(node)}
    for node in ast.walk(tree):
        name = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            name = node.name
        if name in EMPTY_NAMES:
            yield f"{name} in line {node.lineno}"  # type: ignore[attr-defined]  # what binds a name has a line


def _fields(node: ast.ClassDef) -> Iterator[ast.expr]:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield from statement.targets
        elif isinstance(statement, ast.AnnAssign):
            yield statement.target


def empty_template_names(template: str) -> Iterator[str]:
    """What `for`, `with` and `include` bind, and what a view passes, where it is used; not attributes, filters nor text."""
    for line, text in enumerate(template.splitlines(), 1):
        for tag in _TEMPLATE_TAG.findall(text):
            yield from (f"{name} in line {line}" for name in _TEMPLATE_NAME.findall(_STRING.sub("", tag)))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_local_is_called_one_found_said_or_told(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    named = {path.relative_to(ROOT).as_posix(): list(empty_names(path.read_text())) for path in files}
    assert {path: names for path, names in named.items() if names} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_variable_of_a_template_is_called_one_found_said_or_told(package: str) -> None:
    templates = sorted((ROOT / package).rglob("*.html"))
    named = {path.relative_to(ROOT).as_posix(): list(empty_template_names(path.read_text())) for path in templates}
    assert {path: names for path, names in named.items() if names} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "one = 1",
        "for one in rows: pass",
        "[one for one in rows]",
        "def wait(told): pass",
        "lambda said: said",
        "if (found := rows): pass",
        "try: pass\nexcept E as said: pass",
        "match row:\n    case [one, *_]: pass",
    ],
)
def test_a_planted_name_is_noticed(planted: str) -> None:
    assert list(empty_names(planted))


def test_fields_and_keywords_are_not_locals() -> None:
    assert not list(empty_names("act(said=row.said)\nrow.found = rows['one']\nclass Row:\n    told: int"))


@pytest.mark.parametrize(
    "planted",
    [
        "{% for one in rows %}",
        "{% for row, said in rows %}",
        "{% with told=row.score %}",
        '{% include "row.html" with one=row %}',
        "{{ found.all|length }}",
        '{% status "pass" word=said %}',
        "{{ row|default:one.name }}",
    ],
)
def test_a_planted_name_in_a_template_is_noticed(planted: str) -> None:
    assert list(empty_template_names(planted))


def test_attributes_and_text_of_a_template_are_not_variables() -> None:
    text = """{% for row in said_rows %}{{ row.told }}{% include "one.html" with hint="one found" %}{% endfor %}{# one #} told"""
    assert not list(empty_template_names(text))
