"""Business metrics: registering them and letting them go. Their tests are those of the dataset that they are cut by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from math import isfinite

from django.core.exceptions import ValidationError
from django.db import transaction

from lakehub.accounts import audit
from lakehub.accounts.models import SLUG, Team
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression import THIS
from quality.domain.metrics import BadShare, share_of
from quality.domain.queries import BadQuery, understood
from quality.models import Metric
from quality.rules import regenerate


@dataclass(frozen=True)
class Said:
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


def put(dataset: Dataset, said: Said, *, team: Team | None = None, actor: str, now: datetime) -> Metric:
    """The metric of this name, new or changed; of the dataset's team unless another is named.

    Which datasets it reads is taken from its queries. Raises Refused with what is wrong by field, or Conflict where the
    name is another dataset's metric already.
    """
    inputs = _check(dataset, said)
    given = {field.name: getattr(said, field.name) for field in fields(Said) if field.name != "name"}
    with transaction.atomic():
        row, _ = Metric.objects.update_or_create(
            name=said.name,
            defaults={**given, "dataset": dataset, "team": team or dataset.team, "set_by": actor, "set_at": now},
        )
        row.inputs.set(inputs)
        audit.record(actor, "set metric", f"dataset:{dataset.name}", now=now, metric=said.name, **given)
        regenerate(dataset, now=now)
    return row


def remove(row: Metric, *, actor: str, now: datetime) -> None:
    """Its tests are retired; their results stay."""
    with transaction.atomic():
        dataset = row.dataset
        row.delete()
        audit.record(actor, "remove metric", f"dataset:{dataset.name}", now=now, metric=row.name)
        regenerate(dataset, now=now)


def metric_named(name: str) -> Metric:
    """Raises NotFound with the nearest name."""
    known = Metric.objects.select_related("dataset__team", "team").prefetch_related("inputs")
    found = known.filter(name=name).first()
    if found is None:
        raise NotFound(f"There is no metric `{name}`.{did_you_mean(name, known.values_list('name', flat=True))}")
    return found


def _check(dataset: Dataset, said: Said) -> list[Dataset]:
    """The datasets that it reads besides its own."""
    taken = Metric.objects.exclude(dataset=dataset).select_related("dataset").filter(name=said.name).first()
    if taken is not None:
        raise Conflict(f"`{said.name}` is a metric of {taken.dataset.name}: choose another name, or remove that first.")
    problems = dict(_problems(said))
    read: dict[str, str] = {}
    for field, sql in (("sql", said.sql), ("second_sql", said.second_sql)):
        try:
            read |= dict.fromkeys(understood(sql).tables if sql else (), field)
        except BadQuery as problem:
            problems[field] = str(problem)
    others = [name for name in read if name != THIS]
    live = Dataset.objects.filter(offboarded_at=None)
    found = list(live.filter(name__in=others))
    for name in set(others) - {one.name for one in found}:
        hint = did_you_mean(name, live.values_list("name", flat=True)[:1000])
        problems[read[name]] = f"There is no dataset `{name}`.{hint}"
    if problems:
        raise Refused.because(problems)
    return found


def _problems(said: Said) -> Iterator[tuple[str, str]]:
    try:
        SLUG(said.name)
    except ValidationError as problem:
        yield "name", f"`{said.name}` cannot be the name of a metric: {' '.join(problem.messages)}"
    if not said.sql:
        yield "sql", "The query is missing: one SELECT that gives one number, as in SELECT avg(delay) FROM this."
    for field, bound in (("low", said.low), ("high", said.high)):
        if bound is not None and not isfinite(bound):
            yield field, f"The {field} bound {bound} is no finite number: give one such as 0.5, or none."
    if said.low is not None and said.high is not None and said.low >= said.high:
        yield "low", f"The low bound {said.low} is not below the high bound {said.high}."
    for field, share in _shares(said):
        try:
            share_of(field, share)
        except BadShare as problem:
            yield field, str(problem)


def _shares(said: Said) -> Iterable[tuple[str, str]]:
    yield from [("week_over_week", said.week_over_week)] if said.week_over_week else []
    yield from [("agreement", said.agreement)] if said.second_sql else []
