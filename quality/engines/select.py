"""Measures as one SELECT, for engines that read SQL text. Identifiers are quoted; values are never in the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from quality.domain.expression.measures import Measure, Scalar
from quality.domain.expression.nodes import Name
from quality.engines.bins import LARGEST, LAST, MOST, NAN, PARTS, SMALLEST
from quality.engines.fitting import Columns
from quality.engines.kinds import Kind
from quality.engines.patterns import Flavour, written

Bound: TypeAlias = Mapping[Measure, tuple[Scalar, ...]]
"""The measures of a query with the values that each binds."""


@dataclass(frozen=True)
class Dialect:
    """How an engine writes a name, a parameter, a key of several columns, and whether a text matches; `column` is what
    makes equal what the other engines hold for equal, such as a text without the rules of a language."""

    quote: Callable[[str], str]
    parameter: Callable[[str], str]
    key: Callable[[Sequence[str]], str]
    matches: Callable[[str, str], str]
    flavour: Flavour
    double: str = "DOUBLE"
    column: Callable[[str, Kind], str] = lambda column, kind: column
    total: Callable[[str, Kind], str] = lambda column, kind: f"SUM({column})"
    extreme: Callable[[str, Kind], str] = lambda column, kind: column
    is_nan: Callable[[str], str] = "isnan({})".format
    bins: Callable[[str], str] | None = None
    """A function of the engine's own for the bin of a number."""
    counts_keys_apart: bool = False
    """Several keys that are counted beside other measures are counted in queries within the query."""


@dataclass(frozen=True)
class Table:
    """What follows FROM, with its parameters."""

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """Which rows of a table: those that `where` lets through, grouped by `group`; of the groups `most`, `ranked` by size."""

    table: Table
    columns: Columns
    where: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    group: str = ""
    most: int = 0
    ranked: bool = False


@dataclass(frozen=True)
class Statement:
    text: str
    parameters: dict[str, object]


@dataclass(frozen=True)
class _Term:
    """A measure in SQL: its columns, the placeholders of its values, the kind of its first column."""

    columns: Sequence[str]
    values: Sequence[str]
    kind: Kind


def _how_many(condition: str) -> str:
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _distinct(dialect: Dialect, term: _Term) -> str:
    """A null is a value too; for one column the engine's own count is much the fastest."""
    if len(term.columns) > 1:
        return f"COUNT(DISTINCT {dialect.key(term.columns)})"
    (column,) = term.columns
    return f"COUNT(DISTINCT {column}) + COALESCE(MAX(CASE WHEN {column} IS NULL THEN 1 ELSE 0 END), 0)"


AGGREGATES: dict[str, Callable[[Dialect, _Term], str]] = {
    "rows": lambda dialect, term: "COUNT(*)",
    "distinct": _distinct,
    "nulls": lambda dialect, term: f"COUNT(*) - COUNT({term.columns[0]})",
    "filled": lambda dialect, term: f"COUNT({term.columns[0]})",
    "sum": lambda dialect, term: dialect.total(term.columns[0], term.kind),
    "minimum": lambda dialect, term: f"MIN({dialect.extreme(term.columns[0], term.kind)})",
    "maximum": lambda dialect, term: f"MAX({dialect.extreme(term.columns[0], term.kind)})",
    "outside": lambda dialect, term: _how_many(
        f"{term.columns[0]} < {term.values[0]} OR {term.columns[0]} > {term.values[1]}"
    ),
    "mismatched": lambda dialect, term: _how_many(f"NOT {dialect.matches(term.columns[0], term.values[0])}"),
    "unexpected": lambda dialect, term: _how_many(f"{term.columns[0]} NOT IN ({', '.join(term.values)})"),
}
"""One line a measure. `unmatched` needs a join and `frequencies` rows of their own: they are built below."""


def select(dialect: Dialect, bound: Bound, rows: Rows, looked_into: Mapping[Name, Rows]) -> Statement:
    """One row of answers in the order of the measures. With a group, a row for each of its values: the value, how many
    groups there are in all, how many rows this one has, and the answers."""
    joins, answers = [], []
    parameters: dict[str, object] = {**rows.table.parameters, **rows.parameters}
    apart = counted_apart(dialect, bound, rows)
    for number, (measure, values) in enumerate(bound.items()):
        if measure.kind == "unmatched":
            assert measure.other is not None
            other = looked_into[measure.other]
            joins.append(_join(dialect, measure, number, rows.columns, other))
            answers.append(_missed(dialect, measure, number, rows.columns))
            parameters |= other.table.parameters
        elif measure in apart:
            answers.append(_counted_apart(dialect, measure, rows))
        else:
            names = [f"v{number}_{position}" for position in range(len(values))]
            parameters |= zip(names, _written(dialect, measure, values), strict=True)
            answers.append(AGGREGATES[measure.kind](dialect, _term(dialect, measure, rows.columns, names)))
    group = _column(dialect, rows.group, rows.columns) if rows.group else ""
    selected = ", ".join(f"{answer} AS a{number}" for number, answer in enumerate(answers))
    text = _joined(
        f"SELECT {f'{group} AS g, COUNT(*) OVER () AS groups_, COUNT(*) AS size_, ' if group else ''}{selected}",
        f"FROM {rows.table.text} AS scanned",
        *joins,
        f"WHERE {rows.where}" if rows.where else "",
        f"GROUP BY {group}" if group else "",
    )
    return Statement(_largest(text, rows) if group else text, parameters)


