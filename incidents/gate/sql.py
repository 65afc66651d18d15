"""The gate asked with a query: the datasets and the ranges that it reads, each of them a question. Nothing of it is run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from incidents.domain.sql_reads import BadSql, Reads, Shape, reads, understand
from incidents.domain.sql_times import Clock
from incidents.gate import answers as gate
from incidents.gate.answers import Asked, Question
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

MOST_QUESTIONS = 200


@dataclass(frozen=True)
class Derived:
    """What a query asks: the questions, what each dataset is read over and why, and the tables that were left out."""

    asked: list[Asked]
    reads: list[Reads]
    left_out: list[str]


def derive(
    sql: str,
    *,
    dialect: str,
    consumer: str,
    now: datetime,
    data_center: str = "",
    zone: ZoneInfo | None = None,
    leave_out: Collection[str] = (),
    request_id: str = "",
) -> Derived:
    """`zone` is that of the session that runs it. Raises Refused where the text cannot be understood, NotFound for a table
    that is no dataset, unless it is one to `leave_out`.
    """
    try:
        query = understand(sql, dialect)
    except BadSql as problem:
        raise Refused.because({"sql": str(problem)}) from None
    names = {name.lower() for name in query.names}
    skipped = {name.lower() for name in leave_out} & names
    known = gate.found_copies(names - skipped, now=now)
    _check_known(names - skipped - set(known))
    kept = query.without(skipped)
    shapes = {row.name: _shape(row) for row in Dataset.objects.filter(name__in=known)}
    found = reads(kept, shapes, Clock(now, zone)) if kept.tables else []
    asked = []
    for one in found:
        copy = gate.chosen(one.dataset, data_center, known)
        center = copy.copy.data_center.name
        asked += [Asked(Question(one.dataset, piece, consumer, center, request_id), copy) for piece in one.ranges]
    if len(asked) > MOST_QUESTIONS:
        raise Refused.because({"sql": f"The query reads {len(asked)} ranges: {MOST_QUESTIONS} at most."})
    return Derived(asked, found, sorted(skipped))


def _check_known(missing: Collection[str]) -> None:
    if missing:
        live = list(Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)[:1000])
        hints = [f"`{name}`{did_you_mean(name, live)}" for name in sorted(missing)]
        raise NotFound(
            f"The query reads what is no dataset here: {' '.join(hints)}. Nobody vouches for it: onboard it, or name it in "
            "`leave_out`."
        )


def _shape(dataset: Dataset) -> Shape:
    columns = frozenset(column["name"].lower() for column in dataset.columns) or None
    return Shape(dataset.partition_column, dataset.partition_grain, dataset.zone, dataset.event_time, columns)
