"""Rules to propose for a dataset, from its last complete partition: one fused scan, and a few columns counted by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from lakehub.catalog.metadata import ColumnType
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.calendar import Grain, floor_to_bucket, partition_at
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.suggest import did_you_mean
from quality import slots
from quality.described import slas
from quality.domain.expression import THIS, Name
from quality.domain.expression.measures import ROWS, Answer, Measure, Reach
from quality.domain.profiles import ColumnProfile, Proposal, proposals
from quality.domain.tiers import BadOverride
from quality.engines import read
from quality.engines.scan import CannotRead, Limits, Measured, Scan, Target
from quality.models import Unit
from quality.places import Place, Places
from quality.uses import uses_of

MOST_COLUMNS = 100
COUNTED_BY_VALUE = 8
"""So many columns at most: each is one more query, over that column only."""
FEW_VALUES = 1000
MOST_LOOKED_INTO = 5
"""So many other tables at most, each read as a whole."""
LIMITS = Limits(timeout=timedelta(seconds=20))
_NUMBERS = (ColumnType.INTEGER, ColumnType.FLOAT, ColumnType.DECIMAL)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Proposed:
    """`partition` is what was looked at, by name, in the copy of `data_center`; without partitions it is empty."""

    data_center: str
    partition: str
    rows: int
    proposals: tuple[Proposal, ...]
    scans: int


def propose(dataset: Dataset, *, data_center: str = "", now: datetime) -> Proposed:
    """Rules that the last complete partition keeps and that are not set yet.

    Raises Refused where it cannot be read, and Conflict where as many as may are reading there already.
    None is about the partition column: it says which partition was looked at.
    """
    copy = _copy(dataset, data_center)
    partition = _last_complete(copy, now=now)
    places = Places(copy)
    columns = [column for column in dataset.columns if column["name"] != dataset.partition_column][:MOST_COLUMNS]
    try:
        place = places.of(Name(THIS))
        tables = _keyed_tables(copy, places, columns)
        with slots.held_for_scans(uses_of(place), until=2 * LIMITS.timeout):
            found = _scan(place, partition, _measures(columns, tables), tables)
            counted = _counted(place, partition, columns, found)
    except CannotRead as problem:
        raise Refused(f"{dataset.name} cannot be read: {problem}") from problem
    rows = _count(found.answers[ROWS]) or 0
    profiles = [_profile(column, rows, found.answers, counted.answers, tables) for column in columns]
    kept = {(rule.kind, rule.column) for rule in dataset.column_rules.filter(by="")}
    fresh = [one for profile in profiles for one in proposals(profile)]
    return Proposed(
        data_center=copy.data_center.name,
        partition="" if partition.is_everything else dataset.partition_label(partition),
        rows=rows,
        proposals=tuple(one for one in fresh if (one.rule.kind, one.rule.column) not in kept),
        scans=found.scans + counted.scans,
    )


def _copy(dataset: Dataset, data_center: str) -> DatasetCopy:
    copies = list(dataset.copies.select_related("dataset__feed__connection", "data_center"))
    for copy in copies:
        if data_center in ("", copy.data_center.name):
            return copy
    hint = did_you_mean(data_center, [copy.data_center.name for copy in copies])
    raise NotFound(f"{dataset.name} has no copy in `{data_center}`.{hint}")


def _last_complete(copy: DatasetCopy, *, now: datetime) -> Interval:
    """Before the boundary up to which freshness knows the copy to be complete; else the last partition that is due."""
    dataset = copy.dataset
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE:
        return EVERYTHING
    known = Unit.objects.filter(copy=copy, test__key="freshness", test__retired_at=None)
    complete_to = known.values_list("affected_from", flat=True).first()
    try:
        sla = slas(dataset).freshness
    except BadOverride as problem:
        raise Refused.because({"overrides": str(problem)}) from problem
    return partition_at((complete_to or floor_to_bucket(now - sla, grain, zone)) - _TICK, grain, zone)


def _keyed_tables(copy: DatasetCopy, places: Places, columns: Iterable[Mapping[str, Any]]) -> dict[Name, Target]:
    """A few of the datasets here that are keyed by one column which this one has too: each is read as a whole.

    Those that lineage ties to this one come first.
    """
    names = {column["name"] for column in columns}
    live = Dataset.objects.filter(offboarded_at=None, copies__data_center=copy.data_center_id)
    known = live.exclude(pk=copy.dataset_id).values_list("pk", "name", "primary_key")
    keyed = [(pk, Name(name, column=key[0])) for pk, name, key in known if len(key) == 1 and key[0] in names]
    near = _neighbours(copy.dataset) if len(keyed) > MOST_LOOKED_INTO else frozenset[int]()
    chosen = sorted(keyed, key=lambda one: (one[0] not in near, one[1].dataset))[:MOST_LOOKED_INTO]
    places.know([name.dataset for _, name in chosen])
    return {name: places.of(name.table).target for _, name in chosen}


def _neighbours(dataset: Dataset) -> frozenset[int]:
    edges = LineageEdge.objects.filter(Q(upstream=dataset) | Q(downstream=dataset))
    return frozenset(pk for ends in edges.values_list("upstream", "downstream") for pk in ends)


def _lookup(name: Name) -> Measure:
    return Measure("unmatched", (name.column,), name.table, (name.column,))


def _measures(columns: Iterable[Mapping[str, Any]], tables: Iterable[Name]) -> Iterator[Measure]:
    yield ROWS
    for column in columns:
        name, kind = column["name"], column["type"]
        yield from (Measure("nulls", (name,)), Measure("distinct", (name,)))
        if kind in _NUMBERS:
            yield from (Measure("minimum", (name,)), Measure("maximum", (name,)))
    yield from map(_lookup, tables)


def _scan(place: Place, partition: Interval, measures: Iterable[Measure], tables: Mapping[Name, Target]) -> Measured:
    looked_into = {name.table: target for name, target in tables.items()}
    part = place.part(Reach.PARTITION, partition)
    return read(place.engine, Scan(place.target, tuple(measures), part, looked_into), LIMITS)


def _counted(place: Place, partition: Interval, columns: Iterable[Mapping[str, Any]], found: Measured) -> Measured:
    """How often each value occurs, of the columns of texts with the fewest values."""
    distinct = {column["name"]: _distinct(found, column) for column in columns if column["type"] == ColumnType.STRING}
    few = sorted((count, name) for name, count in distinct.items() if 0 < count <= FEW_VALUES)
    measures = [Measure("frequencies", (name,)) for _, name in few[:COUNTED_BY_VALUE]]
    return _scan(place, partition, measures, {}) if measures else Measured({}, scans=0)


def _distinct(found: Measured, column: Mapping[str, Any]) -> int:
    return _count(found.answers[Measure("distinct", (column["name"],))]) or 0


def _profile(
    column: Mapping[str, Any],
    rows: int,
    answers: Mapping[Measure, Any],
    counted: Mapping[Measure, Any],
    tables: Iterable[Name],
) -> ColumnProfile:
    name = column["name"]
    values = counted.get(Measure("frequencies", (name,)))
    references = {table.dataset: _count(answers[_lookup(table)]) for table in tables if table.column == name}
    nulls = _count(answers[Measure("nulls", (name,))])
    return ColumnProfile(
        name=name,
        rows=rows if nulls is not None else 0,  # a column that cannot be read is proposed nothing
        nulls=nulls or 0,
        distinct=_count(answers[Measure("distinct", (name,))]),
        low=_number(answers.get(Measure("minimum", (name,)))),
        high=_number(answers.get(Measure("maximum", (name,)))),
        values={value: count for value, count in values.items() if value is not None}
        if isinstance(values, Mapping)
        else {},
        is_text=column["type"] == ColumnType.STRING,
        references={dataset: count for dataset, count in references.items() if count is not None},
    )


def _count(answer: Answer | object) -> int | None:
    return answer if isinstance(answer, int) else None


def _number(answer: object) -> float | None:
    try:
        return None if answer is None or isinstance(answer, bool) else float(answer)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        return None
