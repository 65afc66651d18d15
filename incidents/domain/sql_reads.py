"""Which datasets a SQL query reads, and over which time ranges: looked at, never run.

A range is never narrower than what the query can read. What bounds a table stands in the WHERE of its own SELECT, or in the ON
of a join that can only take rows of it away: comparisons of its partition column or its event time with constants, BETWEEN and
IN, joined by AND and OR. Everything else bounds nothing, and a table that nothing bounds is read as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from zoneinfo import ZoneInfo

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from incidents.domain.sql_times import Clock, Column, bounds
from lakehub.kernel.calendar import Grain, floor_to_bucket, partition_at
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval, union
from lakehub.kernel.suggest import did_you_mean
from quality.domain.queries import STUMBLES

LONGEST = 20_000
MOST_TABLES = 50
MOST_RANGES = 20
"""Of one table; more are asked for as one, from the first to the last."""
DIALECTS = (
    "ansi", "athena", "bigquery", "clickhouse", "databricks", "duckdb", "hive", "mysql", "oracle", "postgres", "presto",
    "redshift", "snowflake", "spark", "sqlite", "trino", "tsql",
)  # fmt: skip
_HARMLESS = (exp.Unnest, exp.GenerateSeries, exp.ExplodingGenerateSeries, exp.Explode)


class BadSql(ValueError):
    """A text that cannot be looked at; says why, and what would do."""


@dataclass(frozen=True)
class Shape:
    """How a dataset is cut. `columns` in small letters; None: not known."""

    partition_column: str
    grain: Grain
    zone: ZoneInfo
    event_time: str = ""
    columns: frozenset[str] | None = None


@dataclass(frozen=True)
class Reads:
    """A dataset that the query reads: over which ranges, or as a whole (`bounded` is False), and why."""

    dataset: str
    ranges: tuple[Interval, ...]
    bounded: bool
    why: str


@dataclass(frozen=True)
class Understood:
    """A query that was parsed, and the tables that it reads by the last part of their names."""

    tree: exp.Expr
    tables: tuple[exp.Table, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(table.name for table in self.tables))

    def without(self, names: Collection[str]) -> Understood:
        """As if these tables, in small letters, were not asked about."""
        return Understood(self.tree, tuple(table for table in self.tables if table.name.lower() not in names))


# Understanding the text


def understand(sql: str, dialect: str) -> Understood:
    """Raises BadSql."""
    if dialect not in DIALECTS:
        raise BadSql(f"There is no dialect `{dialect[:40]}`.{did_you_mean(dialect[:40], DIALECTS)}")
    if len(sql) > LONGEST:
        raise BadSql(f"A query of {len(sql):,} characters: {LONGEST:,} at most.")
    try:
        tree = _one_query(sql, "" if dialect == "ansi" else dialect)
        tables = tuple(table for table in tree.find_all(exp.Table) if _is_read(table, tree))
    except (SqlglotError, *STUMBLES) as problem:
        if isinstance(problem, BadSql):
            raise
        raise BadSql(f"The query cannot be understood as {dialect}: {_said(problem)}") from None
    if not tables:
        raise BadSql("The query reads no table.")
    if len(tables) > MOST_TABLES:
        raise BadSql(f"The query names {len(tables)} tables: {MOST_TABLES} at most.")
    return Understood(tree, tables)


def _one_query(sql: str, dialect: str) -> exp.Expr:
    statements = [one for one in sqlglot.parse(sql, read=dialect) if one is not None]
    if len(statements) != 1:
        raise BadSql(f"One query is wanted, not {len(statements)} statements.")
    (statement,) = statements
    writes_into = isinstance(statement, exp.Insert | exp.Create) and statement.args.get("with_") is None
    if writes_into and isinstance(statement.expression, exp.Query):
        statement = statement.expression.copy()  # what it writes is not read
    if not isinstance(statement, exp.Query):
        raise BadSql(f"A query is wanted, not {statement.key.upper()}.")
    for node in statement.find_all(exp.Into, exp.DML, exp.DDL, exp.Command):
        if not isinstance(node, exp.Query):
            raise BadSql(f"The query may only read: without {node.key.upper()}.")
    return statement


def _said(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "it is nested too deeply."
    errors = getattr(problem, "errors", None)
    if errors:
        return f"line {errors[0]['line']}, column {errors[0]['col']}: {errors[0]['description']}"
    return (str(problem).splitlines() or ["it makes no sense."])[0]


def _is_read(table: exp.Table, tree: exp.Expr) -> bool:
    """Not what a WITH defines, and no series of numbers. Raises BadSql for what no gate can vouch for, such as files."""
    if isinstance(table.this, _HARMLESS):
        return False
    if not isinstance(table.this, exp.Identifier):
        raise BadSql(f"The query reads {table.sql()[:80]}, which is no dataset: name the tables.")
    return bool(table.db) or not _is_defined(table)


def _is_defined(table: exp.Table) -> bool:
    """A WITH around it defines the name, before the place where it is used."""
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.With):
            before = parent.expressions[: node.index or 0]
            visible = [*before, node] if parent.recursive else before
            if any(cte.alias.lower() == table.name.lower() for cte in visible):
                return True
            node = parent.parent or parent  # the query of this WITH: looked at from inside of it
            continue
        with_ = parent.args.get("with_")
        others = with_.expressions if with_ is not None and with_ is not node else ()
        if any(cte.alias.lower() == table.name.lower() for cte in others):
            return True
        node = parent
    return False


# What bounds each table


def reads(query: Understood, shapes: Mapping[str, Shape], clock: Clock) -> list[Reads]:
    """Each dataset once, with all that the query may read of it. `shapes` by name, in small letters."""
    found: dict[str, list[tuple[Interval, ...]]] = {}
    for table in query.tables:
        shape = shapes[table.name.lower()]
        found.setdefault(table.name.lower(), []).append(_bounded(table, shape, shapes, clock))
    return [_put_together(name, ranges, shapes[name]) for name, ranges in found.items()]


def _put_together(name: str, ranges: Collection[tuple[Interval, ...]], shape: Shape) -> Reads:
    pieces = union(piece for each in ranges for piece in each)
    if not all(ranges) or any(piece.is_everything for piece in pieces):
        return Reads(name, (EVERYTHING,), False, _why_whole(shape))
    if len(pieces) > MOST_RANGES:
        pieces = (Interval(pieces[0].start, pieces[-1].end),)
    columns = " and ".join(f"`{column}`" for column in (shape.partition_column, shape.event_time) if column)
    return Reads(name, pieces, True, f"by {columns}")


def _why_whole(shape: Shape) -> str:
    named = [column for column in (shape.partition_column, shape.event_time) if column]
    if not named:
        return "The dataset has neither a partition column nor an event time: a query reads it as a whole."
    columns = " or ".join(f"`{column}`" for column in named)
    return f"Nothing in the query bounds {columns} by a constant in a way that is sure: it is asked for as a whole."


def _bounded(table: exp.Table, shape: Shape, shapes: Mapping[str, Shape], clock: Clock) -> tuple[Interval, ...]:
    """What the table's SELECT leaves of it; empty where the conditions contradict each other."""
    select = table.find_ancestor(exp.Select)
    if select is None or _is_turned(table) or select.args.get("match"):
        return (EVERYTHING,)
    own = _Own(table, select, shapes)
    conditions = list(_conditions(table, select))
    left: tuple[Interval, ...] = (EVERYTHING,)
    for column in _columns(shape):
        for condition in conditions:
            allowed = bounds(condition, column, partial(own, name=column.name), clock)
            left = _both(left, tuple(_whole_partitions(piece, shape) for piece in allowed))
    return left


