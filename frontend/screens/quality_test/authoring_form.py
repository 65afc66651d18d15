"""A test as it is being written: the fields as typed, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.http import QueryDict

from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.api.serializers import QualityTestInputSerializer
from quality.models import QualityTest


@dataclass(frozen=True)
class QualityTestForm:
    title: str = ""
    key: str = ""
    expression: str = ""
    gating: bool = True
    errors: Mapping[str, str] = field(default_factory=dict)


def form_of_test(test: QualityTest) -> QualityTestForm:
    return QualityTestForm(test.title, test.key, test.version.expression if test.version else "", test.gating)


def form_from(submitted: QueryDict, *, key: str = "") -> QualityTestForm:
    """`key`: of the test that is edited. A new one without a key is named after its title."""
    title = submitted.get("title", "").strip()
    key = key or submitted.get("key", "").strip() or key_from_title(title)
    return QualityTestForm(title, key, submitted.get("expression", "").strip(), "gating" in submitted)


def key_from_title(title: str) -> str:
    """`Nulls in tailnum` -> nulls-in-tailnum"""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-0123456789")[:60]


def require_free_key(dataset: Dataset, key: str) -> None:
    """Raises Refused where a new test would take the place of another one."""
    if dataset.tests.filter(key=key, retired_at=None).exists():
        raise Refused.for_fields(
            {"key": f"{dataset.name} has a test `{key}` already: edit that one, or choose another key."}
        )


def validated_arguments(draft: QualityTestForm) -> dict[str, object]:
    """The arguments of the use case. Raises Refused with what is wrong, by field."""
    serializer = QualityTestInputSerializer(
        data={"key": draft.key, "title": draft.title, "expression": draft.expression, "gating": draft.gating}
    )
    if not serializer.is_valid():
        raise Refused.for_fields({name: _error_text(name, problems) for name, problems in serializer.errors.items()})
    return dict(serializer.validated_data)


def _error_text(name: str, problems: list[str]) -> str:
    if name == "key":
        return "Small letters, digits and . _ @ - only, beginning with a letter."
    return " ".join(str(problem) for problem in problems)
