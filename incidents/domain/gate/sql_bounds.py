"""Over which ranges a SELECT reads a table: what its WHERE, and the ON of its joins, leave of the table's rows.

Only of a SELECT all of whose parts are known to look at no row that these take away. Any other reads its tables as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import cast
from zoneinfo import ZoneInfo

from sqlglot import exp

from incidents.domain.gate.sql_times import QueryClock, TimeColumn, column_bounds, intersection
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.kernel.partitions import Grain, floor_to_bucket, partition_at
from lakehub.kernel.partitions.form import PartitionForm


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
    has_numbers: bool | None = None
    """The partition column's type is of numbers, or of texts; None: neither, or not known."""
    may_be_date: bool = False
    """The event time may be a DATE, and have no time of day."""


@dataclass(frozen=True)
class QueryContext:
    """What a bound depends on besides the table: `tables` are those of the `tree` whose columns `shapes` knows."""

    tree: exp.Expr
    tables: Collection[exp.Table]
    shapes: Mapping[str, TableShape]
    clock: QueryClock
    dialect: str
    has_unary_plus: bool = False
    """The tree does not have it, and SQLite compares `+day` by what is stored."""

    @cached_property
    def spellings(self) -> Mapping[str, Collection[tuple[str, bool]]]:
        """How each source is written, and whether in quotes, by its name in small letters."""
        spellings = defaultdict[str, set[tuple[str, bool]]](set)
        for node in self.tree.find_all(exp.Table, exp.TableAlias):
            name = _source_name(node) if isinstance(node, exp.Table) else node.this
            if isinstance(name, exp.Identifier):
                spellings[name.this.lower()].add((name.this, bool(name.quoted)))
        return spellings

    @cached_property
    def sets_variables(self) -> bool:
        """MySQL's `@n := @n + 1` counts rows before they are taken away."""
        return any(not isinstance(node.parent, exp.Struct) for node in self.tree.find_all(exp.PropertyEQ))

    @cached_property
    def draws_rows(self) -> bool:
        """A sample depends on the order in which rows come, and that on all rows of all tables: of how to join them a database
        decides by how many there are."""
        return self.tree.find(exp.TableSample) is not None

    @cached_property
    def named_values(self) -> Collection[str]:
        """What a WITH calls a value, in small letters."""
        return {
            cte.alias.lower()
            for cte in self.tree.find_all(exp.CTE)
            if not isinstance(cte.this, exp.Query) or cte.args.get("scalar")
        }

    def columns_of(self, source: exp.Expr) -> frozenset[str] | None:
        is_known = isinstance(source, exp.Table) and any(table is source for table in self.tables)
        shape = self.shapes.get(source.name.lower()) if is_known else None
        return None if shape is None else shape.columns


def table_ranges(table: exp.Table, shape: TableShape, context: QueryContext) -> tuple[Interval, ...]:
    """What the table's SELECT leaves of it; empty where the conditions contradict each other."""
    select = _plain_select(table)
    if select is None or context.sets_variables or context.draws_rows or context.has_unary_plus:
        return (EVERYTHING,)
    conditions = list(_conditions(table, select, context.dialect))
    if not conditions:
        return (EVERYTHING,)
    own = _ColumnOwnership(table, select, context)
    left: tuple[Interval, ...] = (EVERYTHING,)
    for column in _columns(shape):
        for condition in conditions:
            allowed = column_bounds(condition, column, partial(own, name=column.name), context.clock, context.dialect)
            left = intersection(left, tuple(_whole_partitions(piece, shape) for piece in allowed))
    return left


def _columns(shape: TableShape) -> Iterator[TimeColumn]:
    if shape.partition_column and shape.grain is not Grain.NONE:
        yield _partition_column(shape, shape.form)
        if shape.lake_column:
            yield TimeColumn(shape.lake_column, shape.zone, shape.grain)
    if shape.event_time and shape.event_time.lower() != shape.partition_column.lower():
        yield TimeColumn(shape.event_time, shape.zone, may_be_date=shape.may_be_date)