def _is_turned(table: exp.Table) -> bool:
    """Its columns have other names, or other values, outside."""
    alias = table.args.get("alias")
    return bool(table.args.get("pivots") or (alias is not None and alias.columns))


def _columns(shape: Shape) -> Iterator[Column]:
    if shape.partition_column and shape.grain is not Grain.NONE:
        yield Column(shape.partition_column.lower(), shape.zone, shape.grain)
    if shape.event_time and shape.event_time.lower() != shape.partition_column.lower():
        yield Column(shape.event_time.lower(), shape.zone)


def _conditions(table: exp.Table, select: exp.Select) -> Iterator[exp.Expr]:
    """Those that a row of the table must meet to come into the result, or to be looked at in a join."""
    where = select.args.get("where")
    if where is not None:
        yield where.this
    for join in select.args.get("joins") or []:
        on, takes_away = join.args.get("on"), _TAKES_AWAY.get((join.side.upper(), join.kind.upper()))
        if on is None or takes_away is None or join.args.get("method") or join.args.get("using"):
            continue
        if join.this is table or (takes_away == "both" and _stands_before(table, join, select)):
            yield on


_TAKES_AWAY = {
    ("", ""): "both",
    ("", "INNER"): "both",
    **dict.fromkeys((("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI")), "right"),
    ("", "SEMI"): "right",
    ("", "ANTI"): "right",
}
"""By side and kind of a join, which of its sides loses the rows that do not meet its ON."""


