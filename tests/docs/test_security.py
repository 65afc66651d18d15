"""The table of rights in docs/security.md is that of the code."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from lakehub.accounts.models import Role
from lakehub.accounts.permissions import ROLES_BY_ACTION

PAGE = (Path(settings.BASE_DIR) / "docs" / "security.md").read_text().partition("\n## Tokens")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
HEAD, *RIGHTS = ROWS


def test_each_role_has_a_column() -> None:
    assert HEAD[2:] == [role.label.lower() for role in Role]


def test_each_right_has_one_line_and_there_is_no_other() -> None:
    assert sorted(row[0].strip("`") for row in RIGHTS if row[0]) == sorted(ROLES_BY_ACTION)


@pytest.mark.parametrize("right", ROLES_BY_ACTION)
def test_a_right_is_of_the_roles_that_the_table_says(right: str) -> None:
    (row,) = (row for row in RIGHTS if row[0] == f"`{right}`")
    assert row[1]
    assert [role for role, cell in zip(Role, row[2:], strict=True) if cell == "yes"] == [
        role for role in Role if role in ROLES_BY_ACTION[right]
    ]
