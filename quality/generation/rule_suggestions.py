"""Rules to propose for a dataset, from its last complete partition: one fused scan, and a few columns counted by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from lakehub.catalog.metadata import NESTED_TYPES, ColumnType
from lakehub.catalog.metadata.tables import StoredTable
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, floor_to_bucket, partition_at
from lakehub.kernel.partitions.form import split_columns
from lakehub.kernel.suggest import did_you_mean
from quality.domain.generation.column_profile import ColumnProfile, RuleSuggestion, suggestions_for
from quality.domain.language import THIS, Name
from quality.domain.language.measures import ROWS, Answer, Measure, Reach
from quality.domain.slas import BadOverride
from quality.engines import engine_for, run_scan
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.measuring import concurrency
from quality.measuring.resources import refuse_background_engines, resource_of_table
from quality.measuring.table_bindings import TableBinding, TableBindings
from quality.models import Unit
from quality.state.dataset_slas import dataset_slas

MAX_COLUMNS = 100
MAX_VALUE_COUNTED_COLUMNS = 8
"""So many columns at most: each is one more query, over that column only."""
MAX_DISTINCT_VALUES = 1000
MAX_LOOKUP_TABLES = 5
"""So many other tables at most, each read as a whole."""
LIMITS = Limits(timeout=timedelta(seconds=20))
_NUMBERS = (ColumnType.INTEGER, ColumnType.FLOAT, ColumnType.DECIMAL)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class RuleSuggestionReport:
    """`partition` is what was looked at, by name, in the copy of `data_center`; without partitions it is empty."""

    data_center: str
    partition: str
    rows: int
    suggestions: tuple[RuleSuggestion, ...]
    scans: int


def suggest_rules(dataset: Dataset, *, data_center: str = "", now: datetime) -> RuleSuggestionReport:
    """Rules that the last complete partition keeps and that are not set yet.

    Raises Refused where it cannot be read, and Conflict where as many as may are reading there already.
    None is about the partition column: it says which partition was looked at.
    """
    copy = _copy(dataset, data_center)
    partition = _last_complete_partition(copy, now=now)
    places = TableBindings(copy)
    columns = [column for column in dataset.columns if column["name"] not in split_columns(dataset.partition_column)][
        :MAX_COLUMNS
    ]
    try:
        place = places.binding_of(Name(THIS))
        tables = _keyed_tables(copy, places, columns)
        refuse_background_engines([resource := resource_of_table(place)])
        with concurrency.scan_slots_held(resource, until=2 * LIMITS.timeout):
            scan_answers = _scan(place, partition, _measures(columns, tables), tables)
            counted = _value_counts(place, partition, columns, scan_answers)
    except CannotRead as problem:
        raise Refused(f"{dataset.name} cannot be read: {problem}") from problem
    rows = _as_count(scan_answers.answers[ROWS]) or 0
    profiles = [_profile(column, rows, scan_answers.answers, counted.answers, tables) for column in columns]
    existing_rules = {(rule.kind, rule.column) for rule in dataset.column_rules.filter(by="")}
    fresh = [suggestion for profile in profiles for suggestion in suggestions_for(profile)]
    return RuleSuggestionReport(
        data_center=copy.data_center.name,
        partition="" if partition.is_everything else dataset.partition_label(partition),
        rows=rows,
        suggestions=tuple(
            suggestion for suggestion in fresh if (suggestion.rule.kind, suggestion.rule.column) not in existing_rules
        ),
        scans=scan_answers.scan_count + counted.scan_count,
    )


def _copy(dataset: Dataset, data_center: str) -> DatasetCopy:
    copies = list(dataset.copies.select_related("dataset__feed__connection", "connection", "data_center"))
    for copy in copies:
        if data_center in ("", copy.data_center.name):
            return copy
    hint = did_you_mean(data_center, [copy.data_center.name for copy in copies])
    raise NotFound(f"{dataset.name} has no copy in `{data_center}`.{hint}")


def _last_complete_partition(copy: DatasetCopy, *, now: datetime) -> Interval:
    """Before the boundary up to which freshness knows the copy to be complete; else the last partition that is due."""
    dataset = copy.dataset
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE:
        return EVERYTHING
    freshness_units = Unit.objects.filter(copy=copy, test__key="freshness", test__retired_at=None)
    complete_to = freshness_units.values_list("affected_from", flat=True).first()
    try:
        sla = dataset_slas(dataset).freshness
    except BadOverride as problem:
        raise Refused.for_fields({"overrides": str(problem)}) from problem
    return partition_at((complete_to or floor_to_bucket(now - sla, grain, zone)) - _TICK, grain, zone)


def _keyed_tables(
    copy: DatasetCopy, places: TableBindings, columns: Iterable[Mapping[str, Any]]
) -> dict[Name, StoredTable]:
    """A few of the datasets here that are keyed by one column which this one has too: each is read as a whole.

    Those that lineage ties to this one come first.
    """
    names = {column["name"] for column in columns}
    live = Dataset.objects.filter(offboarded_at=None, copies__data_center=copy.data_center_id)
    other_datasets = live.exclude(pk=copy.dataset_id).values_list("pk", "name", "primary_key")
    keyed = [(pk, Name(name, column=key[0])) for pk, name, key in other_datasets if len(key) == 1 and key[0] in names]
    near = _lineage_neighbours(copy.dataset) if len(keyed) > MAX_LOOKUP_TABLES else frozenset[int]()
    chosen = sorted(keyed, key=lambda keyed_table: (keyed_table[0] not in near, keyed_table[1].dataset))[
        :MAX_LOOKUP_TABLES
    ]
    places.preload([name.dataset for _, name in chosen])
    return {name: places.binding_of(name.table).target for _, name in chosen}


def _lineage_neighbours(dataset: Dataset) -> frozenset[int]:
    edges = LineageEdge.objects.filter(Q(upstream=dataset) | Q(downstream=dataset))
    return frozenset(pk for ends in edges.values_list("upstream", "downstream") for pk in ends)


def _unmatched_measure(name: Name) -> Measure:
    return Measure("unmatched", (name.column,), name.table, (name.column,))


def _measures(columns: Iterable[Mapping[str, Any]], tables: Iterable[Name]) -> Iterator[Measure]:
    yield ROWS
    for column in columns:
        name, kind = column["name"], column["type"]
        yield Measure("nulls", (name,))
        if kind not in NESTED_TYPES:
            yield Measure("distinct", (name,))
        if kind in _NUMBERS:
            yield from (Measure("minimum", (name,)), Measure("maximum", (name,)))
    yield from map(_unmatched_measure, tables)


def _scan(
    place: TableBinding, partition: Interval, measures: Iterable[Measure], tables: Mapping[Name, StoredTable]
) -> ScanAnswers:
    looked_into = {name.table: target for name, target in tables.items()}
    part = place.part(Reach.PARTITION, partition)
    return run_scan(engine_for(place.target), Scan(place.target, tuple(measures), part, looked_into), LIMITS)


def _value_counts(
    place: TableBinding, partition: Interval, columns: Iterable[Mapping[str, Any]], scan_answers: ScanAnswers
) -> ScanAnswers:
    """How often each value occurs, of the columns of texts with the fewest values."""
    distinct = {
        column["name"]: _distinct(scan_answers, column) for column in columns if column["type"] == ColumnType.STRING
    }
    few = sorted((count, name) for name, count in distinct.items() if 0 < count <= MAX_DISTINCT_VALUES)
    measures = [Measure("frequencies", (name,)) for _, name in few[:MAX_VALUE_COUNTED_COLUMNS]]
    return _scan(place, partition, measures, {}) if measures else ScanAnswers({}, scan_count=0)


def _distinct(scan_answers: ScanAnswers, column: Mapping[str, Any]) -> int:
    return _as_count(scan_answers.answers.get(Measure("distinct", (column["name"],)))) or 0


def _profile(
    column: Mapping[str, Any],
    rows: int,
    answers: Mapping[Measure, Any],
    counted: Mapping[Measure, Any],
    tables: Iterable[Name],
) -> ColumnProfile:
    name = column["name"]
    values = counted.get(Measure("frequencies", (name,)))
    references = {
        table.dataset: _as_count(answers[_unmatched_measure(table)]) for table in tables if table.column == name
    }
    nulls = _as_count(answers[Measure("nulls", (name,))])
    return ColumnProfile(
        name=name,
        rows=rows if nulls is not None else 0,  # a column that cannot be read is proposed nothing
        nulls=nulls or 0,
        distinct=_as_count(answers.get(Measure("distinct", (name,)))),
        low=_as_float(answers.get(Measure("minimum", (name,)))),
        high=_as_float(answers.get(Measure("maximum", (name,)))),
        values={value: count for value, count in values.items() if value is not None}
        if isinstance(values, Mapping)
        else {},
        is_text=column["type"] == ColumnType.STRING,
        references={dataset: count for dataset, count in references.items() if count is not None},
    )


def _as_count(answer: Answer | object) -> int | None:
    return answer if isinstance(answer, int) else None


def _as_float(answer: object) -> float | None:
    try:
        return None if answer is None or isinstance(answer, bool) else float(answer)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        return None
