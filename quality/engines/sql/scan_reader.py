"""What all engines do alike with the measures of one scan: see which fit, ask in SQL, and tell the rows as answers.

An engine brings a `SqlBackend`: its dialect of SQL and a way to run a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from quality.domain.language.measures import Answer, Measure, Scalar
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
    BoundMeasures,
    RowSelection,
    SqlDialect,
    Statement,
    TableExpression,
    frequency_query,
    measure_query,
    separately_counted,
)
from quality.engines.sql.numeric_bins import MAX_BINS, bin_name

Row: TypeAlias = Sequence[Any]
_FUSED_KINDS = frozenset(AGGREGATES) | {"unmatched"}


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
        self._group = scan.group_by or (scan.part.column if isinstance(scan.part, EachPartition) else "")
        if self._group and isinstance(kind := group_column_type(self._group, source.columns), Failed):
            raise CannotRead(kind.cause)
        most = scan.max_groups + 1 if scan.group_by else limits.max_rows + 1
        self._rows = RowSelection(
            source.table, source.columns, where, parameters, self._group, most, largest_first=bool(scan.group_by)
        )
        self._empty = replace(self._rows, table=source.empty)
        self._source = source
        self._limits = limits
        self._group_count = 0
        self._extra_scans = 0

    def answer(self, measures: Sequence[Measure], tables: Mapping[Name, ReadableTable | Failed]) -> ReaderAnswers:
        bound, bad = check_measures(measures, self._source.columns, self._backend.dialect.flavour)
        bad |= {
            measure: why
            for measure in bound
            if measure.other is not None and (why := _lookup_failure(measure, tables[measure.other]))
        }
        good = {measure: values for measure, values in bound.items() if measure not in bad}
        fused = {measure: values for measure, values in good.items() if measure.kind in _FUSED_KINDS}
        apart = [measure for measure in good if measure.kind == "frequencies"]
        unknown = {
            measure: error(f"{measure.kind} is not measured here")
            for measure in good
            if measure not in fused and measure not in apart
        }
        lookups = {name: table for name, table in tables.items() if isinstance(table, ReadableTable)}
        fusion = FusedQuery(lambda some: self._bind(some, fused, lookups), lambda some: self._run(some, fused, lookups))
        answers = fusion.answers(list(fused))
        answers |= {measure: self._frequencies(measure) for measure in apart}
        return ReaderAnswers(
            {**answers, **bad, **unknown}, fusion.scan_count + self._extra_scans + len(apart), self._group_count
        )

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

    def _refuse_too_many(self, rows: Sequence[Row]) -> None:
        if len(rows) > self._limits.max_rows:
            raise QueryRefused(error(f"`{self._group}` has more than {self._limits.max_rows:,} groups"), is_final=True)

    def _name(self, value: object) -> str | None:
        return value_name(normalize_value(value, self._source.columns[self._group])) if self._group else None


def _normalize_row(row: Row, kinds: Sequence[ColumnType]) -> list[Scalar]:
    return [normalize_value(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _bin_name(value: Any, kind: ColumnType) -> str | None:
    if value is None:
        return None
    return bin_name(int(value)) if kind.is_number else value_name(normalize_value(value, kind))


def _lookup_failure(measure: Measure, table: ReadableTable | Failed) -> Failed | None:
    return table if isinstance(table, Failed) else lookup_failure(measure, table.columns)
