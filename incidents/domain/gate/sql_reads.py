"""Which datasets a SQL query reads, and over which time ranges: looked at, never run.

A range is never narrower than what the query can read, and no table is missed: `sql_names` says what names stand for, `sql_bounds` what
bounds a table, `sql_mentions` what the text names beside that. A table that nothing bounds is read as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from incidents.domain.gate.sql_bounds import QueryContext, TableShape, table_ranges
from incidents.domain.gate.sql_functions import unknown_functions, unknown_row_functions
from incidents.domain.gate.sql_mentions import has_unary_plus, unaccounted_names
from incidents.domain.gate.sql_names import UnsupportedSql, named_tables
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.interval import EVERYTHING, Interval, union
from lakehub.kernel.suggest import did_you_mean
from lakehub.user_sql.sql_text import MAX_LENGTH, PARSER_ERRORS, UnreadableSql, parse_statements

MAX_SQL_LENGTH = MAX_LENGTH
MAX_TABLES = 50
MAX_RANGES = 20
"""Of one table; more are asked for as one, from the first to the last."""
DIALECTS = (
    "ansi", "athena", "bigquery", "clickhouse", "databricks", "duckdb", "hive", "mysql", "oracle", "postgres", "presto",
    "redshift", "snowflake", "spark", "sqlite", "trino", "tsql",
)  # fmt: skip


@dataclass(frozen=True)
class TableReads:
    """A dataset that the query reads: over which ranges, or as a whole (`bounded` is False), and why."""

    dataset: str
    ranges: tuple[Interval, ...]
    bounded: bool
    why: str


@dataclass(frozen=True)
class ParsedQuery:
    """A query that was parsed. All names are the last parts of what is named, `functions` and `mentions` in small letters.

    `tables` are read; `perhaps` are read, or what a WITH defines; `in_names` are read, and nothing bounds them. `mentions` stand in
    the text in a way that is not understood. Of `functions` nobody knows what they read.
    """

    tree: exp.Expr
    dialect: str
    tables: tuple[exp.Table, ...]
    perhaps: tuple[exp.Table, ...] = ()
    in_names: tuple[str, ...] = ()
    mentions: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    has_unary_plus: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What is read for sure."""
        return tuple(dict.fromkeys((*(table.name for table in self.tables), *self.in_names)))

    @property
    def possible_names(self) -> frozenset[str]:
        """In small letters: what may be read, where it is a dataset."""
        return self.mentions | {table.name.lower() for table in self.perhaps}

    def without(self, names: Collection[str]) -> ParsedQuery:
        """As if these tables, in small letters, were not asked about."""
        return replace(
            self,
            tables=tuple(table for table in self.tables if table.name.lower() not in names),
            perhaps=tuple(table for table in self.perhaps if table.name.lower() not in names),
            in_names=tuple(name for name in self.in_names if name.lower() not in names),
            mentions=self.mentions - set(names),
        )


# Understanding the text


def parse_query(sql: str, dialect: str) -> ParsedQuery:
    """Raises UnsupportedSql."""
    if dialect not in DIALECTS:
        raise UnsupportedSql(f"There is no dialect `{dialect[:40]}`.{did_you_mean(dialect[:40], DIALECTS)}")
    try:
        tree, target = _one_query(sql, "" if dialect == "ansi" else dialect)
        named = named_tables(tree, dialect)
        mentions, functions = unaccounted_names(sql, tree, target, dialect), frozenset(unknown_functions(tree))
    except UnsupportedSql:
        raise
    except UnreadableSql as problem:
        raise UnsupportedSql(f"The query cannot be understood as {dialect}: {problem}.") from None
    except (SqlglotError, *PARSER_ERRORS):
        raise UnsupportedSql(f"The tables of the query cannot be understood as {dialect}.") from None
    plus = has_unary_plus(sql, dialect)
    query = ParsedQuery(tree, dialect, named.read, named.perhaps, named.in_names, mentions, functions, plus)
    if not query.names and not query.perhaps:
        raise UnsupportedSql("The query reads no table.")
    if len(query.tables) + len(query.perhaps) > MAX_TABLES:
        raise UnsupportedSql(f"The query names {len(query.tables) + len(query.perhaps)} tables: {MAX_TABLES} at most.")
    return query


