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

from incidents.domain.gate.sql_times import QueryClock, TimeColumn, column_bounds
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval, union
from lakehub.kernel.partitions import Grain, floor_to_bucket, partition_at
from lakehub.kernel.partitions.form import PartitionForm
from lakehub.kernel.suggest import did_you_mean
from quality.domain.user_sql import PARSER_ERRORS

MAX_SQL_LENGTH = 20_000
MAX_TABLES = 50
MAX_RANGES = 20
"""Of one table; more are asked for as one, from the first to the last."""
DIALECTS = (
    "ansi", "athena", "bigquery", "clickhouse", "databricks", "duckdb", "hive", "mysql", "oracle", "postgres", "presto",
    "redshift", "snowflake", "spark", "sqlite", "trino", "tsql",
)  # fmt: skip
_NOT_TABLES = (exp.Unnest, exp.GenerateSeries, exp.ExplodingGenerateSeries, exp.Explode)


class UnsupportedSql(ValueError):
    """A text that cannot be looked at; says why, and what would do."""


@dataclass(frozen=True)
class TableShape:
    """How a dataset is cut. `columns` in small letters; None: not known."""

    partition_column: str
    grain: Grain
    zone: ZoneInfo
    event_time: str = ""
    columns: frozenset[str] | None = None
    form: PartitionForm | None = None
    """None: the partition column holds the names of partitions."""
    lake_column: str = ""
    """Of a table in the lake that Lakehub partitions itself, the column with the names of partitions."""


@dataclass(frozen=True)
class TableReads:
    """A dataset that the query reads: over which ranges, or as a whole (`bounded` is False), and why."""

    dataset: str
    ranges: tuple[Interval, ...]
    bounded: bool
    why: str


@dataclass(frozen=True)
class ParsedQuery:
    """A query that was parsed, and the tables that it reads by the last part of their names."""

    tree: exp.Expr
    tables: tuple[exp.Table, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(table.name for table in self.tables))

    def without(self, names: Collection[str]) -> ParsedQuery:
        """As if these tables, in small letters, were not asked about."""
        return ParsedQuery(self.tree, tuple(table for table in self.tables if table.name.lower() not in names))


# Understanding the text


def parse_query(sql: str, dialect: str) -> ParsedQuery:
    """Raises UnsupportedSql."""
    if dialect not in DIALECTS:
        raise UnsupportedSql(f"There is no dialect `{dialect[:40]}`.{did_you_mean(dialect[:40], DIALECTS)}")
    if len(sql) > MAX_SQL_LENGTH:
        raise UnsupportedSql(f"A query of {len(sql):,} characters: {MAX_SQL_LENGTH:,} at most.")
    try:
        tree = _one_query(sql, "" if dialect == "ansi" else dialect)
        tables = tuple(table for table in tree.find_all(exp.Table) if _is_read(table, tree))
    except (SqlglotError, *PARSER_ERRORS) as problem:
        if isinstance(problem, UnsupportedSql):
            raise
        raise UnsupportedSql(f"The query cannot be understood as {dialect}: {_parse_error_text(problem)}") from None
    if not tables:
        raise UnsupportedSql("The query reads no table.")
    if len(tables) > MAX_TABLES:
        raise UnsupportedSql(f"The query names {len(tables)} tables: {MAX_TABLES} at most.")
    return ParsedQuery(tree, tables)


def _one_query(sql: str, dialect: str) -> exp.Expr:
    statements = [parsed for parsed in sqlglot.parse(sql, read=dialect) if parsed is not None]
    if len(statements) != 1:
        raise UnsupportedSql(f"One query is wanted, not {len(statements)} statements.")
    (statement,) = statements
    writes_into = isinstance(statement, exp.Insert | exp.Create) and statement.args.get("with_") is None
    if writes_into and isinstance(statement.expression, exp.Query):
        statement = statement.expression.copy()  # what it writes is not read
    if not isinstance(statement, exp.Query):
        raise UnsupportedSql(f"A query is wanted, not {statement.key.upper()}.")
    for node in statement.find_all(exp.Into, exp.DML, exp.DDL, exp.Command):
        if not isinstance(node, exp.Query):
            raise UnsupportedSql(f"The query may only read: without {node.key.upper()}.")
    return statement


