"""What the asks of a test come to on one copy: which measure of which part of which table, and by which engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias

from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, shifted_partition
from quality.cross_source.methods import METHODS
from quality.domain.evaluation.groups import GROUP_SIZES, max_groups_of
from quality.domain.language import Expression, Name
from quality.domain.language.measures import Ask, Measure, Reach
from quality.domain.language.name_resolution import MAX_GROUPS, is_grouped
from quality.domain.language.parameters import MAX_TIMEOUT
from quality.engines.scans.table_binding import TableBinding
from quality.engines.scans.targets import CannotRead, HudiCopy, OnePartition, Part, Target
from quality.measuring.table_bindings import TableBindings

DEFAULT_TIMEOUT = timedelta(minutes=2)


@dataclass(frozen=True)
class ScanTable:
    """What one engine reads in one go."""

    engine: str
    target: Target
    timeout: timedelta


@dataclass(frozen=True)
class MeasureRequest:
    """One measure of one part of a table: by the values of the column `group_by`, at most `max_groups`, where there is one.

    `copy` is whose table it is, and `partition` which range: nothing where it cannot be kept to be used again.
    """

    table: ScanTable
    part: Part
    measure: Measure
    other_tables: tuple[tuple[Name, Target], ...] = ()
    group_by: str = ""
    max_groups: int = MAX_GROUPS
    copy: int | None = None
    partition: Interval = EVERYTHING


@dataclass(frozen=True)
class TwoSidedRequest:
    """A measure that needs two places, one after the other (quality.cross_source.methods)."""

    measure: Measure
    here: TableBinding
    there: TableBinding
    partition: Interval
    engine: str
    timeout: timedelta


AnyRequest: TypeAlias = MeasureRequest | TwoSidedRequest


def build_request(expression: Expression, ask: Ask, tested: Interval, places: TableBindings) -> AnyRequest:
    """Raises CannotRead where a name stands for nothing, or there is no partition to look back to."""
    given = expression.parameters
    place = places.binding_of(ask.table)
    partition = _shifted_partition(ask.table, tested, place, places)
    timeout = min(given.timeout or DEFAULT_TIMEOUT, MAX_TIMEOUT)
    if ask.measure.kind in METHODS:
        assert ask.measure.other is not None
        there = places.binding_of(ask.measure.other)
        return TwoSidedRequest(ask.measure, place, there, partition, given.engine or "", timeout)
    part = place.part(ask.reach, partition)
    engine = given.engine if given.engine and isinstance(place.target, HudiCopy) else place.engine
    by = given.by if given.by is not None and is_grouped(ask) and ask.reach is not Reach.EACH_PARTITION else ""
    return MeasureRequest(
        table=ScanTable(engine, place.target, timeout),
        part=part,
        measure=_bind_query_range(ask.measure, partition, part),
        other_tables=tuple((name, places.binding_of(name).target) for name in ask.measure.other_tables),
        group_by=by,
        max_groups=max_groups_of(given) if by and ask.table == GROUP_SIZES.table else MAX_GROUPS,
        copy=place.copy,
        partition=partition if isinstance(part, OnePartition) else EVERYTHING,
    )


def _shifted_partition(name: Name, tested: Interval, place: TableBinding, places: TableBindings) -> Interval:
    """The range that the name looks at: the tested one, or an earlier one on the calendar of the tested dataset."""
    if not name.shift:
        return tested
    if place.grain is Grain.NONE:
        raise CannotRead("this table has no partitions, so none is earlier than another")
    try:
        return shifted_partition(tested, name.shift, places.grain, places.zone)
    except ValueError as problem:
        raise CannotRead(str(problem)) from problem


def _bind_query_range(measure: Measure, partition: Interval, part: Part) -> Measure:
    """A query is given its range: as two times, and as the value of the partition column. The whole has none."""
    if measure.kind != "query" or not isinstance(part, OnePartition):
        return measure
    return replace(measure, values=(measure.values[0], partition.start, partition.end, part.value))
