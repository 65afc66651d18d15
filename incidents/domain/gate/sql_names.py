"""What the names in a query stand for: a table, or what a WITH around it defines. By the rules of the dialect, and where these are
not sure, by both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

_NUMBERS = (exp.Unnest, exp.GenerateSeries, exp.ExplodingGenerateSeries, exp.Explode)
_SOURCES = (exp.Table, exp.Subquery, exp.Values, exp.Unnest, exp.Lateral)
_IN_PARENTHESES = (exp.Query, exp.Table, exp.Values, exp.Pivot)
_TABLE_AFTER_IN = frozenset({"ansi", "sqlite", "clickhouse"})
"""Dialects in which `x IN flights` reads the table of that name."""
_SELF_RECURSIVE = frozenset({"ansi", "tsql", "oracle", "sqlite"})
"""Dialects in which a WITH may be recursive without saying so."""


_MAX_NAMES = 200
"""Of tables, and of what WITHs define, wherever they are used."""


class UnsupportedSql(ValueError):
    """A text that cannot be looked at; says why, and what would do."""


@dataclass(frozen=True)
class NamedTables:
    """`read`: tables for sure. `perhaps`: those, or what a WITH defines. `in_names`: read without a FROM."""

    read: tuple[exp.Table, ...]
    perhaps: tuple[exp.Table, ...]
    in_names: tuple[str, ...]


def named_tables(tree: exp.Expr, dialect: str) -> NamedTables:
    """Raises UnsupportedSql for what no gate can vouch for, such as files and functions that give tables."""
    _check_sources(tree)
    tables = [table for table in tree.find_all(exp.Table) if not isinstance(table.this, _NUMBERS)]
    if len(tables) > _MAX_NAMES:
        raise UnsupportedSql(f"The query names {len(tables)} tables: {_MAX_NAMES} at most.")
    for table in tables:
        if not isinstance(table.this, exp.Identifier):
            raise UnsupportedSql(_no_dataset(table))
    meanings = [(table, _meaning(table, table.this, bool(table.db), dialect)) for table in tables]
    return NamedTables(
        tuple(table for table, meaning in meanings if meaning is _Meaning.TABLE),
        tuple(table for table, meaning in meanings if meaning is _Meaning.EITHER),
        tuple(_names_after_in(tree, dialect)),
    )


def _check_sources(tree: exp.Expr) -> None:
    """What stands after FROM and JOIN, and in parentheses there, is of a kind whose tables can be seen."""
    for place in tree.find_all(exp.From, exp.Join):
        source = place.this.this if isinstance(place.this, exp.Final) else place.this
        is_array = isinstance(place, exp.Join) and place.kind.upper() == "ARRAY"
        if not isinstance(source, _SOURCES) and not is_array:
            raise UnsupportedSql(_no_dataset(source))
    for subquery in tree.find_all(exp.Subquery):
        if not isinstance(subquery.this, _IN_PARENTHESES):
            raise UnsupportedSql(_no_dataset(subquery))


def _no_dataset(node: exp.Expr) -> str:
    return f"The query reads {node.sql()[:80]}, which is no dataset: name the tables."


def _names_after_in(tree: exp.Expr, dialect: str) -> Iterator[str]:
    if dialect not in _TABLE_AFTER_IN:
        return
    for node in tree.find_all(exp.In):
        named = node.args.get("field")
        if isinstance(named, exp.Column):
            if _meaning(node, named.this, bool(named.table), dialect) is _Meaning.TABLE:
                yield named.name
        elif named is not None:
            raise UnsupportedSql(_no_dataset(named))


# What a WITH defines


class _Meaning(Enum):
    TABLE = "table"
    WITH = "with"
    EITHER = "either"


def _meaning(place: exp.Expr, name: exp.Identifier, is_qualified: bool, dialect: str) -> _Meaning:
    """Of a name, from the innermost WITH outwards. A query in a WITH does not see itself, unless it is recursive."""
    meaning = _Meaning.TABLE
    for cte, is_recursion in () if is_qualified else _visible_definitions(place, dialect):
        same = _is_same_name(name, cte.args["alias"].this, dialect)
        if same is True and not is_recursion:
            return meaning if meaning is _Meaning.EITHER else _Meaning.WITH
        if same is not False:
            meaning = _Meaning.EITHER
    return meaning


def _visible_definitions(place: exp.Expr, dialect: str) -> Iterator[tuple[exp.CTE, bool]]:
    """The queries that the WITHs around a place define, and whether the place is within that query's own recursion."""
    node = place
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.With) and isinstance(node, exp.CTE):
            for cte in reversed(parent.expressions[: node.index or 0]):
                if _is_query(cte):
                    yield cte, False
            if (parent.recursive or dialect in _SELF_RECURSIVE) and _is_recursion(place, node):
                yield node, True
            node = parent.parent or parent
            continue
        with_ = parent.args.get("with_")
        if with_ is not None and with_ is not node:
            yield from ((cte, False) for cte in reversed(with_.expressions) if _is_query(cte))
        node = parent


def _is_query(cte: exp.CTE) -> bool:
    """ClickHouse's `WITH 1 AS flights` names a value, and no table."""
    return isinstance(cte.this, exp.Query) and not cte.args.get("scalar")


def _is_recursion(place: exp.Expr, cte: exp.CTE) -> bool:
    """The second half of a UNION is what recurs. Anywhere else databases read the table, or refuse the query."""
    query = cte.this.unnest()
    if not isinstance(query, exp.Union):
        return False
    node: exp.Expr | None = place
    while node is not None and node is not query.expression:
        node = node.parent
    return node is not None


def _is_same_name(name: exp.Identifier, defined: exp.Identifier, dialect: str) -> bool | None:
    """None: perhaps, because versions, settings and quotes decide."""
    if name.this.lower() != defined.this.lower():
        return False
    if name.this == defined.this and bool(name.quoted) == bool(defined.quoted):
        return True
    strategy = sqlglot_dialect(dialect).normalization_strategy
    if strategy is NormalizationStrategy.CASE_SENSITIVE:
        return None if name.this == defined.this else False
    if not name.quoted and not defined.quoted:
        return True
    return None if strategy in _FOLDS_QUOTED or name.this == defined.this else False


def sqlglot_dialect(dialect: str) -> Dialect:
    return Dialect.get_or_raise({"ansi": "", "athena": "trino"}.get(dialect, dialect))


_FOLDS_QUOTED = {NormalizationStrategy.CASE_INSENSITIVE, NormalizationStrategy.CASE_INSENSITIVE_UPPERCASE}
