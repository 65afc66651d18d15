"""Measures as one SELECT, for engines that read SQL text. Identifiers are quoted; values are never in the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from quality.domain.language.measures import Measure, Scalar
from quality.domain.language.tree.nodes import Name
from quality.engines.scans.column_types import ColumnType
from quality.engines.sql.measure_checks import ColumnTypes
from quality.engines.sql.numeric_bins import BINS_PER_POWER, LAST_BIN, MAX_BINS, MAX_EXPONENT, MIN_EXPONENT, NAN_BIN
from quality.engines.sql.portable_patterns import RegexFlavour, write_pattern

BoundMeasures: TypeAlias = Mapping[Measure, tuple[Scalar, ...]]
"""The measures of a query with the values that each binds."""


@dataclass(frozen=True)
class SqlDialect:
    """How an engine writes a name, a parameter, a key of several columns, and whether a text matches; `column` is what
    makes equal what the other engines hold for equal, such as a text without the rules of a language."""

    quote: Callable[[str], str]
    parameter: Callable[[str], str]
    key: Callable[[Sequence[str]], str]
    matches: Callable[[str, str], str]
    flavour: RegexFlavour
    double_type: str = "DOUBLE"
    column: Callable[[str, ColumnType], str] = lambda column, kind: column
    sum_of: Callable[[str, ColumnType], str] = lambda column, kind: f"SUM({column})"
    extreme: Callable[[str, ColumnType], str] = lambda column, kind: column
    is_nan: Callable[[str], str] = "isnan({})".format
    bin_function: Callable[[str], str] | None = None
    """A function of the engine's own for the bin of a number."""
    counts_keys_separately: bool = False
    """Several keys that are counted beside other measures are counted in queries within the query."""


@dataclass(frozen=True)
class TableExpression:
    """What follows FROM, with its parameters."""

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RowSelection:
    """Which rows of a table: those that `where` lets through, grouped by `group_by`; of the groups `max_groups`, by size with `largest_first`."""

    table: TableExpression
    columns: ColumnTypes
    where: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    group_by: str = ""
    max_groups: int = 0
    largest_first: bool = False


@dataclass(frozen=True)
class Statement:
    text: str
    parameters: dict[str, object]


@dataclass(frozen=True)
class _Term:
    """A measure in SQL: its columns, the placeholders of its values, the kind of its first column."""

    columns: Sequence[str]
    values: Sequence[str]
    kind: ColumnType


def _count_where(condition: str) -> str:
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _distinct(dialect: SqlDialect, term: _Term) -> str:
    """A null is a value too; for one column the engine's own count is much the fastest."""
    if len(term.columns) > 1:
        return f"COUNT(DISTINCT {dialect.key(term.columns)})"
    (column,) = term.columns
    return f"COUNT(DISTINCT {column}) + COALESCE(MAX(CASE WHEN {column} IS NULL THEN 1 ELSE 0 END), 0)"


AGGREGATES: dict[str, Callable[[SqlDialect, _Term], str]] = {
    "rows": lambda dialect, term: "COUNT(*)",
    "distinct": _distinct,
    "nulls": lambda dialect, term: f"COUNT(*) - COUNT({term.columns[0]})",
    "filled": lambda dialect, term: f"COUNT({term.columns[0]})",
    "sum": lambda dialect, term: dialect.sum_of(term.columns[0], term.kind),
    "minimum": lambda dialect, term: f"MIN({dialect.extreme(term.columns[0], term.kind)})",
    "maximum": lambda dialect, term: f"MAX({dialect.extreme(term.columns[0], term.kind)})",
    "outside": lambda dialect, term: _count_where(
        f"{term.columns[0]} < {term.values[0]} OR {term.columns[0]} > {term.values[1]}"
    ),
    "mismatched": lambda dialect, term: _count_where(f"NOT {dialect.matches(term.columns[0], term.values[0])}"),
    "unexpected": lambda dialect, term: _count_where(f"{term.columns[0]} NOT IN ({', '.join(term.values)})"),
}
"""One line a measure. `unmatched` needs a join and `frequencies` rows of their own: they are built below."""


