"""Business metrics: registering them and letting them go. Their tests are those of the dataset that they are cut by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from math import isfinite

from django.core.exceptions import ValidationError
from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import SLUG, Team, User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from lakehub.user_sql import BadQuery
from quality.domain.generation.business_metrics import BadShare, parse_share
from quality.domain.language import THIS
from quality.domain.user_sql import parsed_query
from quality.generation.query_rights import check_may_read
from quality.generation.rules import regenerate
from quality.models import Metric


@dataclass(frozen=True)
class MetricInput:
    """What a person says of a metric; shares are texts such as 20%."""

    name: str
    sql: str
    second_sql: str = ""
    low: float | None = None
    high: float | None = None
    week_over_week: str = ""
    agreement: str = "0.1%"
    anomaly: bool = False
    description: str = ""


def set_metric(
    dataset: Dataset,
    metric_input: MetricInput,
    *,
    team: Team | None = None,
    actor: str,
    author: User | None = None,
    now: datetime,
) -> Metric:
    """The metric of this name, new or changed; of the dataset's team unless another is named.

    Which datasets it reads is taken from its queries. Raises Refused with what is wrong by field, or Conflict where the
    name is another dataset's metric already. `author`: whose rights it needs; none where the operator set it.
    """
    inputs = _referenced_datasets(dataset, metric_input)
    check_may_read((read.name for read in inputs), dataset, author=author, field="sql")
    given = {field.name: getattr(metric_input, field.name) for field in fields(MetricInput) if field.name != "name"}
    with transaction.atomic():
        row, _ = Metric.objects.update_or_create(
            name=metric_input.name,
            defaults={**given, "dataset": dataset, "team": team or dataset.team, "set_by": actor, "set_at": now},
        )
        row.inputs.set(inputs)
        audit_log.record(actor, "set metric", f"dataset:{dataset.name}", now=now, metric=metric_input.name, **given)
        regenerate(dataset, now=now)
    return row


def remove_metric(row: Metric, *, actor: str, now: datetime) -> None:
    """Its tests are retired; their results stay."""
    with transaction.atomic():
        dataset = row.dataset
        row.delete()
        audit_log.record(actor, "remove metric", f"dataset:{dataset.name}", now=now, metric=row.name)
        regenerate(dataset, now=now)


def metric_named(name: str) -> Metric:
    """Raises NotFound with the nearest name."""
    metrics = Metric.objects.select_related("dataset__team", "team").prefetch_related("inputs")
    metric = metrics.filter(name=name).first()
    if metric is None:
        raise NotFound(f"There is no metric `{name}`.{did_you_mean(name, metrics.values_list('name', flat=True))}")
    return metric


def _referenced_datasets(dataset: Dataset, metric_input: MetricInput) -> list[Dataset]:
    """The datasets that it reads besides its own."""
    taken = Metric.objects.exclude(dataset=dataset).select_related("dataset").filter(name=metric_input.name).first()
    if taken is not None:
        raise Conflict(
            f"`{metric_input.name}` is a metric of {taken.dataset.name}: choose another name, or remove that first."
        )
    problems = dict(_problems(metric_input))
    read: dict[str, str] = {}
    for field, sql in (("sql", metric_input.sql), ("second_sql", metric_input.second_sql)):
        try:
            read |= dict.fromkeys(parsed_query(sql).tables if sql else (), field)
        except BadQuery as problem:
            problems[field] = str(problem)
    others = [name for name in read if name != THIS]
    live = Dataset.objects.filter(offboarded_at=None)
    datasets = list(live.filter(name__in=others))
    for name in set(others) - {other_dataset.name for other_dataset in datasets}:
        hint = did_you_mean(name, live.values_list("name", flat=True)[:1000])
        problems[read[name]] = f"There is no dataset `{name}`.{hint}"
    if problems:
        raise Refused.for_fields(problems)
    return datasets


def _problems(metric_input: MetricInput) -> Iterator[tuple[str, str]]:
    try:
        SLUG(metric_input.name)
    except ValidationError as problem:
        yield "name", f"`{metric_input.name}` cannot be the name of a metric: {' '.join(problem.messages)}"
    if not metric_input.sql:
        yield "sql", "The query is missing: one SELECT that gives one number, as in SELECT avg(delay) FROM this."
    for field, bound in (("low", metric_input.low), ("high", metric_input.high)):
        if bound is not None and not isfinite(bound):
            yield field, f"The {field} bound {bound} is no finite number: give one such as 0.5, or none."
    if metric_input.low is not None and metric_input.high is not None and metric_input.low >= metric_input.high:
        yield "low", f"The low bound {metric_input.low} is not below the high bound {metric_input.high}."
    for field, share in _shares(metric_input):
        try:
            parse_share(field, share)
        except BadShare as problem:
            yield field, str(problem)


def _shares(metric_input: MetricInput) -> Iterable[tuple[str, str]]:
    yield from [("week_over_week", metric_input.week_over_week)] if metric_input.week_over_week else []
    yield from [("agreement", metric_input.agreement)] if metric_input.second_sql else []
