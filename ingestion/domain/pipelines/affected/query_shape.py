"""The SELECT of a pipeline, taken apart: what WITH defines stands where it is named, and each query in brackets is a place of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.helper import ensure_list

from ingestion.domain.pipelines.affected.computed import conjuncts, has_aggregate
from ingestion.domain.pipelines.affected.names import Made, Names, has_column
from ingestion.domain.pipelines.affected.not_followed import NotFollowed, shown
from ingestion.domain.pipelines.affected.shapes import (
    Combination,
    InputTable,
    MissingColumn,
    Output,
    Place,
    Query,
    Selection,
    Source,
    column_of,
)
from lakehub.user_sql.sql_text import parse_statements

Columns = Mapping[str, Collection[str]]
"""Of each input, by its name."""
MAX_TABLES = 50
"""After FROM and JOIN, with what WITH defines counted wherever it is named: so large are the queries that are made of it."""
MAX_DEPTH = 20
_REFUSED = (
    (exp.Unnest, "UNNEST"),
    (exp.Explode, "EXPLODE"),
    (exp.Lateral, "LATERAL"),
    (exp.Limit, "LIMIT: a row that changes then decides over others"),
    (exp.Fetch, "FETCH: a row that changes then decides over others"),
    (exp.Offset, "OFFSET: a row that changes then decides over others"),
)


@dataclass(frozen=True)
class QueryShape:
    query: Query

    @classmethod
    def of(cls, sql: str, columns: Columns | None = None) -> QueryShape:
        """`sql` was checked before. `columns`: for names without an alias before them, and for `*`. Raises NotFollowed."""
        (statement,) = parse_statements(sql, "spark")
        for kind, named in _REFUSED:
            if statement.find(kind) is not None:
                raise NotFollowed(f"It has {named}.")
        known = {name.lower(): tuple(names) for name, names in (columns or {}).items() if names}
        return cls(_Definitions(known).query(statement))

    @property
    def inputs(self) -> set[str]:
        """The names of those that it reads, in small letters."""
        return self.query.inputs

    def value_of(self, column: str) -> exp.Expr:
        """What the SELECT, or the first of a UNION, puts into the column. Raises NotFollowed where it has none, or no single one."""
        return self.query.value_of(column)

    def missing_columns(self) -> list[MissingColumn]:
        """Names of columns that stand for nothing, each once, with what was probably meant."""
        return [*dict.fromkeys(_missing_in(self.query))]


def _missing_in(source: Source) -> Iterator[MissingColumn]:
    if isinstance(source, Selection):
        for place in source.places:
            yield from _missing_in(place.source)
        yield from source.missing
    elif isinstance(source, Combination):
        for branch in source.branches:
            yield from _missing_in(branch)


@dataclass
class _Definitions:
    """What names after FROM stand for: inputs, and the queries that WITH has defined so far."""

    columns: Mapping[str, tuple[str, ...]]
    queries: dict[str, Query] = field(default_factory=dict)

    def query(self, tree: exp.Expr) -> Query:
        while isinstance(tree, exp.Subquery | exp.Paren):
            tree = tree.this
        self._define(tree.args.get("with_"))
        if isinstance(tree, exp.SetOperation):
            return self._bounded(self._combination(tree))
        if isinstance(tree, exp.Select):
            return self._bounded(_Reading(tree, self).selection())
        raise NotFollowed(f"It has {tree.key.upper()} where a SELECT is wanted.")

    def _define(self, with_: exp.Expr | None) -> None:
        if with_ is None:
            return
        if with_.args.get("recursive"):
            raise NotFollowed("It has WITH RECURSIVE: a row that changes may then reach any other.")
        for cte in with_.expressions:
            _refuse_column_names(cte)
            self.queries[cte.alias.lower()] = self.query(cte.this)

    def _combination(self, tree: exp.SetOperation) -> Combination:
        if tree.args.get("by_name") or tree.args.get("side") or tree.args.get("kind") or tree.args.get("on"):
            raise NotFollowed("It has UNION BY NAME: write the columns out in one order, and UNION ALL.")
        branches = [self.query(tree.this), self.query(tree.expression)]
        names = branches[0].columns
        return Combination(tuple(_renamed(branch, names) for branch in branches))

    def _bounded(self, query: Query) -> Query:
        if query.input_count > MAX_TABLES:
            raise NotFollowed(
                f"It reads more than {MAX_TABLES} tables, with what WITH defines counted wherever it is named: make what it names often a pipeline of its own, and join its table."
            )
        if query.depth > MAX_DEPTH:
            raise NotFollowed(
                f"Its queries are nested more than {MAX_DEPTH} deep: make the innermost pipelines of their own."
            )
        return query

    def source(self, tree: exp.Expr) -> Source:
        """After FROM or JOIN."""
        if isinstance(tree, exp.Subquery) and isinstance(tree.unnest(), exp.Query) and not tree.args.get("joins"):
            _refuse_column_names(tree)
            return self.query(tree)
        if not isinstance(tree, exp.Table) or tree.args.get("joins"):
            raise NotFollowed(
                f"It has `{shown(tree)}` after FROM or JOIN: write a table or a query there, and each join after another."
            )
        _refuse_column_names(tree)
        name = tree.name.lower()
        return self.queries.get(name) or InputTable(name, self.columns.get(name))


def _refuse_column_names(tree: exp.Expr) -> None:
    alias = tree.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        raise NotFollowed(f"It has `{shown(alias)}`: name the columns in the SELECT itself, by AS.")


def _renamed(query: Query, names: tuple[str, ...] | None) -> Query:
    """Its columns by the names of the first SELECT of a UNION."""
    if names is None or query.columns is None:
        raise NotFollowed("It has UNION over a `*` of which the columns are not known: write them out.")
    if len(names) != len(query.columns):
        raise NotFollowed(f"Its UNION has {len(names)} columns in one SELECT and {len(query.columns)} in another.")
    if isinstance(query, Combination):
        return Combination(tuple(_renamed(branch, names) for branch in query.branches))
    outputs = tuple(Output(name, output.value) for name, output in zip(names, query.outputs, strict=True))
    return replace(query, outputs=outputs)


@dataclass
class _Reading:
    """One SELECT while it is taken apart."""

    tree: exp.Select
    definitions: _Definitions

    def selection(self) -> Selection:
        drafts = self._places()
        names = Names(drafts)
        where, memberships = self._where()
        drafts += memberships
        _refuse_queries_within(self._expressions(where, drafts))
        places = tuple(replace(place, on=None if place.on is None else names.qualified(place.on)) for place in drafts)
        outputs, open_places = _outputs(self.tree, names, places)
        made = {output.name: output.value for output in outputs if output.name}
        grouping = self._grouping(names, outputs)
        windows = tuple(self._windows(names, made))
        for clause in ("having", "order", "qualify"):
            for node in ensure_list(self.tree.args.get(clause)):
                names.qualified(node, made)
        return Selection(
            places,
            tuple(outputs),
            open_places,
            None if where is None else names.qualified(where),
            grouping,
            windows,
            self.tree.args.get("distinct") is not None,
            tuple(names.missing),
        ).checked()

    # Places

    def _places(self) -> list[Place]:
        first = self.tree.args.get("from_")
        if first is None:
            raise NotFollowed("It reads no table: write `FROM <SRC>`.")
        places = [Place(self._alias(first.this, 0), self.definitions.source(first.this))]
        for number, join in enumerate(self.tree.args.get("joins") or (), 1):
            places.append(self._joined(join, number, places))
        aliases = [place.alias for place in places]
        if doubled := [alias for alias in aliases if aliases.count(alias) > 1]:
            raise NotFollowed(f"Two tables are called `{doubled[0]}`: give each an alias of its own.")
        return places

    def _alias(self, tree: exp.Expr, number: int) -> str:
        return tree.alias_or_name.lower() or f"lakehub_place_{number}"

    def _joined(self, join: exp.Join, number: int, before: list[Place]) -> Place:
        side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
        is_only_looked_at = kind in ("SEMI", "ANTI")
        if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI") or method:
            words = " ".join(filter(None, (method, side, kind)))
            raise NotFollowed(f"It has a {words} JOIN: write it with JOIN or LEFT JOIN.")
        using = tuple(name.name.lower() for name in join.args.get("using") or ())
        place = Place(
            self._alias(join.this, number),
            self.definitions.source(join.this),
            join.args.get("on"),
            frozenset(using),
            side == "LEFT" or is_only_looked_at,
            is_only_looked_at,
        )
        return replace(place, on=_by_using(place, using, before)) if using else place

    # Conditions

    def _where(self) -> tuple[exp.Expr | None, list[Place]]:
        """Without `x IN (SELECT ...)`, which is a place that rows look for a partner in."""
        where = self.tree.args.get("where")
        if where is None:
            return None, []
        kept, memberships = list[exp.Expr](), list[Place]()
        for condition in conjuncts(where.this):
            queries = [*_memberships(condition)]
            memberships += [self._membership(each, len(memberships) + n) for n, each in enumerate(queries)]
            if not queries:
                kept.append(condition)
        return (exp.and_(*kept) if kept else None), memberships

    def _membership(self, node: exp.In, number: int) -> Place:
        alias, query = f"lakehub_in_{number}", self.definitions.query(node.args["query"])
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        if query.columns is None or len(query.columns) != len(values) or not all(query.columns):
            raise NotFollowed(f"It has `{shown(node)}`: write the columns out in the SELECT of IN, each with a name.")
        pairs = zip(values, query.columns, strict=True)
        on = exp.and_(*(exp.EQ(this=value.copy(), expression=column_of(alias, name)) for value, name in pairs))
        return Place(alias, query, on, is_optional=True, is_hidden=True)

    def _expressions(self, where: exp.Expr | None, places: Iterable[Place]) -> Iterator[exp.Expr]:
        yield from self.tree.expressions
        yield from (place.on for place in places if place.on is not None)
        if where is not None:
            yield where
        for clause in ("group", "having", "order", "qualify"):
            yield from ensure_list(self.tree.args.get(clause))

    # Groups and windows

    def _grouping(self, names: Names, outputs: list[Output]) -> tuple[exp.Expr, ...] | None:
        group = self.tree.args.get("group")
        if group is None:
            expressions = [output.value for output in outputs]
            if self.tree.args.get("having") is not None or any(map(has_aggregate, expressions)):
                raise NotFollowed("It has an aggregate and no GROUP BY: group by the record key.")
            return None
        is_several = group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
        if is_several or any(group.args.get(kind) for kind in ("all", "totals")):
            raise NotFollowed(
                "GROUP BY has ROLLUP, CUBE, GROUPING SETS or ALL: group by columns, and chain a pipeline for each further level."
            )
        return tuple(self._grouped(each, names, outputs) for each in group.expressions)

    def _grouped(self, expression: exp.Expr, names: Names, outputs: list[Output]) -> exp.Expr:
        """A number or an alias stands for the column that it names."""
        if isinstance(expression, exp.Literal) and expression.is_int and 0 < int(expression.this) <= len(outputs):
            return outputs[int(expression.this) - 1].value
        if isinstance(expression, exp.Column) and not expression.table:
            name = expression.name.lower()
            is_of_place = any(has_column(place, name) for place in names.places)
            aliases = [each.alias.lower() for each in self.tree.expressions if isinstance(each, exp.Alias)]
            if name in aliases and not is_of_place:
                return next(output.value for output in outputs if output.name == name)
        return names.qualified(expression)

    def _windows(self, names: Names, made: Made) -> Iterator[tuple[exp.Expr, ...]]:
        """Of each the expressions of its PARTITION BY. Those that only the order of the result goes by change no row."""
        definitions = {each.name.lower(): each for each in self.tree.args.get("windows") or ()}
        for node in (*self.tree.expressions, *ensure_list(self.tree.args.get("qualify"))):
            for window in node.find_all(exp.Window):
                named = definitions.get(window.alias.lower())
                expressions = window.args.get("partition_by") or (named.args.get("partition_by") if named else None)
                if not expressions:
                    raise NotFollowed(
                        f"It has a window without PARTITION BY, `{shown(window)}`: a row that changes then reaches all others. Partition it by the record key or a part of it."
                    )
                yield tuple(names.qualified(each, made) for each in expressions)


def _by_using(place: Place, using: Iterable[str], before: list[Place]) -> exp.Expr:
    """USING as ON."""
    conditions = []
    for name in using:
        having = Names(before).places_with(name) or before
        conditions.append(exp.EQ(this=column_of(having[0].alias, name), expression=column_of(place.alias, name)))
    return exp.and_(*conditions)


def _memberships(condition: exp.Expr) -> Iterator[exp.In]:
    """Each `x IN (SELECT ...)` that can only let rows in: below AND and OR, not below NOT."""
    if isinstance(condition, exp.In) and condition.args.get("query") is not None:
        yield condition
    elif isinstance(condition, exp.Paren | exp.And | exp.Or):
        for part in condition.iter_expressions():
            yield from _memberships(part)


def _refuse_queries_within(expressions: Iterable[exp.Expr]) -> None:
    for expression in expressions:
        if expression.find(exp.Exists) is not None:
            raise NotFollowed("It has EXISTS: write it as LEFT SEMI JOIN or LEFT ANTI JOIN.")
        query = expression.find(exp.Query)
        if query is not None:
            raise NotFollowed(
                f"It has a query within an expression, `{shown(query)}`: join it, as `LEFT JOIN (SELECT ...)`, or as LEFT ANTI JOIN where it stands after NOT IN."
            )


def _outputs(tree: exp.Select, names: Names, places: tuple[Place, ...]) -> tuple[list[Output], tuple[Place, ...]]:
    """The second: places of whose columns not all are known, all of which it makes."""
    outputs, open_places, made = list[Output](), list[Place](), dict[str, exp.Expr]()
    for item in tree.expressions:
        if _is_star(item):
            for place in _starred(item, places):
                if place.source.columns is None:
                    open_places.append(place)
                outputs += _columns_of_star(item, place)
            continue
        value = names.qualified(item.unalias(), made)
        is_named = isinstance(item, exp.Alias | exp.Column | exp.Dot)
        outputs.append(Output(item.alias_or_name.lower() if is_named else "", value))
        if isinstance(item, exp.Alias):
            made.setdefault(item.alias.lower(), value)
    return outputs, tuple(open_places)


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _starred(item: exp.Expr, places: tuple[Place, ...]) -> Iterator[Place]:
    if isinstance(item, exp.Star):
        yield from (place for place in places if not place.is_hidden)
    else:
        alias = item.args["table"].name.lower()
        yield from (place for place in places if place.alias == alias)


def _columns_of_star(item: exp.Expr, place: Place) -> Iterator[Output]:
    star = item if isinstance(item, exp.Star) else item.this
    if star.args.get("replace") or star.args.get("rename"):
        raise NotFollowed(f"It has `{shown(item)}`: write the columns out.")
    left_out = {each.name.lower() for each in star.args.get("except_") or ()}
    if isinstance(item, exp.Star):
        left_out |= place.using
    for name in place.source.columns or ():
        if name.lower() not in left_out:
            yield Output(name.lower(), column_of(place.alias, name))
