"""What the asks of a test come to on one copy: which measure of which part of which table, and by which engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias

from lakehub.kernel.calendar import Grain, shifted
from lakehub.kernel.interval import EVERYTHING, Interval
from quality.domain.expression import Expression, Name
from quality.domain.expression.measures import Ask, Measure, Reach
from quality.domain.expression.naming import MOST_GROUPS, is_grouped
from quality.domain.expression.parameters import LONGEST_TIMEOUT
from quality.domain.groups import SIZES, most_of
from quality.engines.scan import CannotRead, HudiCopy, One, Part, Target
from quality.exchanges import EXCHANGES
from quality.places import Place, Places

TIMEOUT = timedelta(minutes=2)


@dataclass(frozen=True)
class Table:
    """What one engine reads in one go."""

    engine: str
    target: Target
    timeout: timedelta


@dataclass(frozen=True)
class Need:
    """One measure of one part of a table: by the values of the column `by`, at most so many, where there is one.

    `copy` is whose table it is, and `partition` which range: nothing where it cannot be kept to be used again.
    """

    table: Table
    part: Part
    measure: Measure
    others: tuple[tuple[Name, Target], ...] = ()
    by: str = ""
    most: int = MOST_GROUPS
    copy: int | None = None
    partition: Interval = EVERYTHING


@dataclass(frozen=True)
class Trade:
    """A measure that needs two places, one after the other (quality.exchanges)."""

    measure: Measure
    here: Place
    there: Place
    partition: Interval
    engine: str
    timeout: timedelta


Wanted: TypeAlias = Need | Trade


def wanted(expression: Expression, ask: Ask, tested: Interval, places: Places) -> Wanted:
    """Raises CannotRead where a name stands for nothing, or there is no partition to look back to."""
    given = expression.parameters
    place = places.of(ask.table)
    partition = _moved(ask.table, tested, place, places)
    timeout = min(given.timeout or TIMEOUT, LONGEST_TIMEOUT)
    if ask.measure.kind in EXCHANGES:
        assert ask.measure.other is not None
        there = places.of(ask.measure.other)
        return Trade(ask.measure, place, there, partition, given.engine or "", timeout)
    part = place.part(ask.reach, partition)
    engine = given.engine if given.engine and isinstance(place.target, HudiCopy) else place.engine
    by = given.by if given.by is not None and is_grouped(ask) and ask.reach is not Reach.EACH_PARTITION else ""
    return Need(
        table=Table(engine, place.target, timeout),
        part=part,
        measure=_bound(ask.measure, partition, part),
        others=tuple((name, places.of(name).target) for name in ask.measure.others),
        by=by,
        most=most_of(given) if by and ask.table == SIZES.table else MOST_GROUPS,
        copy=place.copy,
        partition=partition if isinstance(part, One) else EVERYTHING,
    )


def _moved(name: Name, tested: Interval, place: Place, places: Places) -> Interval:
    """The range that the name looks at: the tested one, or an earlier one on the calendar of the tested dataset."""
    if not name.shift:
        return tested
    if place.grain is Grain.NONE:
        raise CannotRead("this table has no partitions, so none is earlier than another")
    try:
        return shifted(tested, name.shift, places.grain, places.zone)
    except ValueError as problem:
        raise CannotRead(str(problem)) from problem


def _bound(measure: Measure, partition: Interval, part: Part) -> Measure:
    """A query is given its range: as two times, and as the value of the partition column. The whole has none."""
    if measure.kind != "query" or not isinstance(part, One):
        return measure
    return replace(measure, values=(measure.values[0], partition.start, partition.end, part.value))
