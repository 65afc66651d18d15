"""From the due units of one copy to the answers of their tests."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, transaction

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import Interval
from quality.domain.evaluation.groups import GROUP_SIZES
from quality.domain.language import THIS, Name
from quality.domain.language.measures import Answer, Ask, Reach
from quality.domain.language.values import Failed, error
from quality.domain.parsed import asks_of_version, parsed
from quality.engines.scans.targets import CannotRead, WholeTable
from quality.measuring.cache import MeasurementCache
from quality.measuring.database_answers import ArrivalDelays, database_answer_for
from quality.measuring.query_budget import UNLIMITED, QueryBudget
from quality.measuring.requests import AnyRequest, MeasureRequest, build_request
from quality.measuring.scan_planner import MeasuredAnswer, run_requests
from quality.measuring.table_bindings import TableBindings
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
    copy: DatasetCopy, units: Sequence[Unit], allowance: QueryBudget = UNLIMITED, *, now: datetime
) -> dict[int, UnitAnswers]:
    """The answers for each unit by its id. What cannot be read is a Failed among them, never an exception.

    A test that is not understood asks for nothing: whoever evaluates it finds out why.
    """
    places = TableBindings(copy)
    asks = {unit: _asks_of_unit(unit) for unit in units}
    delays = ArrivalDelays(copy, ((unit, ask) for unit, unit_asks in asks.items() for ask in unit_asks))
    sources = {
        unit.pk: {ask: _resolve_source(unit, ask, places, delays, now) for ask in unit_asks}
        for unit, unit_asks in asks.items()
    }
    requests = list(
        dict.fromkeys(
            source
            for unit_sources in sources.values()
            for source in unit_sources.values()
            if not isinstance(source, MeasuredAnswer)
        )
    )
    cache = MeasurementCache(requests)
    measured = run_requests((request for request in requests if request not in cache.hits), allowance)
    with log_and_continue("keeping what was measured"), transaction.atomic():
        cache.store(measured, now=now)
    answers = {**measured, **cache.hits}
    return {pk: _unit_answers(unit_sources, answers) for pk, unit_sources in sources.items()}


def _asks_of_unit(unit: Unit) -> tuple[Ask, ...]:
    try:
        return asks_of_version(_flattened(unit))
    except Exception:
        logger.exception("Unit %s asks what is not understood: %s", unit.pk, _flattened(unit))
        return ()


def _flattened(unit: Unit) -> str:
    assert unit.test.version is not None
    return unit.test.version.flattened


def _resolve_source(
    unit: Unit, ask: Ask, places: TableBindings, delays: ArrivalDelays, now: datetime
) -> AnyRequest | MeasuredAnswer:
    """Where the answer comes from: a table, our own database, or there is none. What raises costs this answer only."""
    try:
        database_answer = database_answer_for(unit, ask, delays)
        if database_answer is not None:
            return MeasuredAnswer(database_answer(unit, ask, now))
        return build_request(parsed(_flattened(unit)), ask, Interval(unit.start, unit.end), places)
    except CannotRead as failed:
        return MeasuredAnswer(error(str(failed)))
    except DatabaseError:
        raise
    except Exception as problem:
        logger.exception("What unit %s asks for cannot be looked up", unit.pk)
        return MeasuredAnswer(error(f"it cannot be looked up ({type(problem).__name__}): see the worker's log"))


def _unit_answers(
    sources: Mapping[Ask, AnyRequest | MeasuredAnswer], answers: Mapping[AnyRequest, MeasuredAnswer]
) -> UnitAnswers:
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


def _as_partitioned(ask: Ask, source: AnyRequest | MeasuredAnswer, answer: Answer | Failed) -> Answer | Failed:
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
