"""What all engines do alike with the measures of one scan: see which fit, ask in SQL, and tell the rows as answers.

An engine brings a `Backend`: its dialect of SQL and a way to run a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from quality.domain.expression.measures import Answer, Measure, Scalar
from quality.domain.expression.nodes import Name
from quality.domain.expression.values import Failed, error
from quality.engines.bins import MOST, bin_name
from quality.engines.fitting import Columns, answer_kind, cannot_look_up, fits, group_kind
from quality.engines.fusion import Answers, Fusion, Refused
from quality.engines.kinds import Kind, named, plain
from quality.engines.scan import CannotRead, Each, Limits, Scan
from quality.engines.select import (
    AGGREGATES,
    Bound,
    Dialect,
    Rows,
    Statement,
    Table,
    counted_apart,
    frequencies,
    select,
)

Row: TypeAlias = Sequence[Any]
_FUSED = frozenset(AGGREGATES) | {"unmatched"}


class Backend(Protocol):
    """Both raise `fusion.Refused` for a statement that is wrong."""

    @property
    def dialect(self) -> Dialect: ...

    def bind(self, statement: Statement) -> None:
        """Has the engine look at a statement over tables without a row."""

    def rows(self, statement: Statement) -> Sequence[Row]:
        """Runs it."""


@dataclass(frozen=True)
class Source:
    """A table as an engine reads it; `empty` has the same columns and no row."""

    table: Table
    columns: Columns
    empty: Table


@dataclass(frozen=True)
class Found:
    """The answers, how often the data was gone through, and how many groups there are (with `by`)."""

    answers: Answers
    scans: int
    groups: int = 0


class Reading:
    """One scan. `where` lets through the rows of the part, with its `parameters`; `tables` are those that are looked into."""

    def __init__(
        self, backend: Backend, scan: Scan, source: Source, limits: Limits, *, where: str = "", **parameters: object
    ) -> None:
        self._backend = backend
        self._group = scan.by or (scan.part.column if isinstance(scan.part, Each) else "")
        if self._group and isinstance(kind := group_kind(self._group, source.columns), Failed):
            raise CannotRead(kind.cause)
        most = scan.most + 1 if scan.by else limits.rows + 1
        self._rows = Rows(source.table, source.columns, where, parameters, self._group, most, ranked=bool(scan.by))
        self._empty = replace(self._rows, table=source.empty)
        self._source = source
        self._limits = limits
        self._groups = 0
        self._more_scans = 0

    def found(self, measures: Sequence[Measure], tables: Mapping[Name, Source | Failed]) -> Found:
        bound, bad = fits(measures, self._source.columns, self._backend.dialect.flavour)
        bad |= {one: why for one in bound if one.other is not None and (why := _cannot_look_up(one, tables[one.other]))}
        good = {one: values for one, values in bound.items() if one not in bad}
        fused = {one: values for one, values in good.items() if one.kind in _FUSED}
        apart = [one for one in good if one.kind == "frequencies"]
        unknown = {
            one: error(f"{one.kind} is not measured here") for one in good if one not in fused and one not in apart
        }
        lookups = {name: table for name, table in tables.items() if isinstance(table, Source)}
        fusion = Fusion(lambda some: self._bind(some, fused, lookups), lambda some: self._run(some, fused, lookups))
        answers = fusion.answers(list(fused))
        answers |= {one: self._frequencies(one) for one in apart}
        return Found({**answers, **bad, **unknown}, fusion.scans + self._more_scans + len(apart), self._groups)

    def _bind(self, some: Sequence[Measure], fused: Bound, lookups: Mapping[Name, Source]) -> None:
        tables = {name: Rows(source.empty, source.columns) for name, source in lookups.items()}
        self._backend.bind(select(self._backend.dialect, {one: fused[one] for one in some}, self._empty, tables))

    def _run(self, some: Sequence[Measure], fused: Bound, lookups: Mapping[Name, Source]) -> dict[Measure, Answer]:
        tables = {name: Rows(source.table, source.columns) for name, source in lookups.items()}
        bound = {one: fused[one] for one in some}
        self._more_scans += len(counted_apart(self._backend.dialect, bound, self._rows))
        rows = self._backend.rows(select(self._backend.dialect, bound, self._rows, tables))
        kinds = [answer_kind(one, self._source.columns) for one in some]
        if not self._group:
            return dict(zip(some, _plain(rows[0], kinds), strict=True))
        self._refuse_too_many(rows)
        self._groups = max(self._groups, rows[0][1] if rows else 0)
        told = [(self._name(row[0]), _plain(row[3:], kinds)) for row in rows]
        return {one: {name: answers[place] for name, answers in told} for place, one in enumerate(some)}

    def _frequencies(self, measure: Measure) -> Answer | Failed:
        try:
            rows = self._backend.rows(
                frequencies(
                    self._backend.dialect,
                    measure,
                    self._rows if not self._rows.ranked else replace(self._rows, most=self._limits.rows + 1),
                )
            )
            self._refuse_too_many(rows)
        except Refused as refused:
            return refused.failed
        kind = self._source.columns[measure.columns[0]]
        groups: dict[str | None, dict[str | None, int]] = {}
        for group, value, count in rows:
            bins = groups.setdefault(self._name(group), {})
            bins[_bin(value, kind)] = int(count)
        if any(len(bins) > MOST for bins in groups.values()):
            return error(f"`{measure.columns[0]}` has more than {MOST:,} different values, which is no distribution")
        return groups if self._group else groups.get(None, {})

    def _refuse_too_many(self, rows: Sequence[Row]) -> None:
        if len(rows) > self._limits.rows:
            raise Refused(error(f"`{self._group}` has more than {self._limits.rows:,} groups"), over=True)

    def _name(self, value: object) -> str | None:
        return named(plain(value, self._source.columns[self._group])) if self._group else None


def _plain(row: Row, kinds: Sequence[Kind]) -> list[Scalar]:
    return [plain(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _bin(value: Any, kind: Kind) -> str | None:
    if value is None:
        return None
    return bin_name(int(value)) if kind.is_number else named(plain(value, kind))


def _cannot_look_up(measure: Measure, table: Source | Failed) -> Failed | None:
    return table if isinstance(table, Failed) else cannot_look_up(measure, table.columns)
