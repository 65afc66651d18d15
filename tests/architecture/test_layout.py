"""The folders show the architecture: few modules side by side, few imports between folders, no circle."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.imports import PACKAGES, ROOT, circles, module_edges, root_edges, root_nodes

MAX_FLAT_MODULES = 12
NOT_COUNTED = {"__init__.py", "apps.py", "urls.py"}
PLUGIN_FOLDERS = {
    "ingestion/management/commands",  # Django looks for them side by side
    "quality/checks",
    "quality/domain/language/functions",
}
"""Every file in them is one plug-in."""


def _folders() -> list[Path]:
    folders = {path.parent for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    return sorted(folder for folder in folders if folder.name not in ("migrations", "__pycache__"))


def test_at_most_twelve_modules_lie_flat_in_a_folder() -> None:
    crowded = {}
    for folder in _folders():
        modules = [path.name for path in folder.glob("*.py") if path.name not in NOT_COUNTED]
        name = folder.relative_to(ROOT).as_posix()
        if len(modules) > MAX_FLAT_MODULES and name not in PLUGIN_FOLDERS:
            crowded[name] = len(modules)
    assert crowded == {}


def test_no_module_imports_itself_through_others() -> None:
    assert circles((importer, imported) for importer, many in module_edges().items() for imported in many) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_imports_itself_through_others(package: str) -> None:
    folders = {
        ".".join(name.split(".")[:depth])
        for name in module_edges()
        for depth in range(1, name.count(".") + 1)
        if name.split(".")[0] == package
    }
    circles_by_folder = {folder: circles(root_edges(folder)) for folder in sorted(folders)}
    assert {folder: groups for folder, groups in circles_by_folder.items() if groups} == {}


@pytest.mark.parametrize(("package", "most_nodes", "most_edges"), [("quality", 20, 70), ("incidents", 16, 50)])
def test_the_root_of_an_app_is_a_small_graph(package: str, most_nodes: int, most_edges: int) -> None:
    assert len(root_nodes(package)) <= most_nodes, sorted(root_nodes(package))
    assert len(root_edges(package)) <= most_edges, sorted(root_edges(package))


def test_a_heading_stands_above_something() -> None:
    """A comment of a line, alone between empty lines, names the part of the file below it."""
    empty = re.compile(r"\n\n# [^\n]+\n\s*(?:\Z|\n# [^\n]+\n\n)")
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert [path.relative_to(ROOT).as_posix() for path in files if empty.search(path.read_text())] == []


def test_nothing_of_the_product_looks_like_a_test_to_a_test_runner() -> None:
    suspicious = []
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if path.name.startswith("test"):
                suspicious.append(name)
            nodes = ast.parse(path.read_text()).body
            suspicious += [f"{name}: {ast.unparse(node)[:80]}" for node in nodes if _looks_like_a_test(node)]
    assert suspicious == []


def _looks_like_a_test(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test")
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
