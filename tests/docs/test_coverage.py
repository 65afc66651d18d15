"""Whatever an operator or a contributor can name is documented: settings, commands, endpoints, plug-ins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import get_commands
from drf_spectacular.generators import SchemaGenerator

from lakehub.kernel.registry import Registry

PROJECT = Path(settings.BASE_DIR)
PACKAGES = ("lakehub", "lakehub_client", "ingestion", "quality", "incidents", "frontend")
READS_A_SETTING = re.compile(
    r"""(?:env\.\w+\(|environ(?:\.get\(|\[)|environ\.setdefault\(|\$\{)\s*["']?(LAKEHUB_[A-Z0-9_]+)"""
)
ANY_SETTING = re.compile(r"LAKEHUB_[A-Z0-9_]+")
A_REGISTRY = re.compile(r"^(\w+): Registry\[.*\] = Registry\(", re.MULTILINE)


def page(name: str) -> str:
    file = PROJECT / "docs" / f"{name}.md"
    return file.read_text() if file.is_file() else ""


def every_page() -> str:
    return "\n".join(file.read_text() for file in sorted((PROJECT / "docs").glob("*.md")))


def source_files() -> list[Path]:
    return sorted(file for package in PACKAGES for file in (PROJECT / package).rglob("*.py"))


def settings_read() -> set[str]:
    files = [*source_files(), PROJECT / "lakehub" / "Procfile", PROJECT / "Makefile"]
    return {name for file in files for name in READS_A_SETTING.findall(file.read_text())}


def own_commands() -> set[str]:
    ours = {config.name for config in apps.get_app_configs() if config.name.split(".")[0] in PACKAGES}
    return {command for command, app in get_commands().items() if app in ours}


def endpoints() -> set[str]:
    return set(SchemaGenerator().get_schema(request=None, public=True)["paths"])


def registries() -> Iterator[Registry[object]]:
    for file in source_files():
        for attribute in A_REGISTRY.findall(file.read_text()):
            module = ".".join(file.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
            yield getattr(import_module(module), attribute)


@pytest.mark.parametrize("name", sorted(settings_read()))
def test_a_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in page("configuration"), f"docs/configuration.md does not say what {name} is."


def test_no_setting_is_documented_that_nothing_reads() -> None:
    named = set(re.findall(r"^\| `(LAKEHUB_[A-Z0-9_]+)`", page("configuration"), re.MULTILINE))
    read_by_tests = {
        name for file in (PROJECT / "tests").rglob("*.py") for name in ANY_SETTING.findall(file.read_text())
    }
    assert named <= settings_read() | read_by_tests


@pytest.mark.parametrize("name", sorted(own_commands()))
def test_a_command_is_documented(name: str) -> None:
    assert f"manage.py {name}" in page("operations"), f"docs/operations.md does not say what `manage.py {name}` does."


def benches() -> list[str]:
    return sorted(file.stem for file in (PROJECT / "bench").glob("*.py") if "\ndef main() -> int:" in file.read_text())


@pytest.mark.parametrize("name", benches())
def test_a_bench_is_documented(name: str) -> None:
    assert f"python -m bench.{name}" in page("benchmarks"), f"docs/benchmarks.md does not show what bench.{name} found."


@pytest.mark.parametrize("path", sorted(endpoints()))
def test_an_endpoint_is_documented(path: str) -> None:
    assert f"`{path}`" in page("api"), f"docs/api.md does not say what {path} is."


@pytest.mark.parametrize(
    ("kind", "name"), sorted((registry.kind, name) for registry in registries() for name in registry)
)
def test_a_plugin_is_documented(kind: str, name: str) -> None:
    pages = every_page()
    assert f"`{name}`" in pages or f"`{name}(" in pages, f"No page of docs/ says what the {kind} `{name}` is."