def measure_query(
    dialect: SqlDialect, bound: BoundMeasures, rows: RowSelection, looked_into: Mapping[Name, RowSelection]
) -> Statement:
    """One row of answers in the order of the measures. With a group, a row for each of its values: the value, how many
    groups there are in all, how many rows this one has, and the answers."""
    joins, answers = [], []
    parameters: dict[str, object] = {**rows.table.parameters, **rows.parameters}
    apart = separately_counted(dialect, bound, rows)
    for number, (measure, values) in enumerate(bound.items()):
        if measure.kind == "unmatched":
            assert measure.other is not None
            other = looked_into[measure.other]
            joins.append(_lookup_join(dialect, measure, number, rows.columns, other))
            answers.append(_count_unmatched(dialect, measure, number, rows.columns))
            parameters |= other.table.parameters
        elif measure in apart:
            answers.append(_separate_count(dialect, measure, rows))
        else:
            names = [f"v{number}_{position}" for position in range(len(values))]
            parameters |= zip(names, _bound_values(dialect, measure, values), strict=True)
            answers.append(AGGREGATES[measure.kind](dialect, _term_of(dialect, measure, rows.columns, names)))
    group = _column(dialect, rows.group_by, rows.columns) if rows.group_by else ""
    selected = ", ".join(f"{answer} AS a{number}" for number, answer in enumerate(answers))
    text = _join_parts(
        f"SELECT {f'{group} AS g, COUNT(*) OVER () AS groups_, COUNT(*) AS size_, ' if group else ''}{selected}",
        f"FROM {rows.table.text} AS scanned",
        *joins,
        f"WHERE {rows.where}" if rows.where else "",
        f"GROUP BY {group}" if group else "",
    )
    return Statement(_largest_groups(text, rows) if group else text, parameters)


def separately_counted(dialect: SqlDialect, bound: BoundMeasures, rows: RowSelection) -> set[Measure]:
    """The counts of keys that are queries of their own. One aggregate stays: without it the query has a row for each row."""
    keys = [measure for measure in bound if measure.kind == "distinct"]
    if not dialect.counts_keys_separately or rows.group_by:
        return set()
    return set(keys if len(keys) < len(bound) else keys[1:])


def _separate_count(dialect: SqlDialect, measure: Measure, rows: RowSelection) -> str:
    key = ", ".join(_column(dialect, name, rows.columns) for name in measure.columns)
    where = f"WHERE {rows.where}" if rows.where else ""
    return f"(SELECT COUNT(*) FROM (SELECT DISTINCT {key} FROM {rows.table.text} AS scanned {where}) AS keys)"  # noqa: S608


def _largest_groups(text: str, rows: RowSelection) -> str:
    """The largest groups; which of equal ones does not depend on the engine."""
    order = "ORDER BY size_ DESC, CASE WHEN g IS NULL THEN 0 ELSE 1 END, g " if rows.largest_first else ""
    return f"SELECT * FROM ({text}) AS grouped {order}LIMIT {rows.max_groups:d}"  # noqa: S608  # our own text


