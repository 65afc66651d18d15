"""From the due units of one copy to the answers of their tests."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from quality.domain.evaluation.groups import GROUP_SIZES
from quality.domain.language import THIS, Name
from quality.domain.language.measures import Answer, Ask, Reach
from quality.domain.language.values import Failed
from quality.engines.scans.parts import WholeTable
from quality.measuring.cache import MeasurementCache
from quality.measuring.requests import AnyRequest, MeasuredAnswer, MeasureRequest, Source, resolve_sources
from quality.measuring.scan_planner import UNLIMITED, QueryBudget, run_requests
from quality.models import Unit

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CacheUse:
    """Of `total` measures `measures` were not measured anew: nothing has changed since, at the earliest, `read_at`."""

    measures: int
    total: int
    read_at: datetime
    instant: str


@dataclass(frozen=True)
class UnitAnswers:
    """What the test of one unit needs; `instant` is the commit of the unit's own copy that was read.

    `groups`: how many groups a dimension test has, with those that were not measured.
    """

    by_ask: Mapping[Ask, Answer | Failed]
    instant: str = ""
    groups: int = 0
    reused: CacheUse | None = None


def measure_units(
    copy: DatasetCopy, units: Sequence[Unit], budget: QueryBudget = UNLIMITED, *, now: datetime
) -> dict[int, UnitAnswers]:
    """The answers for each unit by its id. What cannot be read is a Failed among them, never an exception."""
    sources = resolve_sources(copy, units, now=now)
    requests = list(
        dict.fromkeys(
            source
            for unit_sources in sources.values()
            for source in unit_sources.values()
            if not isinstance(source, MeasuredAnswer)
        )
    )
    anew = set[Source]()
    for unit in units:
        if unit.read_anew:  # "run now" never answers from what was kept
            anew.update(sources[unit.pk].values())
    cache = MeasurementCache(requests, anew=anew)
    measured = run_requests((request for request in requests if request not in cache.hits), budget)
    with log_and_continue("keeping what was measured"), transaction.atomic():
        cache.store(measured, now=now)
    answers = {**measured, **cache.hits}
    return {pk: _unit_answers(unit_sources, answers) for pk, unit_sources in sources.items()}


def _unit_answers(sources: Mapping[Ask, Source], answers: Mapping[AnyRequest, MeasuredAnswer]) -> UnitAnswers:
    measured_answers = {
        ask: source if isinstance(source, MeasuredAnswer) else answers[source] for ask, source in sources.items()
    }
    own = [
        measured_answer
        for ask, measured_answer in measured_answers.items()
        if ask.table == Name(THIS) and measured_answer.instant
    ]
    return UnitAnswers(
        by_ask={
            ask: _as_partitioned(ask, sources[ask], measured_answer.answer)
            for ask, measured_answer in measured_answers.items()
        },
        instant=own[-1].instant if own else "",
        groups=measured_answers[GROUP_SIZES].groups if GROUP_SIZES in measured_answers else 0,
        reused=_cache_use(list(measured_answers.values())),
    )


def _as_partitioned(ask: Ask, source: Source, answer: Answer | Failed) -> Answer | Failed:
    """A table without partitions is one partition."""
    one_piece = isinstance(source, MeasureRequest) and isinstance(source.part, WholeTable)
    if ask.reach is Reach.EACH_PARTITION and one_piece and not isinstance(answer, Mapping | Failed):
        return {"": answer}
    return answer


def _cache_use(measured_answers: Sequence[MeasuredAnswer]) -> CacheUse | None:
    earlier = [
        (measured_answer.read_at, measured_answer.instant)
        for measured_answer in measured_answers
        if measured_answer.read_at is not None
    ]
    if not earlier:
        return None
    read_at, instant = min(earlier)
    return CacheUse(len(earlier), len(measured_answers), read_at, instant)