def counted_apart(dialect: Dialect, bound: Bound, rows: Rows) -> set[Measure]:
    """The counts of keys that are queries of their own. One aggregate stays: without it the query has a row for each row."""
    keys = [measure for measure in bound if measure.kind == "distinct"]
    if not dialect.counts_keys_apart or rows.group:
        return set()
    return set(keys if len(keys) < len(bound) else keys[1:])


def _counted_apart(dialect: Dialect, measure: Measure, rows: Rows) -> str:
    key = ", ".join(_column(dialect, name, rows.columns) for name in measure.columns)
    where = f"WHERE {rows.where}" if rows.where else ""
    return f"(SELECT COUNT(*) FROM (SELECT DISTINCT {key} FROM {rows.table.text} AS scanned {where}) AS keys)"  # noqa: S608


def _largest(text: str, rows: Rows) -> str:
    """The largest groups; which of equal ones does not depend on the engine."""
    order = "ORDER BY size_ DESC, CASE WHEN g IS NULL THEN 0 ELSE 1 END, g " if rows.ranked else ""
    return f"SELECT * FROM ({text}) AS grouped {order}LIMIT {rows.most:d}"  # noqa: S608  # our own text


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _written(dialect: Dialect, measure: Measure, values: Sequence[Scalar]) -> list[Scalar]:
    return [written(str(values[0]), dialect.flavour)] if measure.kind == "mismatched" else list(values)


def _term(dialect: Dialect, measure: Measure, columns: Columns, names: Sequence[str]) -> _Term:
    return _Term(
        [_column(dialect, name, columns) for name in measure.columns],
        [dialect.parameter(name) for name in names],
        columns[measure.columns[0]] if measure.columns else Kind.OTHER,
    )


def _column(dialect: Dialect, name: str, columns: Columns) -> str:
    return dialect.column(f"scanned.{dialect.quote(name)}", columns[name])


def _join(dialect: Dialect, measure: Measure, number: int, columns: Columns, other: Rows) -> str:
    """At most one row of the other table for each row, so that the other measures of the scan stay right."""
    keys = [dialect.column(dialect.quote(name), other.columns[name]) for name in measure.other_columns]
    named = ", ".join(f"{key} AS k{position}" for position, key in enumerate(keys))
    on = " AND ".join(
        f"{_column(dialect, name, columns)} = looked{number}.k{position}"
        for position, name in enumerate(measure.columns)
    )
    return f"LEFT JOIN (SELECT DISTINCT {named} FROM {other.table.text} AS other) AS looked{number} ON {on}"  # noqa: S608  # quoted names only


def _missed(dialect: Dialect, measure: Measure, number: int, columns: Columns) -> str:
    given = " AND ".join(f"{_column(dialect, name, columns)} IS NOT NULL" for name in measure.columns)
    return _how_many(f"{given} AND looked{number}.k0 IS NULL")


def frequencies(dialect: Dialect, measure: Measure, rows: Rows) -> Statement:
    """Rows of (group, bin, how many rows it has); one bin more than there may be, so that too many show."""
    (name,) = measure.columns
    kind = rows.columns[name]
    column, group = _column(dialect, name, rows.columns), "NULL"
    if rows.group:
        group = _column(dialect, rows.group, rows.columns)
    bin_ = dialect.bins(column) if dialect.bins and kind.is_number else column
    read = f"SELECT {group} AS g, {bin_} AS x FROM {rows.table.text} AS scanned {f'WHERE {rows.where}' if rows.where else ''}"  # noqa: S608
    binned = _binned(dialect, read) if kind.is_number and not dialect.bins else read
    limit = rows.most if rows.group else MOST + 1
    text = f"SELECT g, x, COUNT(*) FROM ({binned}) AS binned GROUP BY g, x LIMIT {limit:d}"  # noqa: S608
    return Statement(text, {**rows.table.parameters, **rows.parameters})


def _binned(dialect: Dialect, read: str) -> str:
    """`bins.bin_of` in SQL: the logarithm is a first guess at the power of two, which comparisons then mend."""
    two = f"CAST(2 AS {dialect.double})"
    least, most = f"POWER({two}, {SMALLEST:d})", f"POWER({two}, {LARGEST:d})"
    number = f"CAST(x AS {dialect.double})"
    sized = f"SELECT g, {number} AS x, ABS({number}) AS a FROM ({read}) AS rows_read"  # noqa: S608
    # What is outside the bounds is guessed as 1, for which there is a logarithm, and not used.
    within = f"a >= {least} AND a < {most} AND NOT {dialect.is_nan('x')}"
    guess = f"FLOOR(LN(CASE WHEN {within} THEN a ELSE 1 END) / LN({two}))"
    guessed = f"SELECT g, x, a, {guess} AS p FROM ({sized}) AS sized"  # noqa: S608
    step = f"CASE WHEN a >= POWER({two}, p + 1) THEN 1 WHEN a < POWER({two}, p) THEN -1 ELSE 0 END"
    mended = f"SELECT g, x, a, p + CASE WHEN {within} THEN {step} ELSE 0 END AS e FROM ({guessed}) AS guessed"  # noqa: S608
    part = f"FLOOR((a / POWER({two}, e) - 1) * {PARTS:d})"
    size = f"CASE WHEN a >= {most} THEN {LAST:d} ELSE (e - ({SMALLEST:d})) * {PARTS:d} + {part} + 1 END"
    known = f"CASE WHEN a < {least} THEN 0 WHEN x < 0 THEN -({size}) ELSE {size} END"
    bin_ = f"CASE WHEN x IS NULL THEN NULL WHEN {dialect.is_nan('x')} THEN {NAN:d} ELSE {known} END"
    return f"SELECT g, {bin_} AS x FROM ({mended}) AS mended"  # noqa: S608
