"""The import contracts hold, and notice what they are there for: violations planted in a copy are all reported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

ROOT_PACKAGES = ("lakehub", "lakehub_client", "ingestion", "quality", "incidents", "frontend", "bench")


@dataclass(frozen=True)
class Violation:
    importer: str
    imported: str
    type_checking: bool = False
    reported_as: str = ""
    """What the report names, where that is not the import itself: a whole package from elsewhere, or a circle of folders."""

    @property
    def report(self) -> str:
        return self.reported_as or f"{self.importer} -> {self.imported}"


VIOLATIONS = {
    "a use case knows its serializer": Violation("quality.generation.rules", "quality.api.rule_serializers"),
    "a lower layer knows a higher one": Violation("quality.state.unit_state", "quality.planning.units"),
    "a model knows a use case": Violation("incidents.models.alerts", "incidents.notifications.outbox"),
    "a plug-in knows another": Violation("quality.checks.freshness", "quality.checks.duplicates"),
    "the gate knows notifications": Violation("incidents.gate.answer", "incidents.notifications.outbox"),
    "a screen knows another's queries": Violation("frontend.screens.dataset.views", "frontend.screens.gate.queries"),
    "the domain knows the machine": Violation("quality.domain.slas", "os"),
    "an import for types only leads upwards": Violation("ingestion.models.lake", "quality.models", type_checking=True),
    "Spark's side knows Django": Violation(
        "ingestion.spark.job", "django.conf", reported_as="ingestion.spark.job -> django"
    ),
    "the kernel knows the catalog": Violation("lakehub.kernel.interval", "lakehub.catalog.models"),
    "folders import each other in a circle": Violation(
        "ingestion.spark.contract.spec", "ingestion.spark.jobs", reported_as="ingestion.spark.contract"
    ),
    "the engines know the database": Violation("quality.engines.scans.scan", "quality.models"),
}


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(program), "--config", "pyproject.toml", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": "300", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)},
    )


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the contracts say of a copy of the product with all violations in it, and a module that no layer holds."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name in ROOT_PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.html", "static"))
    for violation in VIOLATIONS.values():
        _plant(copy, violation)
    (copy / "quality" / "oddments.py").write_text('"""In no layer."""\n')
    checked = _lint(copy)
    assert checked.returncode == 1, checked.stdout
    return checked.stdout


def _plant(copy: Path, violation: Violation) -> None:
    path = copy / (violation.importer.replace(".", "/") + ".py")
    if not path.exists():
        path = path.with_suffix("") / "__init__.py"
    line = f"import {violation.imported}"
    if violation.type_checking:
        line = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {line}"
    path.write_text(f"{path.read_text()}\n{line}\n")


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_planted_violation_is_reported(name: str, reported: str) -> None:
    assert VIOLATIONS[name].report in reported


def test_a_module_that_no_layer_holds_is_reported(reported: str) -> None:
    assert "quality.oddments" in reported


def test_the_product_itself_keeps_its_contracts() -> None:
    checked = _lint(ROOT)
    assert checked.returncode == 0, checked.stdout
