"""The SELECT of a pipeline, taken apart: what WITH defines stands where it is named, and each query in brackets is a place of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from ingestion.domain.pipelines.affected.not_followed import NotFollowed, shown
from ingestion.domain.pipelines.affected.select_reading import SelectReading
from ingestion.domain.pipelines.affected.shapes import (
    Combination,
    InputTable,
    MissingColumn,
    Output,
    Query,
    Selection,
    Source,
)
from ingestion.domain.pipelines.view_names import OWN
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
    def of(cls, sql: str, columns: Columns | None = None, ignored: Collection[str] = ()) -> QueryShape:
        """`sql` was checked before. `columns`: for names without an alias before them, and for `*`. `ignored`: names of inputs whose changes are not followed. Raises NotFollowed."""
        (statement,) = parse_statements(sql, "spark")
        for kind, named in _REFUSED:
            if statement.find(kind) is not None:
                raise NotFollowed(f"It has {named}.")
        for alias in statement.find_all(exp.Alias, exp.TableAlias):
            if alias.name.lower().startswith(OWN) or alias.alias.lower().startswith(OWN):
                raise NotFollowed(f"It has `{shown(alias)}`: names that begin with `{OWN}` are for what is made of it.")
        known = {name.lower(): tuple(names) for name, names in (columns or {}).items() if names}
        return cls(_Definitions(known, frozenset(name.lower() for name in ignored)).query(statement))

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
    ignored: frozenset[str]
    queries: dict[str, Query] = field(default_factory=dict)

    def query(self, tree: exp.Expr) -> Query:
        while isinstance(tree, exp.Subquery | exp.Paren):
            tree = tree.this
        self._define(tree.args.get("with_"))
        if isinstance(tree, exp.SetOperation):
            return self._bounded(self._combination(tree))
        if isinstance(tree, exp.Select):
            return self._bounded(SelectReading(tree, self).selection())
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
        first, last = self.query(tree.this), self.query(tree.expression)
        branches = [*(first.branches if isinstance(first, Combination) else [first]), last]
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
        return self.queries.get(name) or InputTable(name, self.columns.get(name), name in self.ignored)


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
