"""The hooks of pre-commit run what `make check` runs, with the project's own tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

PROJECT = Path(settings.BASE_DIR)
CONFIG = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text())
HOOKS: list[dict[str, Any]] = [hook for repository in CONFIG["repos"] for hook in repository["hooks"]]


def recipe_of_check() -> list[str]:
    (recipe,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    return [line.strip().replace("$(VENV)", ".venv") for line in recipe.splitlines()]


def test_nothing_is_fetched() -> None:
    assert [repository["repo"] for repository in CONFIG["repos"]] == ["local"]
    assert {hook["language"] for hook in HOOKS} == {"system"}


@pytest.mark.parametrize("entry", [hook["entry"] for hook in HOOKS])
def test_a_hook_is_a_line_of_make_check(entry: str) -> None:
    assert entry in recipe_of_check()


def test_contributing_explains_every_tool_of_make_check() -> None:
    text = " ".join((PROJECT / "CONTRIBUTING.md").read_text().split())
    for tool in ("ruff format --check", "ruff check", "mypy", "lint-imports", "mkdocs build --strict"):
        assert f"`{tool}`" in text
        assert any(tool in line for line in recipe_of_check())
