"""What can be written, generated or run is documented; the tables say what the code says."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from quality.checks import CHECKS
from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.macros import MACROS
from quality.domain.language.operators import OPERATORS
from quality.domain.language.parameters import PARAMETERS
from quality.domain.language.window_functions import WINDOW_FUNCTIONS
from quality.domain.slas import TIERS, Slas, format_sla
from quality.engines import ENGINES
from quality.engines.sql.measure_sql import AGGREGATES

DOCS = Path(__file__).parents[2] / "docs"
EXPRESSIONS, CHECKS_PAGE, ENGINES_PAGE = (
    (DOCS / f"{name}.md").read_text() for name in ("expressions", "checks", "engines")
)


@pytest.mark.parametrize("name", [*FUNCTIONS, *WINDOW_FUNCTIONS, *MACROS])
def test_each_function_is_documented(name: str) -> None:
    assert f"`{name}(" in EXPRESSIONS


@pytest.mark.parametrize("name", OPERATORS)
def test_each_operator_is_documented(name: str) -> None:
    assert name in EXPRESSIONS.split("Flattened they are")[1].split("##")[0].replace("`", " ").replace(".", " ").split()


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_parameter_is_documented(name: str) -> None:
    assert f"| `{name}` |" in EXPRESSIONS


@pytest.mark.parametrize("name", list(CHECKS))
def test_each_check_is_documented(name: str) -> None:
    assert f"| `{name}` |" in CHECKS_PAGE


@pytest.mark.parametrize("name", [field.name for field in fields(Slas)])
def test_the_table_of_tiers_is_the_one_in_the_docs(name: str) -> None:
    row = next(
        line
        for line in CHECKS_PAGE.splitlines()
        if line.startswith("| ") and f"`{name}`" in line and line.count("|") == 9
    )
    for tier, cell in zip(TIERS.values(), row.split("|")[3:9], strict=True):
        assert format_sla(getattr(tier, name)) in [part.strip() for part in cell.split(",")]


@pytest.mark.parametrize("name", [*ENGINES, *AGGREGATES, "unmatched", "committed"])
def test_each_engine_and_measure_is_documented(name: str) -> None:
    assert f"`{name}`" in ENGINES_PAGE
