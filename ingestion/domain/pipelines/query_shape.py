"""The SELECT of a pipeline, taken apart as far as it takes to say which rows of the target a changed row of an input reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp
from sqlglot.helper import ensure_list

from lakehub.kernel.suggest import did_you_mean
from lakehub.user_sql.sql_text import parse_statements

Columns = Mapping[str, Collection[str]]
"""Of each input, by its name."""


class NotFollowed(ValueError):
    """A SELECT of which nobody can say what a change reaches. Says which part of it, and what would do."""


@dataclass(frozen=True)
class Joined:
    """One place after FROM or JOIN. `alias`: what the SELECT calls it there, in small letters, as is `input`. `on`: None for the first and for a cross join.

    `is_optional`: rows of the places before it stay where it has none (LEFT JOIN).
    """

    alias: str
    input: str
    on: exp.Expr | None = None
    using: tuple[str, ...] = ()
    is_optional: bool = False


@dataclass(frozen=True)
class QueryShape:
    """`columns`: of the inputs, for names without an alias before them; empty: not known, and such a name may belong to any."""

    select: exp.Select
    places: tuple[Joined, ...]
    columns: Columns

    @classmethod
    def of(cls, sql: str, columns: Columns | None = None) -> QueryShape:
        """`sql` was checked before. Raises NotFollowed."""
        (statement,) = parse_statements(sql, "spark")
        select = _plain_select(statement)
        shape = cls(select, tuple(_places(select)), {name.lower(): names for name, names in (columns or {}).items()})
        aliases = [place.alias for place in shape.places]
        if doubled := [alias for alias in aliases if aliases.count(alias) > 1]:
            raise NotFollowed(f"Two tables are called `{doubled[0]}`: give each an alias of its own.")
        return shape

    @cached_property
    def by_alias(self) -> dict[str, Joined]:
        return {place.alias: place for place in self.places}

    def aliases_in(self, expression: exp.Expr) -> set[str]:
        """The places whose columns it has; of a column that may be of several, all of them."""
        return {alias for column in expression.find_all(exp.Column) for alias in self._aliases_of(column)}

    def _aliases_of(self, column: exp.Column) -> set[str]:
        if column.table:
            return {column.table.lower()}
        having = {place.alias for place in self.places if self._has(place, column.name)}
        return having or set(self.by_alias)

    def _has(self, place: Joined, column: str) -> bool:
        names = self.columns.get(place.input)
        return names is None or column.lower() in {name.lower() for name in names}

    def value_of(self, output: str) -> exp.Expr:
        """What the SELECT puts into the column `output`. Raises NotFollowed where it has none, or no single one."""
        for item in self.select.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == output.lower():
                return item.unalias()
            if (
                isinstance(item, exp.Column)
                and not isinstance(item.this, exp.Star)
                and item.name.lower() == output.lower()
            ):
                return item
        return self._value_by_star(output)

    def _value_by_star(self, output: str) -> exp.Expr:
        stars = [item for item in self.select.expressions if item.is_star and not isinstance(item, exp.Count)]
        named = {item.table.lower() for item in stars if isinstance(item, exp.Column)}
        reached = [
            place for place in self.places if place.alias in named or any(isinstance(item, exp.Star) for item in stars)
        ]
        having = [place for place in reached if place.input in self.columns and self._has(place, output)]
        if len(having) == 1:
            return exp.column(output, table=having[0].alias)
        names = [item.alias_or_name for item in self.select.expressions if not item.is_star]
        raise NotFollowed(
            f"The SELECT has no column `{output}` of its own: write it out, with its table.{did_you_mean(output, names)}"
        )

    def with_aliases(self, expression: exp.Expr) -> exp.Expr:
        """The same with each column's table before its name, where it can be of one only."""

        def qualified(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.table or len(aliases := self._aliases_of(node)) != 1:
                return node
            return exp.column(node.this.copy(), table=next(iter(aliases)))

        return expression.transform(qualified)

    def unknown_columns(self) -> Iterator[tuple[exp.Column, str]]:
        """Columns that no table has, each with what was probably meant."""
        made = set[str]()
        for item in self.select.expressions:
            yield from self._unknown_in(item, made)
            made.add(item.alias_or_name.lower())
        for clause in ("joins", "where", "group", "having", "order"):
            for node in ensure_list(self.select.args.get(clause)):
                yield from self._unknown_in(node, made)

    def _unknown_in(self, node: exp.Expr, made: Collection[str]) -> Iterator[tuple[exp.Column, str]]:
        """`made`: columns of the SELECT, which a name without a table may stand for."""
        for column in node.find_all(exp.Column):
            place = self.by_alias.get(column.table.lower()) if not column.args.get("db") else None
            # What has a point before it and is no table's is a part of a value.
            reached = (place,) if place else () if column.table else self.places
            known = [name for each in reached for name in self.columns.get(each.input) or ("",)]
            if (
                not known
                or "" in known
                or isinstance(column.this, exp.Star)
                or (not column.table and column.name.lower() in made)
            ):
                continue
            if column.name.lower() not in {name.lower() for name in known}:
                yield column, did_you_mean(column.name, sorted({*known}))

    @cached_property
    def group_by(self) -> list[exp.Expr] | None:
        """None: it groups nothing. A number or an alias stands for the column that it names."""
        group = self.select.args.get("group")
        if group is None:
            return None
        if any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "all", "totals")):
            raise NotFollowed(
                "GROUP BY has ROLLUP, CUBE, GROUPING SETS or ALL: group by columns, and chain a pipeline for each further level."
            )
        return [self.with_aliases(self._grouped(each)) for each in group.expressions]

    def _grouped(self, expression: exp.Expr) -> exp.Expr:
        items = self.select.expressions
        if isinstance(expression, exp.Literal) and expression.is_int and 0 < int(expression.this) <= len(items):
            named: exp.Expr = items[int(expression.this) - 1]
            return named.unalias()
        if isinstance(expression, exp.Column) and not expression.table:
            aliased = [
                item for item in items if isinstance(item, exp.Alias) and item.alias.lower() == expression.name.lower()
            ]
            is_of_input = any(
                place.input in self.columns and self._has(place, expression.name) for place in self.places
            )
            if aliased and not is_of_input:
                return aliased[0].unalias()
        return expression


