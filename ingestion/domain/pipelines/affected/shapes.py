"""A SELECT taken apart as far as it takes to follow changes: what it reads, by what it joins that, and what it makes of it.

Tables and queries stand side by side after FROM and JOIN. A column is *traced* where its value is computed from one row of each of them, so that the rows which a change reaches are known by it.
What is computed from a group or a window, or from an input whose changes are ignored, is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ingestion.domain.pipelines.affected.computed import (
    columns_of,
    conjuncts,
    has_aggregate,
    has_window,
    is_computed_from,
)
from ingestion.domain.pipelines.affected.not_followed import NotFollowed, shown
from ingestion.domain.pipelines.view_names import OWN
from lakehub.kernel.suggest import did_you_mean

PARTNER = f"{OWN}partner_"
"""Before the number of a place that has no name, as it stands in a condition."""
Path = tuple[int, ...]
"""Where a query reads an input: by the numbers of places after FROM and JOIN, and of SELECTs of a UNION, from the outermost query to the input itself."""


@dataclass(frozen=True, eq=False)
class InputTable:
    """`name` in small letters. `columns`: None where they are not known.

    `is_ignored`: its changes are not followed. What its rows were when a row of the target was made nobody knows, so nothing that is computed from them is traced.
    """

    name: str
    columns: tuple[str, ...] | None
    is_ignored: bool = False

    input_count = 1
    depth = 0

    def occurrences(self, name: str) -> Iterator[Path]:
        if name == self.name:
            yield ()

    @property
    def inputs(self) -> set[str]:
        return {self.name}

    def traces(self, _column: str) -> bool:
        return not self.is_ignored

    def ignored_behind(self, columns: Collection[str]) -> set[str]:
        """The ignored inputs that its `columns` are computed from."""
        return {self.name} if self.is_ignored and columns else set()


@dataclass(frozen=True, eq=False)
class Place:
    """One place after FROM or JOIN. `alias`: what the SELECT calls it there, in small letters. `on`: None for the first and for a cross join.

    `is_optional`: rows of the places before it stay where it has none (LEFT JOIN). `is_hidden`: its columns are seen by `on` alone (SEMI and ANTI JOIN, `IN (SELECT ...)`).
    `using`: columns that are those of a place before it.
    """

    alias: str
    source: Source
    on: exp.Expr | None = None
    using: tuple[str, ...] = ()
    is_optional: bool = False
    is_hidden: bool = False


@dataclass(frozen=True)
class Output:
    """A column that a SELECT makes, its name in small letters; empty where it has none."""

    name: str
    value: exp.Expr


@dataclass(frozen=True)
class MissingColumn:
    """A name that stands for nothing. `owner`: the table or query that it was looked for in; empty: all of them."""

    name: str
    owner: str
    hint: str


@dataclass(frozen=True, eq=False)
class Selection:
    """One SELECT. In all expressions a column has the alias of its place before it, unless it may be of several.

    `open_places`: of which the SELECT makes all columns, which are not known. `grouping`: None where it groups nothing. `windows`: of each the expressions of its PARTITION BY.
    """

    places: tuple[Place, ...]
    outputs: tuple[Output, ...]
    open_places: tuple[Place, ...] = ()
    where: exp.Expr | None = None
    grouping: tuple[exp.Expr, ...] | None = None
    windows: tuple[tuple[exp.Expr, ...], ...] = ()
    is_distinct: bool = False
    missing: tuple[MissingColumn, ...] = ()
    _traced: dict[str, bool] = field(default_factory=dict, init=False, repr=False)

    def checked(self) -> Selection:
        """Raises NotFollowed where its windows do not keep rows apart."""
        if self.windows and not self.partitioning and not self.is_ignored:
            raise NotFollowed(self._why_not_apart())
        return self

    def _why_not_apart(self) -> str:
        if ignored := sorted(self.ignored_in(self._shared_by_windows)):
            parts = ", ".join(map(shown, self._shared_by_windows))
            return (
                f"Its windows are partitioned by `{parts}`, from the input `{ignored[0]}`, whose changes are ignored, so a row that changes may reach all others: "
                f"partition them by columns of inputs whose changes are followed as well, or remove `changes: ignored` from `{ignored[0]}`."
            )
        return "Its windows share no column in PARTITION BY, so a row that changes reaches all others: partition them by the record key or a part of it, or make what they compute a pipeline of its own."

    @cached_property
    def by_alias(self) -> dict[str, Place]:
        return {place.alias: place for place in self.places}

    @cached_property
    def input_count(self) -> int:
        return sum(place.source.input_count for place in self.places)

    @cached_property
    def depth(self) -> int:
        return 1 + max(place.source.depth for place in self.places)

    @cached_property
    def inputs(self) -> set[str]:
        return {name for place in self.places for name in place.source.inputs}

    @cached_property
    def is_ignored(self) -> bool:
        """No change of what it reads is followed."""
        return all(place.source.is_ignored for place in self.places)

    def ignored_behind(self, columns: Collection[str]) -> set[str]:
        """Raises NotFollowed where it makes no such column."""
        return self.ignored_in([self.value_of(column) for column in columns])

    def ignored_in(self, expressions: Collection[exp.Expr]) -> set[str]:
        """The ignored inputs that `expressions` over its places are computed from."""
        used = {place: columns_of(place.alias, expressions) for place in self.places}
        return {name for place, columns in used.items() for name in place.source.ignored_behind(columns)}

    def occurrences(self, name: str) -> Iterator[Path]:
        for number, place in enumerate(self.places):
            yield from ((number, *rest) for rest in place.source.occurrences(name))

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """The names of what it makes; None: not all are known."""
        return None if self.open_places else tuple(output.name for output in self.outputs)

    @cached_property
    def _values(self) -> dict[str, exp.Expr]:
        return {output.name: output.value for output in reversed(self.outputs) if output.name}

    def value_of(self, column: str) -> exp.Expr:
        """Raises NotFollowed where it makes no such column, or none of its own."""
        value = self._values.get(column.lower())
        if value is not None:
            return value
        if len(self.open_places) == 1:
            return column_of(self.open_places[0].alias, column)
        hint = did_you_mean(column, [output.name for output in self.outputs])
        raise NotFollowed(f"The SELECT has no column `{column}` of its own: write it out, with its table.{hint}")

    def traces(self, column: str) -> bool:
        if column not in self._traced:
            self._traced[column] = self._traces(column)
        return self._traced[column]

    def _traces(self, column: str) -> bool:
        if column not in self._values and len(self.open_places) != 1:
            return False
        value = self.value_of(column)
        is_of_row = not has_aggregate(value) and not has_window(value)
        is_of_group = self.grouping is None or is_computed_from(value, self.grouping)
        return is_of_row and is_of_group and self.is_traced(value)

    def is_traced(self, expression: exp.Expr) -> bool:
        """Of rows before they are grouped: all columns that it uses are traced. `concat_ws('-', *)` uses those of all places, whichever are read for it."""
        columns = expression.find_all(exp.Column)
        return expression.find(exp.Star) is None and all(self._is_traced(column) for column in columns)

    def _is_traced(self, column: exp.Column) -> bool:
        place = self.by_alias.get(column.table)
        return self._is_traced_by_any if place is None else place.source.traces(column.name)

    @cached_property
    def _is_traced_by_any(self) -> bool:
        """Of a column that may be of several places, which is left to the engine. Where nothing is known of the inputs, it is assumed to be right."""
        is_certain = all(isinstance(place.source, InputTable) and not place.source.is_ignored for place in self.places)
        is_unknown = all(place.source.columns is None for place in self.places)
        return is_certain and (is_unknown or not any(place.is_optional for place in self.places))

    @cached_property
    def partitioning(self) -> tuple[exp.Expr, ...]:
        """What all of its windows partition by, as far as that is traced: rows that differ in it have nothing to do with each other."""
        return tuple(
            each
            for each in self._shared_by_windows
            if not has_aggregate(each) and not has_window(each) and self.is_traced(each)
        )

    @property
    def _shared_by_windows(self) -> list[exp.Expr]:
        first, *others = self.windows
        return [each for each in first if all(each in other for other in others)]

    def is_of_partition(self, column: str) -> bool:
        """All rows of a partition of its windows have the same value in it."""
        return self.traces(column) and is_computed_from(self.value_of(column), self.partitioning)

    def aliases_in(self, expression: exp.Expr) -> set[str]:
        """The places whose columns it uses; of a column that may be of several, all of them."""
        used = {column.table for column in expression.find_all(exp.Column)}
        return used if used <= self.by_alias.keys() else {*self.by_alias}

    @cached_property
    def conditions(self) -> tuple[tuple[Place | None, exp.Expr], ...]:
        """By which its places are joined and their rows chosen, each with the place after whose ON it stands; None: after WHERE."""
        of_places = [(place, each) for place in self.places for each in conjuncts(place.on)]
        return (*of_places, *((None, each) for each in conjuncts(self.where)))


@dataclass(frozen=True, eq=False)
class Combination:
    """SELECTs whose rows are put together (UNION), or taken from each other (EXCEPT, INTERSECT): either way a row is there or not because of rows that equal it as a whole.
    All make columns of the same names, in the same order."""

    branches: tuple[Query, ...]

    @cached_property
    def input_count(self) -> int:
        return sum(branch.input_count for branch in self.branches)

    @cached_property
    def depth(self) -> int:
        return 1 + max(branch.depth for branch in self.branches)

    @cached_property
    def inputs(self) -> set[str]:
        return {name for branch in self.branches for name in branch.inputs}

    @cached_property
    def is_ignored(self) -> bool:
        return all(branch.is_ignored for branch in self.branches)

    def ignored_behind(self, columns: Collection[str]) -> set[str]:
        """Raises NotFollowed where a branch makes no such column."""
        return {name for branch in self.branches for name in branch.ignored_behind(columns)}

    def occurrences(self, name: str) -> Iterator[Path]:
        for number, branch in enumerate(self.branches):
            yield from ((number, *rest) for rest in branch.occurrences(name))

    @property
    def columns(self) -> tuple[str, ...] | None:
        return self.branches[0].columns

    def value_of(self, column: str) -> exp.Expr:
        return self.branches[0].value_of(column)

    def traces(self, column: str) -> bool:
        return all(branch.traces(column) for branch in self.branches)


Query = Selection | Combination
Source = InputTable | Query


def column_of(alias: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name.lower(), quoted=True), table=exp.to_identifier(alias, quoted=True))
