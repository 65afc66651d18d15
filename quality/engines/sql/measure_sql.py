"""Measures as one SELECT, for engines that read SQL text. Identifiers are quoted; values are never in the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from lakehub.kernel.partitions.form import PartitionForm
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
    cut_time: Callable[[str, ColumnType, PartitionForm], str] = lambda column, kind, form: ""
    """A time cut to the grain of a form, as PartitionForm.parse reads it. Empty: the engine cannot do it."""
    joined: Callable[[Sequence[str]], str] = lambda columns: " || '/' || ".join(
        f"CAST({column} AS VARCHAR)" for column in columns
    )
    """Several columns as one text with a slash between; null where one is."""
    bound: Callable[[datetime], str | datetime] = lambda time: time
    """A bound of a range of times, as the engine compares it."""
    whole_keys: Callable[[Sequence[str], str], str] | None = None
    """How many different keys of several columns have no null, with the condition that says so. None: by CASE and `key`."""
    counts_keys_separately: bool = False
    """Several keys that are counted beside other measures are counted in queries within the query."""


@dataclass(frozen=True)
class TableExpression:
    """What follows FROM, with its parameters."""

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RowSelection:
    """Which rows of a table: those that `where` lets through, grouped by the expression `group_by`; of the groups `max_groups`, by
    size with `largest_first`."""

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


CONDITIONS: dict[str, Callable[[SqlDialect, _Term], str]] = {
    "nulls": lambda dialect, term: f"{term.columns[0]} IS NULL",
    "outside": lambda dialect, term: f"{term.columns[0]} < {term.values[0]} OR {term.columns[0]} > {term.values[1]}",
    "mismatched": lambda dialect, term: f"NOT {dialect.matches(term.columns[0], term.values[0])}",
    "unexpected": lambda dialect, term: f"{term.columns[0]} NOT IN ({', '.join(term.values)})",
}
"""Which rows a measure counts. Those of `unmatched` come from a join, and of `distinct` the repeated ones are meant."""


def _count_where(condition: str) -> str:
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _distinct(dialect: SqlDialect, term: _Term) -> str:
    """A null is a value too; for one column the engine's own count is much the fastest."""
    if len(term.columns) > 1:
        return f"COUNT(DISTINCT {dialect.key(term.columns)})"
    (column,) = term.columns
    return f"COUNT(DISTINCT {column}) + COALESCE(MAX(CASE WHEN {column} IS NULL THEN 1 ELSE 0 END), 0)"


def whole_key(columns: Sequence[str]) -> str:
    """The condition on the rows that have a key."""
    return " AND ".join(f"{column} IS NOT NULL" for column in columns)


def _repeated(dialect: SqlDialect, term: _Term) -> str:
    """The rows that have a key, without the different keys: a null names nothing, so that no two are alike."""
    if len(term.columns) == 1:
        return f"COUNT({term.columns[0]}) - COUNT(DISTINCT {term.columns[0]})"
    whole = whole_key(term.columns)
    if dialect.whole_keys is not None:
        keys = dialect.whole_keys(term.columns, whole)
    else:
        keys = f"COUNT(DISTINCT CASE WHEN {whole} THEN {dialect.key(term.columns)} END)"
    return f"{_count_where(whole)} - {keys}"


def _latest(dialect: SqlDialect, term: _Term) -> str:
    """The greatest value before the bound."""
    earlier = f"CASE WHEN {term.columns[0]} < {term.values[0]} THEN {term.columns[0]} END"
    return f"MAX({dialect.extreme(earlier, term.kind)})"


AGGREGATES: dict[str, Callable[[SqlDialect, _Term], str]] = {
    "rows": lambda dialect, term: "COUNT(*)",
    "distinct": _distinct,
    "repeated": _repeated,
    "nulls": lambda dialect, term: f"COUNT(*) - COUNT({term.columns[0]})",
    "filled": lambda dialect, term: f"COUNT({term.columns[0]})",
    "sum": lambda dialect, term: dialect.sum_of(term.columns[0], term.kind),
    "minimum": lambda dialect, term: f"MIN({dialect.extreme(term.columns[0], term.kind)})",
    "maximum": lambda dialect, term: f"MAX({dialect.extreme(term.columns[0], term.kind)})",
    "latest": _latest,
    "outside": lambda dialect, term: _count_where(CONDITIONS["outside"](dialect, term)),
    "mismatched": lambda dialect, term: _count_where(CONDITIONS["mismatched"](dialect, term)),
    "unexpected": lambda dialect, term: _count_where(CONDITIONS["unexpected"](dialect, term)),
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
    group = rows.group_by
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
    keys = [measure for measure in bound if measure.kind in KEY_KINDS]
    if not dialect.counts_keys_separately or rows.group_by:
        return set()
    return set(keys if len(keys) < len(bound) else keys[1:])


def _separate_count(dialect: SqlDialect, measure: Measure, rows: RowSelection) -> str:
    columns = [scanned_column(dialect, name, rows.columns) for name in measure.columns]
    key, table = ", ".join(columns), f"{rows.table.text} AS scanned"
    if measure.kind == "distinct":
        where = f"WHERE {rows.where}" if rows.where else ""
        return f"(SELECT COUNT(*) FROM (SELECT DISTINCT {key} FROM {table} {where}) AS keys)"  # noqa: S608
    grouped = f"SELECT COUNT(*) AS n FROM {table} WHERE {_all_of(rows.where, whole_key(columns))} GROUP BY {key}"  # noqa: S608
    return f"(SELECT COALESCE(SUM(n - 1), 0) FROM ({grouped}) AS keys)"  # noqa: S608


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
        [scanned_column(dialect, name, columns) for name in measure.columns],
        [dialect.parameter(name) for name in names],
        columns[measure.columns[0]] if measure.columns else ColumnType.OTHER,
    )


