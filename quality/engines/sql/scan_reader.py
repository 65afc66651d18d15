"""What all engines do alike with the measures of one scan: see which fit, ask in SQL, and tell the rows as answers.

An engine brings a `SqlBackend`: its dialect of SQL and a way to run a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from quality.domain.language.measures import ROWS, Answer, Measure, Scalar
from quality.domain.language.tree.nodes import Name
from quality.domain.language.values import Failed, error
from quality.engines.scans.column_types import ColumnType, normalize_value, value_name
from quality.engines.scans.parts import CannotRead, EachPartition
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sql.fused_query import FusedQuery, MeasureAnswers, QueryRefused
from quality.engines.sql.measure_checks import (
    ColumnTypes,
    answer_type,
    check_measures,
    group_column_type,
    lookup_failure,
)
from quality.engines.sql.measure_sql import (
    AGGREGATES,
    CONDITIONS,
    KEY_KINDS,
    MAX_SHOWN_TEXT,
    REPEATS_COLUMN,
    BoundMeasures,
    RowSelection,
    SqlDialect,
    Statement,
    TableExpression,
    failing_rows_query,
    frequency_query,
    measure_query,
    scanned_column,
    separately_counted,
)
from quality.engines.sql.numeric_bins import MAX_BINS, bin_name
from quality.engines.sql.partition_filter import partition_group
from quality.engines.sql.repeated_keys import (
    RepeatedKeys,
    StreamingBackend,
    as_answer,
    find_repeated_keys,
    grouped_counts,
    grouped_names,
)

Row: TypeAlias = Sequence[Any]
FUSED_KINDS = frozenset(AGGREGATES) | {"unmatched"}
"""What one query answers for all of a scan."""
ROW_KINDS = frozenset(CONDITIONS) | {"unmatched"} | KEY_KINDS
"""What has rows to show: those that it counts, or the keys that repeat."""


class SqlBackend(Protocol):
    """Both raise `QueryRefused` for a statement that is wrong."""

    @property
    def dialect(self) -> SqlDialect: ...

    def bind(self, statement: Statement) -> None:
        """Has the engine look at a statement over tables without a row."""

    def rows(self, statement: Statement) -> Sequence[Row]:
        """Runs it."""


@dataclass(frozen=True)
class ReadableTable:
    """A table as an engine reads it; `empty` has the same columns and no row."""

    table: TableExpression
    columns: ColumnTypes
    empty: TableExpression


@dataclass(frozen=True)
class ReaderAnswers:
    """The answers, how often the data was gone through, and how many groups there are (with `group_by`)."""

    answers: MeasureAnswers
    scan_count: int
    group_count: int = 0


class ScanReader:
    """One scan. `where` lets through the rows of the part, with its `parameters`; `tables` are those that are looked into."""

    def __init__(
        self,
        backend: SqlBackend,
        scan: Scan,
        source: ReadableTable,
        limits: Limits,
        *,
        where: str = "",
        **parameters: object,
    ) -> None:
        self._backend = backend
        self._part = scan.part
        self._group, self._group_type = self._grouping(scan, source.columns)
        most = scan.max_groups + 1 if scan.group_by else limits.max_rows + 1
        self._rows = RowSelection(
            source.table, source.columns, where, parameters, self._group, most, largest_first=bool(scan.group_by)
        )
        self._empty = replace(self._rows, table=source.empty)
        self._source = source
        self._limits = limits
        self._group_count = 0
        self._extra_scans = 0

    def _grouping(self, scan: Scan, columns: ColumnTypes) -> tuple[str, ColumnType]:
        """The expression that rows are grouped by, and its type; nothing without groups."""
        if isinstance(scan.part, EachPartition) and not scan.group_by:
            return partition_group(scan.part, self._backend.dialect, columns)
        if not scan.group_by:
            return "", ColumnType.OTHER
        if isinstance(kind := group_column_type(scan.group_by, columns), Failed):
            raise CannotRead(kind.cause)
        return scanned_column(self._backend.dialect, scan.group_by, columns), kind

    def answer(self, measures: Sequence[Measure], tables: Mapping[Name, ReadableTable | Failed]) -> ReaderAnswers:
        bound, bad = check_measures(measures, self._source.columns, self._backend.dialect.flavour)
        bad |= {
            measure: why
            for measure in bound
            if measure.other is not None and (why := _lookup_failure(measure, tables[measure.other]))
        }
        good = {measure: values for measure, values in bound.items() if measure not in bad}
        listed = [measure for measure in good if measure.shown and measure.kind in ROW_KINDS]
        fused = {
            measure: values for measure, values in good.items() if measure.kind in FUSED_KINDS and not measure.shown
        }
        apart = [measure for measure in good if measure.kind == "frequencies"]
        searched = [measure for measure in good if measure.kind == "across_partitions"]
        unknown = {
            measure: error(f"{measure.kind} is not measured here")
            for measure in good
            if measure not in fused and measure not in (*apart, *listed, *searched)
        }
        lookups = {name: table for name, table in tables.items() if isinstance(table, ReadableTable)}
        fusion = FusedQuery(lambda some: self._bind(some, fused, lookups), lambda some: self._run(some, fused, lookups))
        answers = fusion.answers(list(fused))
        answers |= {measure: self._frequencies(measure) for measure in apart}
        answers |= {measure: self._failing_rows(measure, good[measure], lookups) for measure in listed}
        answers |= {measure: self._across_partitions(measure) for measure in searched}
        scan_count = fusion.scan_count + self._extra_scans + len(apart) + len(listed) + len(searched)
        return ReaderAnswers({**answers, **bad, **unknown}, scan_count, self._group_count)

    def _bind(self, some: Sequence[Measure], fused: BoundMeasures, lookups: Mapping[Name, ReadableTable]) -> None:
        tables = {name: RowSelection(source.empty, source.columns) for name, source in lookups.items()}
        self._backend.bind(
            measure_query(self._backend.dialect, {measure: fused[measure] for measure in some}, self._empty, tables)
        )

    def _run(
        self, some: Sequence[Measure], fused: BoundMeasures, lookups: Mapping[Name, ReadableTable]
    ) -> dict[Measure, Answer]:
        tables = {name: RowSelection(source.table, source.columns) for name, source in lookups.items()}
        bound = {measure: fused[measure] for measure in some}
        self._extra_scans += len(separately_counted(self._backend.dialect, bound, self._rows))
        rows = self._backend.rows(measure_query(self._backend.dialect, bound, self._rows, tables))
        kinds = [answer_type(measure, self._source.columns) for measure in some]
        if not self._group:
            return dict(zip(some, _normalize_row(rows[0], kinds), strict=True))
        self._refuse_too_many(rows)
        self._group_count = max(self._group_count, rows[0][1] if rows else 0)
        group_answers = [(self._name(row[0]), _normalize_row(row[3:], kinds)) for row in rows]
        return {
            measure: {name: answers[place] for name, answers in group_answers} for place, measure in enumerate(some)
        }

    def _frequencies(self, measure: Measure) -> Answer | Failed:
        try:
            rows = self._backend.rows(
                frequency_query(
                    self._backend.dialect,
                    measure,
                    self._rows
                    if not self._rows.largest_first
                    else replace(self._rows, max_groups=self._limits.max_rows + 1),
                )
            )
            self._refuse_too_many(rows)
        except QueryRefused as refused:
            return refused.failed
        kind = self._source.columns[measure.columns[0]]
        groups: dict[str | None, dict[str | None, int]] = {}
        for group, value, count in rows:
            bins = groups.setdefault(self._name(group), {})
            bins[_bin_name(value, kind)] = int(count)
        if any(len(bins) > MAX_BINS for bins in groups.values()):
            return error(
                f"`{measure.columns[0]}` has more than {MAX_BINS:,} different values, which is no distribution"
            )
        return groups if self._group else groups.get(None, {})

    def _failing_rows(
        self, measure: Measure, values: Sequence[Scalar], lookups: Mapping[Name, ReadableTable]
    ) -> Answer | Failed:
        """In the columns that there are, as texts."""
        columns = self._source.columns
        measure = replace(measure, shown=tuple(name for name in measure.shown if name in columns))
        tables = {name: RowSelection(source.table, source.columns) for name, source in lookups.items()}
        try:
            rows = self._backend.rows(failing_rows_query(self._backend.dialect, measure, values, self._rows, tables))
        except QueryRefused as refused:
            return refused.failed
        shown = measure.columns if measure.kind in KEY_KINDS else measure.shown
        kinds = [_shown_kind(columns[name]) for name in shown]
        counted = [REPEATS_COLUMN] if measure.kind in KEY_KINDS else []
        kinds += [ColumnType.INTEGER for _ in counted]
        texts = [
            [value_name(normalize_value(value, kind)) for value, kind in zip(row, kinds, strict=True)] for row in rows
        ]
        return {"columns": [*shown, *counted], "rows": [[_cut(text) for text in row] for row in texts]}

    def _across_partitions(self, measure: Measure) -> Answer | Failed:
        """The keys in more than one partition of the whole table. So many keys as memory may not hold are found by a filter."""
        if not isinstance(self._part, EachPartition):
            return error("this table has no partitions: test duplicates(this) instead")
        columns = self._source.columns
        try:
            repeated = self._repeated_keys(measure)
        except QueryRefused as refused:
            return refused.failed
        kinds = [_shown_kind(columns[name]) for name in measure.columns]
        named: list[list[str | None]] = []
        for values, count, first, last in repeated.named:
            texts = [value_name(normalize_value(value, kind)) for value, kind in zip(values, kinds, strict=True)]
            named.append([*map(_cut, texts), str(count), self._name(first), self._name(last)])
        return as_answer(repeated, measure.columns, named)

    def _repeated_keys(self, measure: Measure) -> RepeatedKeys:
        backend, dialect = self._backend, self._backend.dialect
        rows = replace(self._rows, group_by="")
        if isinstance(backend, StreamingBackend):
            ((total,),) = backend.rows(measure_query(dialect, {ROWS: ()}, rows, {}))
            if total > self._limits.max_grouped_keys:
                return find_repeated_keys(backend, dialect, measure, rows, self._group, total)
        ((keyed, keys, repeated),) = backend.rows(grouped_counts(dialect, measure, rows, self._group))
        named = backend.rows(grouped_names(dialect, measure, rows, self._group)) if keys else ()
        return RepeatedKeys(
            int(keyed), int(keys), int(repeated), [(row[:-3], int(row[-3]), *row[-2:]) for row in named], "grouped"
        )

    def _refuse_too_many(self, rows: Sequence[Row]) -> None:
        if len(rows) > self._limits.max_rows:
            column = self._part.column if isinstance(self._part, EachPartition) else self._group
            raise QueryRefused(error(f"`{column}` has more than {self._limits.max_rows:,} groups"), is_final=True)

    def _name(self, value: object) -> str | None:
        if not self._group:
            return None
        name = value_name(normalize_value(value, self._group_type))
        return self._part.name_of(name) if isinstance(self._part, EachPartition) else name


def _shown_kind(kind: ColumnType) -> ColumnType:
    return ColumnType.TEXT if kind in (ColumnType.BINARY, ColumnType.NESTED, ColumnType.OTHER) else kind


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_SHOWN_TEXT else f"{text[:MAX_SHOWN_TEXT]}…"


def _normalize_row(row: Row, kinds: Sequence[ColumnType]) -> list[Scalar]:
    return [normalize_value(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _bin_name(value: Any, kind: ColumnType) -> str | None:
    if value is None:
        return None
    return bin_name(int(value)) if kind.is_number else value_name(normalize_value(value, kind))


def _lookup_failure(measure: Measure, table: ReadableTable | Failed) -> Failed | None:
    return table if isinstance(table, Failed) else lookup_failure(measure, table.columns)