def _join_parts(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _bound_values(dialect: SqlDialect, measure: Measure, values: Sequence[Scalar]) -> list[Scalar]:
    return [write_pattern(str(values[0]), dialect.flavour)] if measure.kind == "mismatched" else list(values)


def _term_of(dialect: SqlDialect, measure: Measure, columns: ColumnTypes, names: Sequence[str]) -> _Term:
    return _Term(
        [_column(dialect, name, columns) for name in measure.columns],
        [dialect.parameter(name) for name in names],
        columns[measure.columns[0]] if measure.columns else ColumnType.OTHER,
    )


def _column(dialect: SqlDialect, name: str, columns: ColumnTypes) -> str:
    return dialect.column(f"scanned.{dialect.quote(name)}", columns[name])


def _lookup_join(dialect: SqlDialect, measure: Measure, number: int, columns: ColumnTypes, other: RowSelection) -> str:
    """At most one row of the other table for each row, so that the other measures of the scan stay right."""
    keys = [dialect.column(dialect.quote(name), other.columns[name]) for name in measure.other_columns]
    named = ", ".join(f"{key} AS k{position}" for position, key in enumerate(keys))
    on = " AND ".join(
        f"{_column(dialect, name, columns)} = looked{number}.k{position}"
        for position, name in enumerate(measure.columns)
    )
    return f"LEFT JOIN (SELECT DISTINCT {named} FROM {other.table.text} AS other) AS looked{number} ON {on}"  # noqa: S608  # quoted names only


def _count_unmatched(dialect: SqlDialect, measure: Measure, number: int, columns: ColumnTypes) -> str:
    given = " AND ".join(f"{_column(dialect, name, columns)} IS NOT NULL" for name in measure.columns)
    return _count_where(f"{given} AND looked{number}.k0 IS NULL")


def frequency_query(dialect: SqlDialect, measure: Measure, rows: RowSelection) -> Statement:
    """Rows of (group, bin, how many rows it has); one bin more than there may be, so that too many show."""
    (name,) = measure.columns
    kind = rows.columns[name]
    column, group = _column(dialect, name, rows.columns), "NULL"
    if rows.group_by:
        group = _column(dialect, rows.group_by, rows.columns)
    bin_ = dialect.bin_function(column) if dialect.bin_function and kind.is_number else column
    read = f"SELECT {group} AS g, {bin_} AS x FROM {rows.table.text} AS scanned {f'WHERE {rows.where}' if rows.where else ''}"  # noqa: S608
    binned = _binned(dialect, read) if kind.is_number and not dialect.bin_function else read
    limit = rows.max_groups if rows.group_by else MAX_BINS + 1
    text = f"SELECT g, x, COUNT(*) FROM ({binned}) AS binned GROUP BY g, x LIMIT {limit:d}"  # noqa: S608
    return Statement(text, {**rows.table.parameters, **rows.parameters})


def _binned(dialect: SqlDialect, read: str) -> str:
    """`numeric_bins.bin_of` in SQL: the logarithm is a first guess at the power of two, which comparisons then mend."""
    two = f"CAST(2 AS {dialect.double_type})"
    least, most = f"POWER({two}, {MIN_EXPONENT:d})", f"POWER({two}, {MAX_EXPONENT:d})"
    number = f"CAST(x AS {dialect.double_type})"
    sized = f"SELECT g, {number} AS x, ABS({number}) AS a FROM ({read}) AS rows_read"  # noqa: S608
    # What is outside the bounds is guessed as 1, for which there is a logarithm, and not used.
    within = f"a >= {least} AND a < {most} AND NOT {dialect.is_nan('x')}"
    guess = f"FLOOR(LN(CASE WHEN {within} THEN a ELSE 1 END) / LN({two}))"
    guessed = f"SELECT g, x, a, {guess} AS p FROM ({sized}) AS sized"  # noqa: S608
    step = f"CASE WHEN a >= POWER({two}, p + 1) THEN 1 WHEN a < POWER({two}, p) THEN -1 ELSE 0 END"
    mended = f"SELECT g, x, a, p + CASE WHEN {within} THEN {step} ELSE 0 END AS e FROM ({guessed}) AS guessed"  # noqa: S608
    part = f"FLOOR((a / POWER({two}, e) - 1) * {BINS_PER_POWER:d})"
    size = (
        f"CASE WHEN a >= {most} THEN {LAST_BIN:d} ELSE (e - ({MIN_EXPONENT:d})) * {BINS_PER_POWER:d} + {part} + 1 END"
    )
    bin_of_number = f"CASE WHEN a < {least} THEN 0 WHEN x < 0 THEN -({size}) ELSE {size} END"
    bin_ = f"CASE WHEN x IS NULL THEN NULL WHEN {dialect.is_nan('x')} THEN {NAN_BIN:d} ELSE {bin_of_number} END"
    return f"SELECT g, {bin_} AS x FROM ({mended}) AS mended"  # noqa: S608
