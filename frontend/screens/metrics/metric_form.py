"""A business metric as a form: what was typed, and the values for the use case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.http import QueryDict

from lakehub.kernel.errors import Refused
from quality.generation.business_metrics import MetricInput
from quality.models import Metric

METRIC_FIELDS = ("name", "dataset", "sql", "second_sql", "low", "high", "week_over_week", "agreement", "description")


@dataclass(frozen=True)
class MetricForm:
    values: Mapping[str, str]
    anomaly: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)


def blank_metric_form(dataset: str) -> MetricForm:
    return MetricForm({**dict.fromkeys(METRIC_FIELDS, ""), "dataset": dataset, "agreement": "0.1%"})


def form_of_metric(metric: Metric) -> MetricForm:
    values = {name: getattr(metric, name) for name in METRIC_FIELDS if name != "dataset"}
    shown = {
        name: "" if value is None else f"{value:g}" if isinstance(value, float) else value
        for name, value in values.items()
    }
    return MetricForm({**shown, "dataset": metric.dataset.name}, metric.anomaly)


def metric_form_from_post(posted: QueryDict, *, name: str = "", dataset: str = "") -> MetricForm:
    """`name`, `dataset`: of the metric that is changed; they stay."""
    values = {field_name: posted.get(field_name, "").strip() for field_name in METRIC_FIELDS}
    return MetricForm(
        {**values, "name": name or values["name"], "dataset": dataset or values["dataset"]}, "anomaly" in posted
    )


def metric_definition(draft: MetricForm) -> MetricInput:
    """Raises Refused for bounds that are no numbers."""
    values, problems, bounds = draft.values, {}, {}
    for name in ("low", "high"):
        try:
            bounds[name] = float(values[name]) if values[name] else None
        except ValueError:
            problems[name] = f"`{values[name]}` is no number."
    if problems:
        raise Refused.for_fields(problems)
    return MetricInput(
        name=values["name"],
        sql=values["sql"],
        second_sql=values["second_sql"],
        week_over_week=values["week_over_week"],
        agreement=values["agreement"] or "0.1%",
        anomaly=draft.anomaly,
        description=values["description"],
        **bounds,
    )
