"""Which names behind a dot are columns for sure.

On PostgreSQL, and on what comes from it, `x.name` is `name(x)` where x has no such column: a call of any function that takes a row.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain

from sqlglot import exp

HasColumn = Callable[[exp.Table, exp.Identifier], bool | None]
"""Whether a table has a column of that name; None: it is no table, but what a WITH defines."""

_MAX_DEPTH = 20
"""Of queries that hand on each other's columns: what lies deeper counts as not known."""
_VALUE_COLUMN = re.compile(r"column[0-9]+", re.ASCII)


class RowNames:
    """The columns of a tree that are written behind the name of a source, and whether that source has them.

    A source is looked for in all SELECTs around the column: where several are called so, each must have it.
    """

    def __init__(self, tree: exp.Expr, has_column: HasColumn) -> None:
        self._tree, self._has_column = tree, has_column
        self._sources_by_place: dict[int, dict[str, list[exp.Expr]]] = {}
        self._known: dict[tuple[int, str], bool] = {}

    def possible_calls(self) -> Iterator[exp.Column]:
        """Those that no source is known to have."""
        for column in self._tree.find_all(exp.Column):
            if column.table and isinstance(column.this, exp.Identifier):
                sources = self.sources_of(column)
                if not sources or not all(self._source_has(source, column.this, 0) for source in sources):
                    yield column

    def sources_of(self, column: exp.Column) -> list[exp.Expr]:
        """What its name before the dot may stand for: tables, queries, what WITH defines, values."""
        named, node = list[exp.Expr](), column.parent
        while node is not None:
            if isinstance(node, exp.Select | exp.Subquery):
                named += self._sources(node).get(column.table.lower(), [])
            # What a WITH defines does not see the FROM of the query that it stands before.
            node = node.parent.parent if isinstance(node, exp.With) and node.parent else node.parent
        return named

    def _sources(self, place: exp.Select | exp.Subquery) -> dict[str, list[exp.Expr]]:
        """Of a SELECT, or of a join in brackets."""
        if id(place) not in self._sources_by_place:
            sources = defaultdict[str, list[exp.Expr]](list)
            for source in _sources_in(_places(place)):
                sources[_source_name(source)].append(source)
            self._sources_by_place[id(place)] = dict(sources)
        return self._sources_by_place[id(place)]

    @cached_property
    def _definitions(self) -> dict[str, list[exp.CTE]]:
        definitions = defaultdict[str, list[exp.CTE]](list)
        for cte in self._tree.find_all(exp.CTE):
            definitions[cte.alias.lower()].append(cte)
        return definitions

    def _source_has(self, source: exp.Expr, name: exp.Identifier, depth: int) -> bool:
        if (renamed := _column_names(source)) is not None:
            return _folded(name) in renamed
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            known = self._has_column(source, name)
            return self._definition_has(source, name, depth) if known is None else known
        if isinstance(source, exp.Subquery | exp.Lateral | exp.CTE):
            return self._inner_has(source.this, name, depth)
        if isinstance(source, exp.Values):
            return _VALUE_COLUMN.fullmatch(_folded(name)) is not None
        # The value of a function, such as UNNEST, is called as the function is.
        return _folded(name) in (_source_name(source), "ordinality")

    def _definition_has(self, table: exp.Table, name: exp.Identifier, depth: int) -> bool:
        definitions = [] if table.db else self._definitions.get(table.name.lower(), [])
        return bool(definitions) and all(self._source_has(cte, name, depth) for cte in definitions)

    def _inner_has(self, inner: exp.Expr, name: exp.Identifier, depth: int) -> bool:
        if isinstance(inner, exp.Subquery) and _is_query(inner):
            return self._inner_has(inner.this, name, depth)
        if not isinstance(inner, exp.Query) or isinstance(inner, exp.Subquery):
            # A join in brackets has the columns of both sides.
            return any(self._source_has(source, name, depth) for source in _sources_in([inner]))
        key = (id(inner), _folded(name))
        if key not in self._known:
            # A query that reads itself has by that no more columns.
            self._known[key] = False
            self._known[key] = depth < _MAX_DEPTH and self._query_has(inner, name, depth + 1)
        return self._known[key]

    def _query_has(self, query: exp.Expr, name: exp.Identifier, depth: int) -> bool:
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            return isinstance(query, exp.Values) and self._source_has(query, name, depth)
        return any(self._projection_has(query, part, name, depth) for part in query.expressions)

    def _projection_has(self, select: exp.Select, part: exp.Expr, name: exp.Identifier, depth: int) -> bool:
        star = part.this if isinstance(part, exp.Column) else part
        if not isinstance(star, exp.Star):
            output = _output_name(part)
            return output is not None and _folded(output) == _folded(name)
        if any(value for value in star.args.values()):
            return False
        sources = self._sources(select)
        handed_on = sources.get(part.table.lower(), []) if isinstance(part, exp.Column) else chain(*sources.values())
        return any(self._source_has(source, name, depth) for source in handed_on)


def _places(select: exp.Select | exp.Subquery) -> Iterator[exp.Expr]:
    if isinstance(select, exp.Subquery) and not _is_query(select):
        yield select.this
    from_ = select.args.get("from_")
    for place in (*([from_] if from_ else []), *(select.args.get("joins") or [])):
        yield place.this
    yield from select.args.get("laterals") or []


def _sources_in(places: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """With those of joins in brackets, which are seen outside of them."""
    for place in places:
        if isinstance(place, exp.Subquery) and not place.alias and not _is_query(place):
            yield from _sources_in([place.this])
        else:
            yield place
        yield from _sources_in(join.this for join in place.args.get("joins") or [])


def _is_query(brackets: exp.Subquery) -> bool:
    """And no join."""
    inner: exp.Expr = brackets
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    return isinstance(inner, exp.Query)


def _source_name(source: exp.Expr) -> str:
    return (source.alias_or_name or source.key).lower()


def _column_names(source: exp.Expr) -> set[str] | None:
    """Those that it is given by its alias: `AS x(a, b)`, `AS x(a INT)`."""
    alias = source.args.get("alias")
    columns = alias.columns if isinstance(alias, exp.TableAlias) else []
    if not columns:
        return None
    named = (column.this if isinstance(column, exp.ColumnDef) else column for column in columns)
    ordinality = (
        source.args.get("offset"),
        source.this.args.get("offset") if isinstance(source.this, exp.Expr) else None,
    )
    return {_folded(name) for name in (*named, *ordinality) if isinstance(name, exp.Identifier)}


def _output_name(part: exp.Expr) -> exp.Identifier | None:
    """A cast is called like the column that it casts."""
    while isinstance(part, exp.Cast | exp.Paren):
        part = part.this
    name = (
        part.args.get("alias") if isinstance(part, exp.Alias) else part.this if isinstance(part, exp.Column) else None
    )
    return name if isinstance(name, exp.Identifier) else None


def _folded(name: exp.Identifier) -> str:
    """As PostgreSQL reads it."""
    return str(name.this) if name.quoted else str(name.this).lower()
