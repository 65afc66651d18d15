"""Rules and metrics as they are typed, as the use cases take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.text import capfirst

from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.domain.generation.rules import GROUP_PARAMETERS, RULE_KINDS

NUMERIC_TYPES = ("integer", "float", "decimal")
LIST_PARAMETERS = ("values",)
HINTS = {
    "share": "how much of the rows may break it, such as 1%",
    "low": "the least that is good",
    "high": "the most that is good",
    "pattern": "a regular expression for the whole value",
    "values": "one a line",
    "dataset": "that has the known values",
    "other_column": "its column; empty: of the same name",
    "before": "compared with so long ago, such as 7d",
    "distance": "how far the two may lie apart, 0% to 100%",
    "window": "how far the past goes that it is compared with",
    "score": "how many spreads from the usual are too many",
    "least": "rows of a group that is judged; empty: 30",
    "most": "groups, the largest; empty: 100",
}
RULE_KIND_LABELS = {name: capfirst(kind.title.format(column="a column")) for name, kind in RULE_KINDS.items()}
"""The kinds to choose from."""


@dataclass(frozen=True)
class FormField:
    name: str
    label: str
    hint: str
    value: str
    error: str
    many: bool


@dataclass(frozen=True)
class RuleForm:
    kind: str
    column: str = ""
    by: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_column(self) -> bool:
        return RULE_KINDS[self.kind].needs_column

    @property
    def fields(self) -> list[FormField]:
        """The parameters of its kind, filled with what was typed or what is usual."""
        return [self._field(name, usual.default) for name, usual in RULE_KINDS[self.kind].parameters.items()]

    @property
    def grouping(self) -> list[FormField]:
        return [self._field(name, ...) for name in GROUP_PARAMETERS]

    def _field(self, name: str, usual: Any) -> FormField:
        value = self.given.get(name, "" if usual in (None, ...) else str(usual))
        label = name.replace("_", " ").capitalize()
        return FormField(name, label, HINTS.get(name, ""), value, self.errors.get(name, ""), name in LIST_PARAMETERS)


def rule_form_from(submitted: QueryDict) -> RuleForm | None:
    """None: no kind is chosen yet."""
    kind = submitted.get("kind", "")
    if kind not in RULE_KINDS:
        return None
    names = [*RULE_KINDS[kind].parameters, *GROUP_PARAMETERS]
    given = {name: submitted.get(name, "").strip() for name in names if name in submitted}
    return RuleForm(kind, submitted.get("column", "").strip(), submitted.get("by", "").strip(), given)


def rule_arguments(draft: RuleForm, dataset: Dataset) -> dict[str, Any]:
    """The arguments of the use case: what is left empty is as usual."""
    types = {column["name"]: column["type"] for column in dataset.columns}
    numeric = types.get(draft.column) in NUMERIC_TYPES
    given = {
        name: _parse_values(text, numeric) if name in LIST_PARAMETERS else text
        for name, text in draft.given.items()
        if text
    }
    if not draft.by:
        given = {name: value for name, value in given.items() if name not in GROUP_PARAMETERS}
    return {"kind": draft.kind, "column": draft.column if draft.of_column else "", "by": draft.by, "parameters": given}


def _parse_values(text: str, numeric: bool) -> list[Any]:
    values = [line.strip() for line in text.splitlines() if line.strip()]
    return [_number_or_text(value) for value in values] if numeric else list(values)


def _number_or_text(text: str) -> Any:
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return text


def chosen_suggestions(texts: list[str]) -> list[dict[str, Any]]:
    """What the boxes that were ticked carry. Raises Refused for anything else."""
    try:
        rules = [json.loads(text) for text in texts[:100]]
        return [
            {"kind": str(rule["kind"]), "column": str(rule["column"]), "parameters": dict(rule["parameters"])}
            for rule in rules
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Refused("What was chosen cannot be read; nothing was set. Ask for the proposals again.") from None