def _parse_error_text(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "it is nested too deeply."
    errors = getattr(problem, "errors", None)
    if errors:
        return f"line {errors[0]['line']}, column {errors[0]['col']}: {errors[0]['description']}"
    return (str(problem).splitlines() or ["it makes no sense."])[0]


def _is_read(table: exp.Table, tree: exp.Expr) -> bool:
    """Not what a WITH defines, and no series of numbers. Raises UnsupportedSql for what no gate can vouch for, such as files."""
    if isinstance(table.this, _NOT_TABLES):
        return False
    if not isinstance(table.this, exp.Identifier):
        raise UnsupportedSql(f"The query reads {table.sql()[:80]}, which is no dataset: name the tables.")
    return bool(table.db) or not _is_cte(table)


def _is_cte(table: exp.Table) -> bool:
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


def tables_read(query: ParsedQuery, shapes: Mapping[str, TableShape], clock: QueryClock) -> list[TableReads]:
    """Each dataset once, with all that the query may read of it. `shapes` by name, in small letters."""
    ranges_by_name: dict[str, list[tuple[Interval, ...]]] = {}
    for table in query.tables:
        shape = shapes[table.name.lower()]
        ranges_by_name.setdefault(table.name.lower(), []).append(_table_ranges(table, shape, shapes, clock))
    return [_merge_reads(name, ranges, shapes[name]) for name, ranges in ranges_by_name.items()]


def _merge_reads(name: str, ranges: Collection[tuple[Interval, ...]], shape: TableShape) -> TableReads:
    pieces = union(piece for table_ranges in ranges for piece in table_ranges)
    if not all(ranges) or any(piece.is_everything for piece in pieces):
        return TableReads(name, (EVERYTHING,), False, _unbounded_reason(shape))
    if len(pieces) > MAX_RANGES:
        pieces = (Interval(pieces[0].start, pieces[-1].end),)
    columns = " and ".join(f"`{column}`" for column in (shape.partition_column, shape.event_time) if column)
    return TableReads(name, pieces, True, f"by {columns}")


def _unbounded_reason(shape: TableShape) -> str:
    named = [column for column in (shape.partition_column, shape.event_time) if column]
    if not named:
        return "The dataset has neither a partition column nor an event time: a query reads it as a whole."
    columns = " or ".join(f"`{column}`" for column in named)
    return f"Nothing in the query bounds {columns} by a constant in a way that is sure: it is asked for as a whole."


def _table_ranges(
    table: exp.Table, shape: TableShape, shapes: Mapping[str, TableShape], clock: QueryClock
) -> tuple[Interval, ...]:
    """What the table's SELECT leaves of it; empty where the conditions contradict each other."""
    select = table.find_ancestor(exp.Select)
    if select is None or _is_renamed_or_pivoted(table) or select.args.get("match"):
        return (EVERYTHING,)
    own = _ColumnOwnership(table, select, shapes)
    conditions = list(_conditions(table, select))
    left: tuple[Interval, ...] = (EVERYTHING,)
    for column in _columns(shape):
        for condition in conditions:
            allowed = column_bounds(condition, column, partial(own, name=column.name), clock)
            left = _intersection(left, tuple(_whole_partitions(piece, shape) for piece in allowed))
    return left


def _is_renamed_or_pivoted(table: exp.Table) -> bool:
    """Its columns have other names, or other values, outside."""
    alias = table.args.get("alias")
    return bool(table.args.get("pivots") or (alias is not None and alias.columns))


def _columns(shape: TableShape) -> Iterator[TimeColumn]:
    if shape.partition_column and shape.grain is not Grain.NONE:
        yield _partition_column(shape, shape.form)
        if shape.lake_column:
            yield TimeColumn(shape.lake_column.lower(), shape.zone, shape.grain)
    if shape.event_time and shape.event_time.lower() != shape.partition_column.lower():
        yield TimeColumn(shape.event_time.lower(), shape.zone)


def _partition_column(shape: TableShape, form: PartitionForm | None) -> TimeColumn:
    """One of times is like any other column of times: a row lies in the partition of its own time."""
    name = shape.partition_column.lower()
    if form is not None and form.is_time:
        return TimeColumn(name, shape.zone)
    return TimeColumn(name, shape.zone, shape.grain, None if form is None or form.is_named else form)


def _conditions(table: exp.Table, select: exp.Select) -> Iterator[exp.Expr]:
    """Those that a row of the table must meet to come into the result, or to be looked at in a join."""
    where = select.args.get("where")
    if where is not None:
        yield where.this
    for join in select.args.get("joins") or []:
        on, takes_away = join.args.get("on"), _FILTERED_SIDE.get((join.side.upper(), join.kind.upper()))
        if on is None or takes_away is None or join.args.get("method") or join.args.get("using"):
            continue
        if join.this is table or (takes_away == "both" and _precedes_join(table, join, select)):
            yield on


_FILTERED_SIDE = {
    ("", ""): "both",
    ("", "INNER"): "both",
    **dict.fromkeys((("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI")), "right"),
    ("", "SEMI"): "right",
    ("", "ANTI"): "right",
}
"""By side and kind of a join, which of its sides loses the rows that do not meet its ON."""


def _precedes_join(table: exp.Table, join: exp.Join, select: exp.Select) -> bool:
    """The table is a part of the FROM, or of a join in front of this one: an inner ON takes its rows away."""
    from_ = select.args.get("from_")
    if from_ is not None and from_.this is table:
        return True
    joins = select.args.get("joins") or []
    before = joins[: next(place for place, other_join in enumerate(joins) if other_join is join)]
    return any(other_join.this is table for other_join in before)


class _ColumnOwnership:
    """Does a column belong to the table? Only where that is sure."""

    def __init__(self, table: exp.Table, select: exp.Select, shapes: Mapping[str, TableShape]) -> None:
        others = [node for node in _sources(select) if node is not table]
        self._alias = table.alias_or_name.lower()
        self._is_named_once = all(other.alias_or_name.lower() != self._alias for other in others)
        self._others = [shapes.get(other.name.lower()) if isinstance(other, exp.Table) else None for other in others]
        self._made = {
            node.alias.lower() for node in select.expressions if isinstance(node, exp.Alias) and not _is_plain(node)
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


def _intersection(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> tuple[Interval, ...]:
    pieces = (first.clip(second) for first in left for second in right)
    return union(piece for piece in pieces if piece is not None)


def _whole_partitions(piece: Interval, shape: TableShape) -> Interval:
    """With the partitions that it cuts: of one of them a query reads what it likes."""
    if shape.grain is Grain.NONE:
        return piece
    start = piece.start if piece.start <= BEGINNING else floor_to_bucket(piece.start, shape.grain, shape.zone)
    if piece.end >= FOREVER - timedelta(days=62):
        return Interval(start, FOREVER)
    return Interval(start, partition_at(piece.end - timedelta(microseconds=1), shape.grain, shape.zone).end)