def _partition_column(shape: TableShape, form: PartitionForm | None) -> TimeColumn:
    """One of times is like any other column of times: a row lies in the partition of its own time."""
    name = shape.partition_column
    if form is not None and form.is_time:
        return TimeColumn(name, shape.zone)
    own_form = None if form is None or form.is_named else form
    return TimeColumn(name, shape.zone, shape.grain, own_form, shape.has_numbers)


def _whole_partitions(piece: Interval, shape: TableShape) -> Interval:
    """With the partitions that it cuts: of one of them a query reads what it likes."""
    if shape.grain is Grain.NONE:
        return piece
    start = piece.start if piece.start <= BEGINNING else floor_to_bucket(piece.start, shape.grain, shape.zone)
    if piece.end >= FOREVER - timedelta(days=62):
        return Interval(start, FOREVER)
    return Interval(start, partition_at(piece.end - timedelta(microseconds=1), shape.grain, shape.zone).end)


# What is known to look at no row that a WHERE or an ON takes away

_SELECT_PARTS = frozenset({
    "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "windows", "order", "sort", "distribute",
    "cluster", "limit", "offset", "distinct", "with_", "hint", "kind",
})  # fmt: skip
"""All but the FROM and the joins come after the WHERE."""
_TABLE_PARTS = frozenset({"this", "db", "catalog", "alias"})
_SOURCE_PARTS = {
    exp.Table: _TABLE_PARTS,
    exp.Subquery: frozenset({"this", "alias", "with_"}),
    exp.Values: frozenset({"expressions", "alias"}),
    exp.Unnest: frozenset({"expressions", "alias", "offset"}),
    exp.Lateral: frozenset({"this", "view", "outer", "alias", "cross_apply"}),
}
_JOIN_PARTS = frozenset({"this", "side", "kind", "method", "on", "using"})
_JOIN_KINDS = frozenset({
    ("", ""), ("", "INNER"), ("", "CROSS"), ("", "SEMI"), ("", "ANTI"),
    ("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI"),
    ("RIGHT", ""), ("RIGHT", "OUTER"), ("FULL", ""), ("FULL", "OUTER"),
})  # fmt: skip
"""By side and kind. Of any other, such as ASOF, POSITIONAL and ANY, the rows that it pairs depend on rows that a WHERE takes away."""


def _plain_select(table: exp.Table) -> exp.Select | None:
    """The SELECT in whose FROM, or one of whose joins, the table stands."""
    select = table.parent.parent if isinstance(table.parent, exp.From | exp.Join) else None
    if not isinstance(select, exp.Select) or not _has_only(select, _SELECT_PARTS):
        return None
    alias = table.args.get("alias")
    if alias is not None and alias.columns:
        return None  # its columns have other names outside
    from_, joins = select.args.get("from_"), select.args.get("joins") or []
    if from_ is None or not all(_is_plain_join(join) for join in joins):
        return None
    sources = [from_.this, *(join.this for join in joins), *(select.args.get("laterals") or [])]
    return (
        select if all(_has_only(source, _SOURCE_PARTS.get(type(source), frozenset())) for source in sources) else None
    )


def _is_plain_join(join: exp.Join) -> bool:
    kind = (join.side.upper(), join.kind.upper())
    return _has_only(join, _JOIN_PARTS) and kind in _JOIN_KINDS and join.method.upper() in ("", "NATURAL")


def _has_only(node: exp.Expr, parts: Collection[str]) -> bool:
    return all(part in parts for part, value in node.args.items() if value not in (None, False, []))


# The conditions of a table


def _conditions(table: exp.Table, select: exp.Select, dialect: str) -> Iterator[exp.Expr]:
    """Those that a row of the table must meet to come into the result, or to be looked at in a join."""
    where = select.args.get("where")
    joins: list[exp.Join] = select.args.get("joins") or []
    if (
        where is not None
        and _is_seen_by_where(table, joins)
        and not (_may_be_missing(table, joins) and dialect in _FILLS_IN)
    ):
        yield where.this
    for join in joins:
        on, takes_away = join.args.get("on"), _FILTERED_SIDE.get((join.side.upper(), join.kind.upper()))
        if on is None or takes_away is None or join.method or join.args.get("using"):
            continue
        if join.this is table or (takes_away == "both" and _precedes_join(table, join, joins)):
            yield on


