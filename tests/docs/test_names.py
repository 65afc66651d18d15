"""Docstrings, comments and pages name only what the code has: after a rename no text speaks of the old name."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings

PROJECT = Path(settings.BASE_DIR)
CODE = ("lakehub", "lakehub_client", "ingestion", "quality", "incidents", "frontend", "bench", "tests")
PAGES = [*sorted((PROJECT / "docs").rglob("*.md")), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"]
A_COMMENT = re.compile(r"(?:^|\s)#:? (.*)$", re.MULTILINE)
A_WORD = re.compile(r"[A-Za-z_]\w*")
LOOKS_LIKE_CODE = re.compile(
    r"""\b_?[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\b   # CamelCase
    | \b_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b         # A_CONSTANT
    | (?<=\ to\ )[A-Z]{4,}\b | (?<=\ in\ )[A-Z]{4,}\b  # a line in REGISTRY, added to REGISTRY
    """,
    re.VERBOSE,
)
RAISES = re.compile(r"\bRaises ([A-Z]\w+(?:, [A-Z]\w+)*(?:,? (?:or|and) [A-Z]\w+)?)")
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
IN_SNAKE_CASE = re.compile(r"\b[a-z]+_[a-z_]*[a-z]\b(?!\w)")
A_FIELD = re.compile(r"(?:^|[.;:] |\n\s*)`([a-z_]+)`(?:, `[a-z_]+`)*: ")
NAMES_OF_OTHERS = {
    "ASCII",
    "BloomFilterImpl",
    "CloudEvent",
    "CloudEvents",
    "DATE_TRUNC",
    "FORWARDED_ALLOW_IPS",
    "HTTPS",
    "MurmurHash",
    "MySQL",
    "OPS_URL",
    "OpenID",
    "RunEvent",
    "WritableUtils",
    "base__city",
    "base__ref_key",
    "hive_pure_sasl",
    "lakehub_gate_questions_dropped_total",
    "lakehub_gate_questions_refused_total",
    "on_success_callback",
}
"""Of a standard, of another program, of an example; or put together, as the names of metrics are."""


TEXT_FILES = (".html", ".js", ".css", ".yaml", ".env", "")


class Module(NamedTuple):
    path: str
    tree: ast.Module
    names: frozenset[str]
    """Words of its code and of its texts, but not of docstrings and comments."""
    prose: str
    """Its docstrings and comments."""


def read_module(path: Path) -> Module:
    source = path.read_text()
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    # A text that stands alone says something of what is above it, so it is prose like a docstring.
    alone = {node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    names = {name for node in nodes for name in _names_of(node)}
    names.update(word for text in texts if text not in alone for word in A_WORD.findall(str(text.value)))
    prose = [*(str(text.value) for text in alone), *A_COMMENT.findall(source)]
    return Module(path.relative_to(PROJECT).as_posix(), tree, frozenset(names), "\n".join(prose))


def _names_of(node: ast.AST) -> Iterator[str]:
    """What it defines or uses, under whichever attribute the syntax tree has it."""
    for attribute in ("id", "attr", "arg", "name", "asname", "module"):
        name = getattr(node, attribute, None)
        if isinstance(name, str):
            yield from A_WORD.findall(name)


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return [read_module(path) for folder in CODE for path in sorted((PROJECT / folder).rglob("*.py"))]


@pytest.fixture(scope="module")
def known(modules: list[Module]) -> frozenset[str]:
    files = [path for folder in ("deploy", "frontend", "lakehub") for path in (PROJECT / folder).rglob("*")]
    texts = [path.read_text() for path in files if path.is_file() and path.suffix in TEXT_FILES]
    return frozenset(dir(builtins)).union(
        *(module.names for module in modules),
        *(A_WORD.findall(module.path) for module in modules),
        *(A_WORD.findall(text) for text in texts),
    )


def names_in(prose: str, *, page: bool = False) -> set[str]:
    """What reads as a name of the code. On a page only in backticks: products have names in CamelCase as well."""
    quoted = "\n".join(IN_BACKTICKS.findall(prose))
    names = {*LOOKS_LIKE_CODE.findall(quoted if page else prose), *IN_SNAKE_CASE.findall(quoted)}
    return names.union(*(A_WORD.findall(raised) for raised in RAISES.findall(prose))) - {"or", "and"}


def test_docstrings_and_comments_name_what_there_is(modules: list[Module], known: frozenset[str]) -> None:
    unknown = {module.path: names_in(module.prose) - known - NAMES_OF_OTHERS for module in modules}
    assert {path: sorted(names) for path, names in unknown.items() if names} == {}


def test_pages_name_what_there_is(known: frozenset[str]) -> None:
    unknown = {page.name: names_in(page.read_text(), page=True) - known - NAMES_OF_OTHERS for page in PAGES}
    assert {name: sorted(names) for name, names in unknown.items() if names} == {}


def test_the_docstring_of_a_class_explains_its_own_fields(modules: list[Module]) -> None:
    unknown = [
        f"{module.path}: {node.name}.{field}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        for field in A_FIELD.findall(ast.get_docstring(node) or "")
        if field not in {name for child in ast.walk(node) for name in _names_of(child)}
    ]
    assert unknown == []


def test_a_name_that_is_not_there_is_noticed() -> None:
    prose = "A line in LEAVES, see `told_because` and MAX_TONES. Raises CannotSend, Locked or Refused."
    assert names_in(prose) == {"LEAVES", "told_because", "MAX_TONES", "CannotSend", "Locked", "Refused"}
    assert names_in("RabbitMQ, `RabbitQueue`", page=True) == {"RabbitQueue"}
    assert A_FIELD.findall("What is asked. `wants` is for the error; `words`: one of them.") == ["words"]
