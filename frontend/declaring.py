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
from quality.domain.rules import GROUPING, KINDS
from quality.metrics import Said
from quality.models import Metric

NUMBERS = ("integer", "float", "decimal")
LISTS = ("values",)
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
KIND_WORDS = {name: capfirst(kind.title.format(column="a column")) for name, kind in KINDS.items()}
"""The kinds to choose from."""


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    hint: str
    value: str
    error: str
    many: bool


@dataclass(frozen=True)
class RuleDraft:
    kind: str
    column: str = ""
    by: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_column(self) -> bool:
        return KINDS[self.kind].of_column

    @property
    def fields(self) -> list[Field]:
        """The parameters of its kind, filled with what was typed or what is usual."""
        return [self._field(name, usual.default) for name, usual in KINDS[self.kind].parameters.items()]

    @property
    def grouping(self) -> list[Field]:
        return [self._field(name, ...) for name in GROUPING]

    def _field(self, name: str, usual: Any) -> Field:
        value = self.given.get(name, "" if usual in (None, ...) else str(usual))
        label = name.replace("_", " ").capitalize()
        return Field(name, label, HINTS.get(name, ""), value, self.errors.get(name, ""), name in LISTS)


def rule_typed(said: QueryDict) -> RuleDraft | None:
    """None: no kind is chosen yet."""
    kind = said.get("kind", "")
    if kind not in KINDS:
        return None
    names = [*KINDS[kind].parameters, *GROUPING]
    given = {name: said.get(name, "").strip() for name in names if name in said}
    return RuleDraft(kind, said.get("column", "").strip(), said.get("by", "").strip(), given)


def rule_asked(draft: RuleDraft, dataset: Dataset) -> dict[str, Any]:
    """The arguments of the use case: what is left empty is as usual."""
    types = {column["name"]: column["type"] for column in dataset.columns}
    numeric = types.get(draft.column) in NUMBERS
    given = {name: _listed(text, numeric) if name in LISTS else text for name, text in draft.given.items() if text}
    if not draft.by:
        given = {name: value for name, value in given.items() if name not in GROUPING}
    return {"kind": draft.kind, "column": draft.column if draft.of_column else "", "by": draft.by, "parameters": given}


def _listed(text: str, numeric: bool) -> list[Any]:
    values = [line.strip() for line in text.splitlines() if line.strip()]
    return [_as_number(value) for value in values] if numeric else list(values)


def _as_number(text: str) -> Any:
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return text


def proposed(texts: list[str]) -> list[dict[str, Any]]:
    """What the boxes that were ticked carry. Raises Refused for anything else."""
    try:
        rules = [json.loads(text) for text in texts[:100]]
        return [
            {"kind": str(one["kind"]), "column": str(one["column"]), "parameters": dict(one["parameters"])}
            for one in rules
        ]
    except (ValueError, TypeError, KeyError):
        raise Refused("What was chosen cannot be read; nothing was set. Ask for the proposals again.") from None


# Metrics


METRIC_FIELDS = ("name", "dataset", "sql", "second_sql", "low", "high", "week_over_week", "agreement", "description")


@dataclass(frozen=True)
class MetricDraft:
    values: Mapping[str, str]
    anomaly: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)


def blank_metric(dataset: str) -> MetricDraft:
    return MetricDraft({**dict.fromkeys(METRIC_FIELDS, ""), "dataset": dataset, "agreement": "0.1%"})


def of_metric(metric: Metric) -> MetricDraft:
    values = {name: getattr(metric, name) for name in METRIC_FIELDS if name != "dataset"}
    shown = {
        name: "" if value is None else f"{value:g}" if isinstance(value, float) else value
        for name, value in values.items()
    }
    return MetricDraft({**shown, "dataset": metric.dataset.name}, metric.anomaly)


def metric_typed(said: QueryDict, *, name: str = "", dataset: str = "") -> MetricDraft:
    """`name`, `dataset`: of the metric that is changed; they stay."""
    values = {one: said.get(one, "").strip() for one in METRIC_FIELDS}
    return MetricDraft(
        {**values, "name": name or values["name"], "dataset": dataset or values["dataset"]}, "anomaly" in said
    )


def metric_said(draft: MetricDraft) -> Said:
    """Raises Refused for bounds that are no numbers."""
    values, problems, bounds = draft.values, {}, {}
    for name in ("low", "high"):
        try:
            bounds[name] = float(values[name]) if values[name] else None
        except ValueError:
            problems[name] = f"`{values[name]}` is no number."
    if problems:
        raise Refused.because(problems)
    return Said(
        name=values["name"],
        sql=values["sql"],
        second_sql=values["second_sql"],
        week_over_week=values["week_over_week"],
        agreement=values["agreement"] or "0.1%",
        anomaly=draft.anomaly,
        description=values["description"],
        **bounds,
    )