def scanned_column(dialect: SqlDialect, name: str, columns: ColumnTypes) -> str:
    return dialect.column(f"scanned.{dialect.quote(name)}", columns[name])


def _lookup_join(dialect: SqlDialect, measure: Measure, number: int, columns: ColumnTypes, other: RowSelection) -> str:
    """At most one row of the other table for each row, so that the other measures of the scan stay right."""
    keys = [dialect.column(dialect.quote(name), other.columns[name]) for name in measure.other_columns]
    named = ", ".join(f"{key} AS k{position}" for position, key in enumerate(keys))
    on = " AND ".join(
        f"{scanned_column(dialect, name, columns)} = looked{number}.k{position}"
        for position, name in enumerate(measure.columns)
    )
    return f"LEFT JOIN (SELECT DISTINCT {named} FROM {other.table.text} AS other) AS looked{number} ON {on}"  # noqa: S608  # quoted names only


def _count_unmatched(dialect: SqlDialect, measure: Measure, number: int, columns: ColumnTypes) -> str:
    return _count_where(_is_unmatched(dialect, measure, number, columns))


def _is_unmatched(dialect: SqlDialect, measure: Measure, number: int, columns: ColumnTypes) -> str:
    given = " AND ".join(f"{scanned_column(dialect, name, columns)} IS NOT NULL" for name in measure.columns)
    return f"{given} AND looked{number}.k0 IS NULL"


def _all_of(*conditions: str) -> str:
    return " AND ".join(f"({condition})" for condition in conditions if condition)


KEY_KINDS = frozenset({"distinct", "repeated"})
"""What counts keys: `repeated` leaves out the rows whose key has a null."""
MAX_SHOWN_ROWS = 100
MAX_SHOWN_TEXT = 200
"""Characters of a text that are read of a row that is shown; a row may have megabytes."""
REPEATS_COLUMN = "rows with this key"


def failing_rows_query(
    dialect: SqlDialect,
    measure: Measure,
    values: Sequence[Scalar],
    rows: RowSelection,
    looked_into: Mapping[Name, RowSelection],
) -> Statement:
    """Some of the rows that the measure counts, in its `shown` columns; for keys those that repeat, and how often."""
    parameters: dict[str, object] = {**rows.table.parameters, **rows.parameters}
    if measure.kind in KEY_KINDS:
        return Statement(_repeated_keys(dialect, measure, rows), parameters)
    join = ""
    if measure.kind == "unmatched":
        assert measure.other is not None
        other = looked_into[measure.other]
        join, condition = (
            _lookup_join(dialect, measure, 0, rows.columns, other),
            _is_unmatched(dialect, measure, 0, rows.columns),
        )
        parameters |= other.table.parameters
    else:
        names = [f"v0_{position}" for position in range(len(values))]
        parameters |= zip(names, _bound_values(dialect, measure, values), strict=True)
        condition = CONDITIONS[measure.kind](dialect, _term_of(dialect, measure, rows.columns, names))
    shown = ", ".join(
        f"{shown_column(f'scanned.{dialect.quote(name)}', rows.columns[name])} AS s{place}"
        for place, name in enumerate(measure.shown)
    )
    where = _all_of(rows.where, condition)
    text = _join_parts(f"SELECT {shown} FROM {rows.table.text} AS scanned", join, f"WHERE {where}")  # noqa: S608
    return Statement(f"{text} LIMIT {MAX_SHOWN_ROWS:d}", parameters)


def _repeated_keys(dialect: SqlDialect, measure: Measure, rows: RowSelection) -> str:
    keys = [scanned_column(dialect, name, rows.columns) for name in measure.columns]
    named = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
    shown = ", ".join(
        f"{shown_column(f'k{place}', rows.columns[name])} AS s{place}" for place, name in enumerate(measure.columns)
    )
    whole = whole_key(keys) if measure.kind == "repeated" else ""
    where = f"WHERE {_all_of(rows.where, whole)} " if rows.where or whole else ""
    repeated = (
        f"SELECT {named}, COUNT(*) AS repeats FROM {rows.table.text} AS scanned {where}"  # noqa: S608  # quoted names only
        f"GROUP BY {', '.join(keys)} HAVING COUNT(*) > 1 ORDER BY repeats DESC LIMIT {MAX_SHOWN_ROWS:d}"
    )
    # Apart: what is shown of a key is not what rows are grouped by, which some databases refuse in one query.
    return f"SELECT {shown}, repeats FROM ({repeated}) AS repeated ORDER BY repeats DESC"  # noqa: S608


def shown_column(column: str, kind: ColumnType) -> str:
    """The beginning of a text; of bytes, lists and structures only that there is something."""
    if kind is ColumnType.TEXT:
        return f"SUBSTRING({column}, 1, {MAX_SHOWN_TEXT + 1:d})"
    if kind in (ColumnType.BINARY, ColumnType.NESTED, ColumnType.OTHER):
        return f"CASE WHEN {column} IS NULL THEN NULL ELSE '({kind})' END"
    return column


def frequency_query(dialect: SqlDialect, measure: Measure, rows: RowSelection) -> Statement:
    """Rows of (group, bin, how many rows it has); one bin more than there may be, so that too many show."""
    (name,) = measure.columns
    kind = rows.columns[name]
    column, group = scanned_column(dialect, name, rows.columns), rows.group_by or "NULL"
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