_FILLS_IN = frozenset({"clickhouse"})
"""Dialects in which a row that an outer join does not find has values and no nulls, which a WHERE may let through."""
_FILTERED_SIDE = {
    ("", ""): "both",
    ("", "INNER"): "both",
    **dict.fromkeys((("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI")), "right"),
    ("", "SEMI"): "right",
    ("", "ANTI"): "right",
}
"""By side and kind of a join, which of its sides loses the rows that do not meet its ON."""


def _is_seen_by_where(table: exp.Table, joins: Collection[exp.Join]) -> bool:
    return not any(join.this is table and join.kind.upper() in ("SEMI", "ANTI") for join in joins)


def _may_be_missing(table: exp.Table, joins: list[exp.Join]) -> bool:
    """An outer join may put a row in the place of one of the table."""
    return any(
        join.side.upper() in (("LEFT", "FULL") if join.this is table else ("RIGHT", "FULL"))
        for join in joins
        if join.this is table or _precedes_join(table, join, joins)
    )


def _precedes_join(table: exp.Table, join: exp.Join, joins: list[exp.Join]) -> bool:
    """The table is the FROM, or in a join in front of this one: an inner ON takes its rows away."""
    before = joins[: next(place for place, other_join in enumerate(joins) if other_join is join)]
    return isinstance(table.parent, exp.From) or any(other_join.this is table for other_join in before)


# Whose a column is


class _ColumnOwnership:
    """Does a column belong to the table? Only where that is sure."""

    def __init__(self, table: exp.Table, select: exp.Select, context: QueryContext) -> None:
        others = [node for node in _sources(select) if node is not table]
        self._alias = _source_name(table).this.lower()
        self._is_sure = len(context.spellings[self._alias]) == 1 and all(
            other.alias_or_name.lower() != self._alias for other in others
        )
        self._others = [context.columns_of(other) for other in others]
        columns = (context.columns_of(source) or () for source in _sources(select))
        self._made = {*_made_names(select), *context.named_values}
        # In some dialects a column wins over a table of its name: `carrier.ts` is a field of it.
        self._is_sure &= all(self._alias not in names for names in columns)
        self._shared = {
            column.name.lower() for join in select.args.get("joins") or [] for column in join.args.get("using") or []
        }
        self._is_natural = any(join.method for join in select.args.get("joins") or [])

    def __call__(self, node: exp.Expr, name: str) -> bool:
        if not isinstance(node, exp.Column) or not _is_called(node.this, name) or node.args.get("db"):
            return False
        lower = name.lower()
        if node.table:
            return self._is_sure and node.table.lower() == self._alias and self._alias not in self._made
        if lower in self._made or lower in self._shared or self._is_natural:
            return False
        return all(columns is not None and lower not in columns for columns in self._others)


def _source_name(table: exp.Table) -> exp.Identifier:
    alias = table.args.get("alias")
    return cast(exp.Identifier, table.this if alias is None or alias.this is None else alias.this)


def _is_called(column: exp.Expr, name: str) -> bool:
    """A quoted name with other capitals may be another column."""
    if not isinstance(column, exp.Identifier):
        return False
    return column.name == name if column.quoted else column.name.lower() == name.lower()


def _made_names(select: exp.Select) -> Iterator[str]:
    """What the query itself calls so, in small letters: in some dialects, anywhere in a SELECT, that wins over columns."""
    for alias in select.find_all(exp.Alias, exp.TableAlias):
        if isinstance(alias, exp.TableAlias):
            yield from (column.name.lower() for column in alias.columns)
        elif isinstance(alias, exp.Alias) and not _is_plain(alias):
            yield from alias.alias.lower().split(".")


def _is_plain(alias: exp.Alias) -> bool:
    return isinstance(alias.this, exp.Column) and alias.this.name.lower() == alias.alias.lower()


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    """Everything that a column without a table may come from: tables, queries, what WITH defines, laterals."""
    for place in (select.args["from_"], *(select.args.get("joins") or [])):
        yield place.this
    yield from select.args.get("laterals") or []
