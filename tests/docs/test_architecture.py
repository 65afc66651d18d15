"""The pages about how Lakehub works name only what exists, and the drawings are those of the code."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings

from tests.architecture.draw import PAGE, drawn
from tests.architecture.imports import PACKAGES

PROJECT = Path(settings.BASE_DIR)
DOCS = PROJECT / "docs"
DECISIONS = sorted(page for page in (DOCS / "decisions").glob("*.md") if page.name != "index.md")
PAGES = [*sorted(DOCS.glob("*.md")), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *DECISIONS]
A_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
IN_BACKTICKS = re.compile(r"`([^`\s]+)`")
A_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?")
A_DOTTED_NAME = re.compile(r"(?:lakehub|lakehub_client|ingestion|quality|incidents|frontend|bench|tests)(?:\.\w+)+")
IN_QUOTES = re.compile(r'"([\w.]+)"')
MESSAGE_TYPES = {"lakehub.digest.digest", "lakehub.test.test"}
"""Put together from what a message is about."""
PLACEHOLDER = "NAME"
MADE_ELSEWHERE = {".cache/bench", ".venv/bin", ".venv/bin/mkdocs", "deploy/containers/.env"}
MODELS = {f"{model._meta.app_label}.{model.__name__}" for model in apps.get_models()}


def names_in_backticks(page: Path) -> set[str]:
    return set(IN_BACKTICKS.findall(A_FENCE.sub("", page.read_text())))


def missing_paths(names: set[str]) -> list[str]:
    """Of those that begin in the root of the project."""
    paths = {name for name in names if A_PATH.fullmatch(name) and (PROJECT / name.split("/")[0]).exists()}
    return sorted(path for path in paths - MADE_ELSEWHERE if PLACEHOLDER not in path and not (PROJECT / path).exists())


def missing_modules(names: set[str]) -> list[str]:
    dotted = {name for name in names if A_DOTTED_NAME.fullmatch(name) and not (PROJECT / name).exists()}
    return sorted(name for name in dotted - product_texts() - MODELS - MESSAGE_TYPES if not is_importable(name))


@lru_cache(maxsize=1)
def product_texts() -> frozenset[str]:
    """What stands in quotes in the product, such as the name of a failpoint."""
    files = [path for package in PACKAGES for path in (PROJECT / package).rglob("*.py")]
    return frozenset(text for file in files for text in IN_QUOTES.findall(file.read_text()))


def is_importable(name: str) -> bool:
    """A module, or something that a module holds."""
    module, _, attribute = name.rpartition(".")
    try:
        holder = import_module(module)
    except ModuleNotFoundError:
        return False
    return hasattr(holder, attribute) or (hasattr(holder, "__path__") and find_spec(name) is not None)


def test_the_drawings_are_those_of_the_code() -> None:
    page = PAGE.read_text()
    assert drawn(page) == page, "Run `make architecture`."


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_in_backticks_exists(page: Path) -> None:
    assert missing_paths(names_in_backticks(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_dotted_name_in_backticks_exists(page: Path) -> None:
    assert missing_modules(names_in_backticks(page)) == []


def test_a_path_and_a_module_that_are_not_there_are_noticed() -> None:
    assert missing_paths({"quality/exchanges", "quality/checks/", "/help/glossary"}) == ["quality/exchanges"]
    assert missing_modules({"quality.tasks.run_nothing", "quality.tasks.run_due", "quality.checks"}) == [
        "quality.tasks.run_nothing"
    ]


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.name)
def test_a_decision_is_short_and_has_its_parts(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert len(lines) < 40
    assert lines[0].startswith(f"# {page.name[:4]}. ")
    assert re.fullmatch(r"Date: \d{4}-\d\d-\d\d", lines[2])
    assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences"]


def test_the_index_lists_every_decision_in_order() -> None:
    index = (DOCS / "decisions" / "index.md").read_text()
    assert re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index) == [page.name for page in DECISIONS]
    assert [page.name[:4] for page in DECISIONS] == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]
