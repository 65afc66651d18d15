"""Where the answers to what tests ask come from: our own database, or a measure of a part of a table by an engine."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from django.db import DatabaseError

from lakehub.catalog.metadata.tables import StoredTable
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval
from quality.cross_source.methods import TWO_SIDED_KINDS
from quality.cross_source.run import EndpointChoice
from quality.domain.language import Expression, Name
from quality.domain.language.measures import Answer, Ask, Measure, Reach
from quality.domain.language.name_resolution import is_grouped
from quality.domain.language.parameters import MAX_TIMEOUT
from quality.domain.language.values import Failed, error
from quality.domain.parsed import asks_of_version, parsed
from quality.engines import engine_for
from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.measuring.database_answers import DatabaseAnswers
from quality.measuring.table_bindings import Buckets, TableBindings, asked_rows
from quality.models import Unit

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT = timedelta(minutes=2)


@dataclass(frozen=True)
class ScanTable:
    """What one engine reads in one go."""

    engine: str
    target: StoredTable
    timeout: timedelta


@dataclass(frozen=True)
class MeasureRequest:
    """One measure of one part of a table: by the values of the column `group_by`, at most MAX_GROUPS, where there is one.

    `copy` is whose table it is, and `partition` which range: nothing where it cannot be kept to be used again.
    """

    table: ScanTable
    part: Part
    measure: Measure
    other_tables: tuple[tuple[Name, StoredTable], ...] = ()
    group_by: str = ""
    copy: int | None = None
    partition: Interval = EVERYTHING
    buckets: Buckets | None = None
    """Into which larger partitions the answers by partition are summed."""


@dataclass(frozen=True)
class TwoSidedRequest:
    """A measure that needs two places, one after the other (quality.cross_source.methods)."""

    measure: Measure
    here: EndpointChoice
    there: EndpointChoice
    partition: Interval
    timeout: timedelta


AnyRequest: TypeAlias = MeasureRequest | TwoSidedRequest


@dataclass(frozen=True)
class MeasuredAnswer:
    """One answer; `instant` is the commit that was read, `groups` how many there are in all. `read_at`: it was kept from then."""

    answer: Answer | Failed
    instant: str = ""
    groups: int = 0
    read_at: datetime | None = None


Source: TypeAlias = AnyRequest | MeasuredAnswer
"""Where an answer comes from: a table, or it is here already."""


def resolve_sources(copy: DatasetCopy, units: Sequence[Unit], *, now: datetime) -> dict[int, dict[Ask, Source]]:
    """For each unit by its id, where the answers to what its test asks come from; what raises costs that answer only."""
    asks = {unit: _asks_of_unit(unit) for unit in units}
    known = DatabaseAnswers(copy, [(unit, ask) for unit, unit_asks in asks.items() for ask in unit_asks])
    places = TableBindings(copy)
    return {
        unit.pk: {ask: _resolve_source(unit, ask, known, places, now) for ask in unit_asks}
        for unit, unit_asks in asks.items()
    }


def _asks_of_unit(unit: Unit) -> tuple[Ask, ...]:
    """None of a test that is not understood: whoever evaluates it finds out why."""
    try:
        return asks_of_version(_flattened(unit))
    except Exception:
        logger.exception("Unit %s asks what is not understood: %s", unit.pk, _flattened(unit))
        return ()


def _flattened(unit: Unit) -> str:
    assert unit.test.version is not None
    return unit.test.version.flattened


def _resolve_source(unit: Unit, ask: Ask, known: DatabaseAnswers, places: TableBindings, now: datetime) -> Source:
    try:
        if ask.measure.is_recorded and known.has(unit, ask):
            return MeasuredAnswer(known.answer(unit, ask, now))
        request = build_request(parsed(_flattened(unit)), ask, Interval(unit.start, unit.end), places, now=now)
        return _seeded(request, unit) if ask.measure.kind == "sampled" else request
    except CannotRead as failed:
        return MeasuredAnswer(error(str(failed)))
    except DatabaseError:
        raise
    except Exception as problem:
        logger.exception("What unit %s asks for cannot be looked up", unit.pk)
        return MeasuredAnswer(error(f"it cannot be looked up ({type(problem).__name__}): see the worker's log"))


def _seeded(request: AnyRequest, unit: Unit) -> AnyRequest:
    """Each run samples other rows. The rerun of a failure looks for those that were missing: it must not pass by luck."""
    measure = request.measure
    return replace(
        request, measure=replace(measure, values=(measure.values[0], unit.failing_seed or secrets.token_hex(8)))
    )


def build_request(
    expression: Expression, ask: Ask, tested: Interval, places: TableBindings, *, now: datetime
) -> AnyRequest:
    """Raises CannotRead where a name stands for nothing, no engine reads it, or there is no partition to look back to."""
    given = expression.parameters
    rows = asked_rows(ask, tested, places, now=now)
    timeout = min(given.timeout or DEFAULT_TIMEOUT, MAX_TIMEOUT)
    if ask.measure.kind in TWO_SIDED_KINDS:
        assert ask.measure.other is not None
        here, there = (
            EndpointChoice(
                engine_for(side.target, given.engine), side.target, side.part(Reach.PARTITION, rows.partition)
            )
            for side in (rows.table, places.binding_of(ask.measure.other))
        )
        return TwoSidedRequest(ask.measure, here, there, rows.partition, timeout)
    target = rows.table.target
    by = given.by if given.by is not None and is_grouped(ask) and ask.reach is not Reach.EACH_PARTITION else ""
    return MeasureRequest(
        table=ScanTable(engine_for(target, given.engine), target, timeout),
        part=rows.part,
        measure=rows.measure,
        other_tables=tuple((name, places.binding_of(name).target) for name in ask.measure.other_tables),
        group_by=by,
        copy=rows.table.copy,
        buckets=rows.buckets,
        partition=rows.partition if isinstance(rows.part, OnePartition) else EVERYTHING,
    )
