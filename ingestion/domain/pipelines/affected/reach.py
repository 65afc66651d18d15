"""Queries for the rows that changes reach: one input is read as its changed rows, in one of the places where a query reads it, and all others as whatever rows they have or had.

What comes out may be too much, never too little. So what is computed from a group or a window, and cannot be traced to the changed rows, is left out: a condition, a join that only narrows. So is what is computed from an input
whose changes are ignored: a row of the target may have been made from rows that it has no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from sqlglot import exp

from ingestion.domain.pipelines.affected.computed import columns_of
from ingestion.domain.pipelines.affected.not_followed import NotFollowed, shown
from ingestion.domain.pipelines.affected.shapes import (
    PARTNER,
    Combination,
    InputTable,
    Path,
    Place,
    Query,
    Selection,
    Source,
    column_of,
)
from ingestion.domain.pipelines.view_names import ANY, CHANGED, OWN

Values = Mapping[str, exp.Expr]
"""What a query is to make, by the names of its columns."""
_IS_THERE = "is_there"


def reached_rows(query: Query, changed: Path | None, columns: Sequence[str]) -> exp.Query:
    """The values of `columns`, which are traced, in rows that the changed rows at `changed` reach; None: in all that the query makes or made. Raises NotFollowed."""
    if isinstance(query, Combination):
        return _of_branches(query, changed, columns)
    values = {name: query.value_of(name) for name in columns}
    if changed is None or not query.windows or all(map(query.is_of_partition, columns)):
        return _Rows(query, changed, values).query()
    return _of_partitions(query, changed, values)


def _of_branches(query: Combination, changed: Path | None, columns: Sequence[str]) -> exp.Query:
    """Those that the change is not in make no rows, but have a say in the types of the columns."""
    number = None if changed is None else changed[0]
    branches = [
        reached_rows(branch, changed[1:] if changed and n == number else None, columns)
        for n, branch in enumerate(query.branches)
    ]
    if number is not None:
        branches = [each if n == number else _without_rows(each) for n, each in enumerate(branches)]
    return exp.union(*branches, distinct=False)


def _without_rows(query: exp.Query) -> exp.Select:
    return exp.select("*").from_(_bracketed(query, f"{OWN}none")).where(exp.false())


def _of_partitions(query: Selection, changed: Path, values: Values) -> exp.Select:
    """A window lets a row reach all rows of its partitions, and so of what all windows partition by."""
    parts = {f"{OWN}part_{number}": each for number, each in enumerate(query.partitioning)}
    rows = _bracketed(_Rows(query, None, {**values, **parts}).query(), f"{OWN}rows")
    reached = _bracketed(_Rows(query, changed, parts).query().distinct(), f"{OWN}reached")
    same = [
        exp.NullSafeEQ(this=column_of(f"{OWN}rows", part), expression=column_of(f"{OWN}reached", part))
        for part in parts
    ]
    selected = [_named(column_of(f"{OWN}rows", name), name) for name in values]
    return exp.Select(expressions=selected or [_some_value()]).from_(rows).join(reached, on=exp.and_(*same))


def traced_columns(source: Source, changed: Path | None, needed: Collection[str]) -> Callable[[str], bool]:
    """Whether a column has a value in the rows that a change reaches, where `needed` have one in any case. Of rows with windows the partition is known at once,
    all else only by reading all of them: that is done where `needed` cannot do without."""
    if changed is None or isinstance(source, InputTable):
        return source.traces
    if isinstance(source, Combination):
        of_branch = traced_columns(source.branches[changed[0]], changed[1:], needed)
        return lambda column: source.traces(column) and of_branch(column)
    if source.windows:
        return source.is_of_partition if all(map(source.is_of_partition, needed)) else source.traces
    return _traced_by_place(source, changed, needed)


def _traced_by_place(query: Selection, changed: Path, needed: Collection[str]) -> Callable[[str], bool]:
    place = query.places[changed[0]]
    values = [query.value_of(column) for column in needed if query.traces(column)]
    of_place = traced_columns(place.source, changed[1:], needed_columns(query, place, values))

    @cache
    def traces(column: str) -> bool:
        return query.traces(column) and all(map(of_place, columns_of(place.alias, [query.value_of(column)])))

    return traces


def needed_columns(query: Selection, place: Place, values: Collection[exp.Expr]) -> set[str]:
    """Columns of a place without which the values cannot be computed, or not be joined to it."""
    needed = columns_of(place.alias, values)
    if any(query.aliases_in(value) - {place.alias} for value in values):
        links = [each for _, each in query.conditions if len(query.aliases_in(each)) > 1]
        needed |= columns_of(place.alias, [each for each in links if query.is_traced(each)])
    return needed


@dataclass(frozen=True, eq=False)
class _Condition:
    """`place`: after whose ON it stands; None: after WHERE."""

    place: Place | None
    expression: exp.Expr
    aliases: frozenset[str]


@dataclass(frozen=True, eq=False)
class _Rows:
    """The query for `values` in rows of `selection`, before they are grouped."""

    selection: Selection
    changed: Path | None
    values: Values

    def query(self) -> exp.Select:
        self._require_links()
        selected = [_named(self._where_there_may_be_none(value), name) for name, value in self.values.items()]
        query = exp.Select(expressions=selected or [_some_value()])
        for place in self._places:
            query = self._with_place(query, place)
        return query.where(*map(self._where_there_may_be_none, self._conditions_after(None)), copy=False)

    # Which places and conditions have a part in it

    @cached_property
    def _changed_place(self) -> Place | None:
        return None if self.changed is None else self.selection.places[self.changed[0]]

    def _path_of(self, place: Place) -> Path | None:
        return self.changed[1:] if self.changed is not None and place is self._changed_place else None

    @cached_property
    def _traced(self) -> Mapping[str, Callable[[str], bool]]:
        """By alias of the place."""
        traced = {}
        for place in self.selection.places:
            needed = needed_columns(self.selection, place, [*self.values.values()])
            traced[place.alias] = traced_columns(place.source, self._path_of(place), needed)
        return traced

    @cached_property
    def _conditions(self) -> list[_Condition]:
        """All that can be traced."""
        return [
            _Condition(place, each, frozenset(self.selection.aliases_in(each)))
            for place, each in self.selection.conditions
            if self._is_traced(each)
        ]

    def _is_traced(self, expression: exp.Expr) -> bool:
        aliases = self.selection.aliases_in(expression)
        return self.selection.is_traced(expression) and all(
            all(map(self._traced[alias], columns_of(alias, [expression]))) for alias in aliases
        )

    @cached_property
    def _wanted(self) -> set[str]:
        """The places whose rows the values are made from, and that of the changed rows."""
        wanted = {alias for value in self.values.values() for alias in self.selection.aliases_in(value)}
        return wanted | ({self._changed_place.alias} if self._changed_place else set())

    @cached_property
    def _places(self) -> list[Place]:
        """Those that are wanted and all that narrow these, with what they are joined by."""
        places = self.selection.places
        included = self._wanted | {place.alias for place in places if not place.is_optional}
        for condition in self._conditions:
            included |= condition.aliases if condition.place is None and len(condition.aliases) > 1 else set()
        for place in reversed(places):
            if place.alias in included:
                for condition in self._conditions:
                    included |= condition.aliases if condition.place is place else set()
        links = [each.aliases for each in self._conditions if each.aliases <= included]
        kept = {alias for wanted in self._wanted for alias in _linked(wanted, links)}
        return [place for place in places if place.alias in kept]

    @cached_property
    def _aliases(self) -> set[str]:
        return {place.alias for place in self._places}

    def _conditions_after(self, place: Place | None) -> Iterator[exp.Expr]:
        for condition in self._conditions:
            if condition.place is place and condition.aliases <= self._aliases:
                yield condition.expression

    def _require_links(self) -> None:
        """Raises NotFollowed where a join that the SELECT has conditions for would be left without any."""
        if not self._wanted:
            return
        start = self._changed_place.alias if self._changed_place else min(self._wanted)
        written = [frozenset(self.selection.aliases_in(each)) for _, each in self.selection.conditions]
        traced = [each.aliases for each in self._conditions if each.aliases <= self._aliases]
        lost = (_linked(start, written) - _linked(start, traced)) & self._wanted
        if lost:
            joined = " and ".join(sorted(map(_as_written, (start, min(lost)))))
            raise NotFollowed(f"{joined} are joined {self._why_unlinked(start, min(lost), traced)}")

    def _why_unlinked(self, start: str, lost: str, traced: Collection[frozenset[str]]) -> str:
        selection = self.selection
        untraced = [each for _, each in selection.conditions if not self._is_traced(each)]
        of_ignored = [each for each in untraced if selection.ignored_in([each])]
        if lost in _linked(start, [*traced, *map(selection.aliases_in, of_ignored)]):
            name = min(selection.ignored_in(of_ignored))
            return (
                f"only by columns of the input `{name}`, whose changes are ignored ({_as_list(of_ignored)}): "
                f"join them by columns of inputs whose changes are followed, or remove `changes: ignored` from `{name}`."
            )
        return f"by what is computed from a group or a window ({_as_list(untraced)}): make the query that computes it a pipeline of its own, and join its table."

    # How they are written

    def _with_place(self, query: exp.Select, place: Place) -> exp.Select:
        may_be_none = place.is_optional and place is not self._changed_place
        on = [self._where_there_may_be_none(each, place) for each in self._conditions_after(place)]
        if query.args.get("from_") is None:
            if not may_be_none:
                return self._with_none(query.from_(self._source(place)), place, on)
            query = query.from_(_bracketed(exp.select(_some_value()), f"{OWN}start"))
        kind = "LEFT" if may_be_none else "INNER" if on else "CROSS"
        condition = exp.and_(*on) if on else exp.true() if may_be_none else None
        return self._with_none(query.join(self._source(place), on=condition, join_type=kind), place, [])

    def _with_none(self, query: exp.Select, place: Place, conditions: Sequence[exp.Expr]) -> exp.Select:
        """Each row of an optional place once as it is, and once as if there were none: that changes with the place, and is seen by what is computed from it."""
        query = query.where(*conditions, copy=False)
        if place.alias not in self._seen_as_none:
            return query
        both = exp.union(
            exp.select(_named(exp.true(), _IS_THERE)), exp.select(_named(exp.false(), _IS_THERE)), distinct=False
        )
        return query.join(_bracketed(both, _flag(place.alias)), join_type="CROSS")

    @cached_property
    def _seen_as_none(self) -> set[str]:
        """The optional places whose columns are used outside of their own ON."""
        optional = {place.alias for place in self._places if place.is_optional}
        used = {alias for value in self.values.values() for alias in self.selection.aliases_in(value)}
        for condition in self._conditions:
            if condition.aliases <= self._aliases:
                used |= condition.aliases - ({condition.place.alias} if condition.place else set())
        return optional & used

    def _where_there_may_be_none(self, expression: exp.Expr, place: Place | None = None) -> exp.Expr:
        """`place`: after whose ON it stands."""
        optional = self._seen_as_none - ({place.alias} if place else set())

        def flagged(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.table not in optional:
                return node
            return exp.case().when(column_of(_flag(node.table), _IS_THERE), node.copy())

        return expression.transform(flagged)

    def _source(self, place: Place) -> exp.Expr:
        path = self._path_of(place)
        if isinstance(place.source, InputTable):
            view = exp.to_table(f"{ANY if path is None else CHANGED}{place.source.name}")
            return exp.alias_(view, place.alias, table=True, quoted=True)
        conditions = [each.expression for each in self._conditions if each.aliases <= self._aliases]
        used = columns_of(place.alias, [*self.values.values(), *conditions])
        rows = reached_rows(place.source, path, sorted(used))
        is_grouped = isinstance(place.source, Selection) and place.source.grouping is not None
        return _bracketed(rows.distinct() if is_grouped and isinstance(rows, exp.Select) else rows, place.alias)


def _linked(start: str, links: Collection[Collection[str]]) -> set[str]:
    """The places that conditions join to `start`, directly or through others."""
    linked, size = {start}, 0
    while size < len(linked):
        size = len(linked)
        for aliases in links:
            if not linked.isdisjoint(aliases):
                linked |= set(aliases)
    return linked


def _as_written(alias: str) -> str:
    return "the query of IN or EXISTS" if alias.startswith(PARTNER) else f"`{alias}`"


def _as_list(conditions: Collection[exp.Expr]) -> str:
    return re.sub(rf"{PARTNER}[0-9]+[.]", "", ", ".join(map(shown, conditions)))


def _flag(alias: str) -> str:
    return f"{OWN}has_{alias}"


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True)


def _some_value() -> exp.Expr:
    return _named(exp.true(), f"{OWN}row")


def _bracketed(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
