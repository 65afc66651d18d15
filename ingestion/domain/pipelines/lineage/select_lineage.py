"""From which columns of the tables that it reads each column of a SELECT is made: through WITH, queries in FROM and UNION, to the tables themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope
from sqlglot.schema import MappingSchema

from ingestion.domain.pipelines.affected.query_shape import Columns
from ingestion.domain.pipelines.lineage.uses import InputColumn, Use, Uses, gather_uses, pairs_of
from lakehub.user_sql.sql_text import PARSER_ERRORS, parse_statements

MAX_COLUMNS = 2_000
"""Of one query within it: a star over a join of stars has twice as many at each level."""
MAX_QUERIES = 50
"""Within one SELECT."""
_Pairs = Iterator[tuple[InputColumn, Use]]


class NotTraced(ValueError):
    """A SELECT of whose columns nobody can say what they are made from. Says why."""


@dataclass(frozen=True)
class SelectLineage:
    """Names are in small letters. `columns`: of the result, in its order. `rows`: what decides which rows there are, whatever is in them."""

    columns: Mapping[str, Uses]
    rows: Uses


def trace_select(sql: str, columns: Columns) -> SelectLineage:
    """`columns`: of each table that it reads, by its name. `sql` was checked before. Raises NotTraced."""
    (statement,) = parse_statements(sql, "spark")
    known = {table.lower(): {name.lower(): "string" for name in names} for table, names in columns.items() if names}
    try:
        _refuse_large(statement, known)
        schema = MappingSchema({**known}, dialect="spark", normalize=False)
        # A name of the SELECT's own is followed here: written out, names that stand for others twice get twice as long each time.
        qualified = qualify(
            statement,
            dialect="spark",
            schema=schema,
            expand_alias_refs=False,
            validate_qualify_columns=False,
            quote_identifiers=False,
        )
        scope = build_scope(qualified.unnest())
        if scope is None:
            raise NotTraced("It is no SELECT.")
        return _Tracer(known).trace(scope)
    except NotTraced:
        raise
    except RecursionError as problem:
        raise NotTraced("It is nested too deep.") from problem
    except (SqlglotError, *PARSER_ERRORS) as problem:
        raise NotTraced(f"It is not understood: {str(problem).partition(chr(10))[0]}") from problem


def _refuse_large(statement: exp.Expr, known: Mapping[str, Mapping[str, str]]) -> None:
    """Before stars are written out."""
    queries = sum(1 for _ in statement.find_all(exp.Select))
    if queries > MAX_QUERIES:
        raise NotTraced(f"It has {queries:,} queries within it, and {MAX_QUERIES} at most are traced.")
    scope = build_scope(statement.unnest())
    widths: dict[int, int] = {}
    for each in scope.traverse() if scope is not None else ():
        widths[id(each)] = width = _width(each, known, widths)
        if width > MAX_COLUMNS:
            raise NotTraced(f"A query in it has {width:,} columns, and {MAX_COLUMNS:,} at most are traced.")


def _width(scope: Scope, known: Mapping[str, Mapping[str, str]], widths: Mapping[int, int]) -> int:
    if not isinstance(scope.expression, exp.Select):
        return max((widths.get(id(each), 1) for each in scope.set_operation_scopes), default=1)
    of_sources = [
        widths.get(id(source), 1) if isinstance(source, Scope) else len(known.get(source.name.lower(), ())) or 1
        for _, source in scope.selected_sources.values()
    ]
    return sum(sum(of_sources) if _is_star(item) else 1 for item in scope.expression.selects)


def _is_star(item: exp.Expr) -> bool:
    return item.is_star and not isinstance(item.unalias(), exp.Count)


class _Tracer:
    """Each query within the whole is traced once, however often it is read."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        """Tables whose columns the catalog has."""
        self._traced: dict[int, SelectLineage] = {}

    def trace(self, scope: Scope) -> SelectLineage:
        if id(scope) not in self._traced:
            self._traced[id(scope)] = self._trace(scope)
        return self._traced[id(scope)]

    def _trace(self, scope: Scope) -> SelectLineage:
        query = scope.expression
        with_ = query.args.get("with_")
        if with_ is not None and with_.recursive:
            raise NotTraced("It has WITH RECURSIVE.")
        if isinstance(query, exp.Select):
            return self._trace_select(scope, query)
        if isinstance(query, exp.SetOperation):
            return self._trace_set_operation(scope, query)
        raise NotTraced(f"It has {query.key.upper()}.")

    def _trace_set_operation(self, scope: Scope, query: exp.SetOperation) -> SelectLineage:
        """Columns that stand in the same place are one, by the name that the first side has. EXCEPT and INTERSECT have rows of the first side, chosen by both."""
        sides = [self.trace(each) for each in scope.set_operation_scopes]
        if query.args.get("by_name") or len({len(side.columns) for side in sides}) != 1:
            raise NotTraced(f"It has {query.key.upper()} of queries with other columns.")
        all_used = [column for side in sides for uses in side.columns.values() for column in uses]
        rows = [*(pair for side in sides for pair in pairs_of(side.rows))]
        if not isinstance(query, exp.Union):
            rows += [(column, Use.FILTER) for column in all_used]
            sides = sides[:1]
        if query.args.get("distinct"):
            rows += [(column, Use.GROUP_BY) for side in sides for uses in side.columns.values() for column in uses]
        by_place = zip(*(side.columns.values() for side in sides), strict=True)
        columns = {name: gather_uses(pairs_of(*uses)) for name, uses in zip(sides[0].columns, by_place, strict=True)}
        return SelectLineage(columns, gather_uses(rows))

    def _trace_select(self, scope: Scope, query: exp.Select) -> SelectLineage:
        if scope.udtf_scopes or scope.pivots or query.args.get("laterals"):
            raise NotTraced("It makes several rows of one, or columns of rows: LATERAL VIEW, UNNEST or PIVOT.")
        columns: dict[str, Uses] = {}
        for item in query.selects:
            if _is_star(item):
                raise NotTraced(f"The catalog does not know which columns `{item.sql('spark')}` stands for.")
            columns[item.alias_or_name.lower()] = gather_uses(self._uses(scope, item, Use.IDENTITY, columns))
        return SelectLineage(columns, gather_uses(self._row_uses(scope, query, columns)))

    def _row_uses(self, scope: Scope, query: exp.Select, columns: Mapping[str, Uses]) -> _Pairs:
        # A table that SEMI and ANTI JOIN look into makes no column, so it is not among the selected ones.
        only_asked = [scope.sources.get(name) for name in scope.semi_or_anti_join_tables]
        for source in (*(source for _, source in scope.selected_sources.values()), *only_asked):
            if isinstance(source, Scope):
                yield from pairs_of(self.trace(source).rows)
        clauses = [(join.args.get("on"), Use.JOIN) for join in query.args.get("joins") or ()]
        clauses += [(query.args.get(clause), Use.FILTER) for clause in ("where", "having", "qualify")]
        clauses += [(query.args.get("group"), Use.GROUP_BY), (query.args.get("order"), Use.SORT)]
        for clause, use in clauses:
            if clause is not None:
                yield from self._uses(scope, clause, use, columns)
        if query.args.get("distinct"):
            yield from ((column, Use.GROUP_BY) for uses in columns.values() for column in uses)

    def _uses(self, scope: Scope, expression: exp.Expr, use: Use, made: Mapping[str, Uses]) -> _Pairs:
        """Of the columns in an expression whose value is used so. `made`: columns of the SELECT, which names without a table stand for."""
        waiting = [(expression, use)]
        while waiting:
            node, outer = waiting.pop()
            if isinstance(node, exp.Column):
                uses = self._uses_of_column(scope, node, made)
                yield from ((column, outer.of(inner)) for column, inner in pairs_of(uses))
            elif isinstance(node, exp.Query) and (within := _scope_of(scope, node)) is not None:
                # Of EXISTS and IN what they look at decides; of a query that makes a value, how it is made.
                traced = self.trace(within)
                yield from (
                    (column, outer.of(inner)) for column, inner in pairs_of(traced.rows, *traced.columns.values())
                )
            else:
                waiting += [(child, outer.of(_use_of_part(node, child))) for child in node.iter_expressions()]

    def _uses_of_column(self, scope: Scope, column: exp.Column, made: Mapping[str, Uses]) -> Uses:
        source, name = _source_of(scope, column.table), column.name.lower()
        if isinstance(source, exp.Table):
            if source.name.lower() not in self._known:
                raise NotTraced(f"The catalog does not know the columns of `{source.name}`.")
            return {InputColumn(source.name.lower(), name): frozenset({Use.IDENTITY})}
        of_query = self.trace(source).columns if isinstance(source, Scope) else {}
        uses = (of_query if column.table else made).get(name)
        if uses is None:
            raise NotTraced(f"The catalog does not know whose column `{column.name}` is.")
        return uses


def _scope_of(scope: Scope, query: exp.Query) -> Scope | None:
    """Of a query within an expression, in brackets or not."""
    return next((each for each in scope.subquery_scopes if each.expression is query.unnest()), None)


def _source_of(scope: Scope, table: str) -> exp.Table | Scope | None:
    """What a query within an expression reads itself comes before what those around it read."""
    is_own = any(name == table for name, _ in scope.references)  # what WITH defines is among the sources of each query
    if not is_own and scope.is_subquery and scope.parent is not None:
        return _source_of(scope.parent, table)
    return scope.sources.get(table)


def _use_of_part(node: exp.Expr, part: exp.Expr) -> Use:
    """What the value of `part` is to that of `node`, which has it."""
    if isinstance(node, (exp.Alias, exp.Paren)):
        return Use.IDENTITY
    if isinstance(node, (exp.Case, exp.If)) and part.arg_key == "this":
        return Use.CONDITIONAL
    if isinstance(node, exp.Filter) and part.arg_key == "expression":
        return Use.CONDITIONAL
    if isinstance(node, exp.Window) and part.arg_key != "this":
        return Use.WINDOW
    return Use.AGGREGATION if isinstance(node, exp.AggFunc) else Use.TRANSFORMATION