def _one_query(sql: str, dialect: str) -> tuple[exp.Expr, exp.Expr | None]:
    """The query, and what it is written into."""
    statements = parse_statements(sql, dialect)
    if len(statements) != 1:
        raise UnsupportedSql(f"One query is wanted, not {len(statements)} statements.")
    (statement,) = statements
    target = None
    writes_into = isinstance(statement, exp.Insert | exp.Create) and statement.args.get("with_") is None
    if writes_into and isinstance(statement.expression, exp.Query):
        statement, target = _query_and_target(statement)
    if not isinstance(statement, exp.Query):
        raise UnsupportedSql(f"A query is wanted, not {statement.key.upper()}.")
    for node in statement.find_all(exp.Into, exp.DML, exp.DDL, exp.Command):
        if not isinstance(node, exp.Query):
            raise UnsupportedSql(f"The query may only read: without {node.key.upper()}.")
    return statement, target


def _query_and_target(statement: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """What it writes is not read."""
    for part, value in statement.args.items():
        parts = value if isinstance(value, list) else [value]
        if part not in ("this", "expression") and any(
            isinstance(each, exp.Expr) and each.find(exp.Table) for each in parts
        ):
            raise UnsupportedSql(
                f"The {statement.key.upper()} reads tables beside its query: ask about the query alone."
            )
    return statement.expression.copy(), statement.this


def row_functions(query: ParsedQuery, shapes: Mapping[str, TableShape], left_out: Collection[str]) -> frozenset[str]:
    """The names, in small letters, behind a dot that may call a function of which nobody knows what it reads. Of a table that is
    left out, in small letters, whoever leaves it out knows the columns.
    """

    def has_column(table: exp.Table, name: exp.Identifier) -> bool | None:
        key = table.name.lower()
        is_table = any(read is table for read in query.tables)
        if not is_table and (key not in shapes or not any(read is table for read in query.perhaps)):
            return None
        columns = (shapes[key].columns if key in shapes else None) or frozenset()
        has = key in left_out or name.this.lower() in columns | _SYSTEM_COLUMNS
        # What may be a WITH instead has the column where both have it.
        return has if is_table or not has else None

    return frozenset(unknown_row_functions(query.tree, query.dialect, has_column))


_SYSTEM_COLUMNS = frozenset({"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"})
"""Of every table of PostgreSQL."""

# What bounds each table


def tables_read(query: ParsedQuery, shapes: Mapping[str, TableShape], clock: QueryClock) -> list[TableReads]:
    """Each dataset once, with all that the query may read of it. `shapes` by name, in small letters: of all tables, and of what
    may be read where it is a dataset.
    """
    tables = (*query.tables, *(table for table in query.perhaps if table.name.lower() in shapes))
    context = QueryContext(query.tree, query.tables, shapes, clock, query.dialect, query.has_unary_plus)
    ranges_by_name: dict[str, list[tuple[Interval, ...]]] = {}
    for table in tables:
        ranges = table_ranges(table, shapes[table.name.lower()], context)
        ranges_by_name.setdefault(table.name.lower(), []).append(ranges)
    reads = {name: _merge_reads(name, ranges, shapes[name]) for name, ranges in ranges_by_name.items()}
    for name in sorted({name.lower() for name in query.in_names} | (query.mentions & set(shapes))):
        if name not in reads or reads[name].bounded:
            reads[name] = TableReads(name, (EVERYTHING,), False, _MENTIONED.format(name))
    return list(reads.values())


_MENTIONED = "The query names `{}` in a way that nothing is known to bound: it is asked for as a whole."


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
