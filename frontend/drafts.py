"""A test as it is being written: the fields as typed, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.http import QueryDict

from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.models import Test
from quality.serializers import NewTestSerializer


@dataclass(frozen=True)
class Draft:
    title: str = ""
    key: str = ""
    expression: str = ""
    gating: bool = True
    errors: Mapping[str, str] = field(default_factory=dict)


def of_test(test: Test) -> Draft:
    return Draft(test.title, test.key, test.version.expression if test.version else "", test.gating)


def typed(said: QueryDict, *, key: str = "") -> Draft:
    """`key`: of the test that is edited. A new one without a key is named after its title."""
    title = said.get("title", "").strip()
    key = key or said.get("key", "").strip() or key_of(title)
    return Draft(title, key, said.get("expression", "").strip(), "gating" in said)


def key_of(title: str) -> str:
    """`Nulls in tailnum` -> nulls-in-tailnum"""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-0123456789")[:60]


def refuse_taken(dataset: Dataset, key: str) -> None:
    """Raises Refused where a new test would take the place of another one."""
    if dataset.tests.filter(key=key, retired_at=None).exists():
        raise Refused.because(
            {"key": f"{dataset.name} has a test `{key}` already: edit that one, or choose another key."}
        )


def valid(draft: Draft) -> dict[str, object]:
    """The arguments of the use case. Raises Refused with what is wrong, by field."""
    asked = NewTestSerializer(
        data={"key": draft.key, "title": draft.title, "expression": draft.expression, "gating": draft.gating}
    )
    if not asked.is_valid():
        raise Refused.because({name: _said(name, problems) for name, problems in asked.errors.items()})
    return dict(asked.validated_data)


def _said(name: str, problems: list[str]) -> str:
    if name == "key":
        return "Small letters, digits and . _ @ - only, beginning with a letter."
    return " ".join(str(problem) for problem in problems)