def _stands_before(table: exp.Table, join: exp.Join, select: exp.Select) -> bool:
    """The table is a part of the FROM, or of a join in front of this one: an inner ON takes its rows away."""
    from_ = select.args.get("from_")
    if from_ is not None and from_.this is table:
        return True
    joins = select.args.get("joins") or []
    before = joins[: next(place for place, one in enumerate(joins) if one is join)]
    return any(one.this is table for one in before)


class _Own:
    """Does a column belong to the table? Only where that is sure."""

    def __init__(self, table: exp.Table, select: exp.Select, shapes: Mapping[str, Shape]) -> None:
        others = [one for one in _sources(select) if one is not table]
        self._alias = table.alias_or_name.lower()
        self._is_named_once = all(other.alias_or_name.lower() != self._alias for other in others)
        self._others = [shapes.get(other.name.lower()) if isinstance(other, exp.Table) else None for other in others]
        self._made = {
            one.alias.lower() for one in select.expressions if isinstance(one, exp.Alias) and not _is_plain(one)
        }

    def __call__(self, node: exp.Expr, name: str) -> bool:
        if not isinstance(node, exp.Column) or node.name.lower() != name or not self._is_named_once:
            return False
        if node.table:
            return node.table.lower() == self._alias
        return name not in self._made and all(
            other is not None and other.columns is not None and name not in other.columns for other in self._others
        )


def _is_plain(alias: exp.Alias) -> bool:
    return isinstance(alias.this, exp.Column) and alias.this.name.lower() == alias.alias.lower()


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    """Everything that a column without a table may come from: tables, queries, what WITH defines, laterals."""
    kinds = (exp.Table, exp.Subquery, exp.Lateral, exp.Unnest, exp.Values)
    places = [select.args.get("from_"), *(select.args.get("joins") or []), *(select.args.get("laterals") or [])]
    for place in places:
        for node in place.find_all(*kinds) if place is not None else ():
            if node.find_ancestor(exp.Select) is select and _is_source(node):
                yield node


def _is_source(node: exp.Expr) -> bool:
    """Not the parentheses of a condition."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.From | exp.Join | exp.Lateral | exp.Select):
        if isinstance(parent, exp.Condition) and not isinstance(parent, exp.Subquery):
            return False
        parent = parent.parent
    return True


# Ranges


def _both(one: tuple[Interval, ...], other: tuple[Interval, ...]) -> tuple[Interval, ...]:
    pieces = (first.clip(second) for first in one for second in other)
    return union(piece for piece in pieces if piece is not None)


def _whole_partitions(piece: Interval, shape: Shape) -> Interval:
    """With the partitions that it cuts: of one of them a query reads what it likes."""
    if shape.grain is Grain.NONE:
        return piece
    start = piece.start if piece.start <= BEGINNING else floor_to_bucket(piece.start, shape.grain, shape.zone)
    if piece.end >= FOREVER - timedelta(days=62):
        return Interval(start, FOREVER)
    return Interval(start, partition_at(piece.end - timedelta(microseconds=1), shape.grain, shape.zone).end)