def _plain_select(statement: exp.Expr) -> exp.Select:
    if not isinstance(statement, exp.Select):
        raise NotFollowed(
            f"It is a {statement.key.upper()} of several SELECTs: write one pipeline for each, or one SELECT."
        )
    refusals: Sequence[tuple[type[exp.Expr], str]] = (
        (exp.With, "WITH: make what it defines a pipeline of its own, and join its table"),
        (exp.Subquery, "a query in brackets: make it a pipeline of its own, and join its table"),
        (exp.Exists, "EXISTS: write it as a join"),
        (exp.Window, "a window: make what it computes a pipeline of its own, grouped by its PARTITION BY"),
        (exp.Unnest, "UNNEST"),
        (exp.Explode, "EXPLODE"),
        (exp.Limit, "LIMIT: a row that changes then decides over others"),
        (exp.Offset, "OFFSET: a row that changes then decides over others"),
        (exp.Qualify, "QUALIFY: make what it computes a pipeline of its own"),
    )
    for kind, named in refusals:
        if statement.find(kind) is not None:
            raise NotFollowed(f"It has {named}.")
    if any(isinstance(node, exp.Select) and node is not statement for node in statement.walk()):
        raise NotFollowed("It has a query within the query: make it a pipeline of its own, and join its table.")
    return statement


def _places(select: exp.Select) -> Iterator[Joined]:
    first = select.args.get("from_")
    if first is None or not isinstance(first.this, exp.Table):
        raise NotFollowed("It reads no table: write `FROM <SRC>`.")
    yield Joined(first.this.alias_or_name.lower(), first.this.name.lower())
    for join in select.args.get("joins") or ():
        side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
        if (
            side not in ("", "LEFT")
            or kind not in ("", "INNER", "CROSS", "OUTER")
            or method
            or not isinstance(join.this, exp.Table)
        ):
            raise NotFollowed(
                f"It has a {' '.join(filter(None, (method, side, kind)))} JOIN: write it with JOIN or LEFT JOIN."
            )
        using = tuple(name.name for name in join.args.get("using") or ())
        yield Joined(
            join.this.alias_or_name.lower(), join.this.name.lower(), join.args.get("on"), using, side == "LEFT"
        )
