"""Measures as one SELECT, for engines that read SQL text. Identifiers are quoted; values are never in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.measures import Measure
from quality.domain.expression.nodes import Name
from quality.domain.expression.values import Failed, error


@dataclass(frozen=True)
class Dialect:
    """How an engine writes a name, a key of several columns, and a text."""

    quote: Callable[[str], str]
    key: Callable[[Sequence[str]], str]
    text: str


AGGREGATES: dict[str, Callable[[Dialect, Sequence[str]], str]] = {
    "rows": lambda dialect, columns: "COUNT(*)",
    "distinct": lambda dialect, columns: f"COUNT(DISTINCT {dialect.key(columns)})",
    "nulls": lambda dialect, columns: f"COUNT(*) - COUNT({columns[0]})",
    "filled": lambda dialect, columns: f"COUNT({columns[0]})",
    "sum": lambda dialect, columns: f"SUM({columns[0]})",
    "minimum": lambda dialect, columns: f"MIN({columns[0]})",
    "maximum": lambda dialect, columns: f"MAX({columns[0]})",
}
"""One line a measure. `unmatched` needs a join and is built below."""


def select(
    dialect: Dialect,
    measures: Sequence[Measure],
    *,
    source: str,
    tables: Mapping[Name, str],
    where: str = "",
    group: str = "",
) -> str:
    """One row of answers in the order of `measures`; with `group`, a row for each of its values, which comes first."""
    joins, answers = [], []
    for number, measure in enumerate(measures):
        if measure.kind == "unmatched":
            assert measure.other is not None
            joins.append(_join(dialect, measure, number, tables[measure.other]))
            answers.append(_missed(dialect, measure, number))
        else:
            answers.append(AGGREGATES[measure.kind](dialect, [_column(dialect, name) for name in measure.columns]))
    grouped = f"CAST({_column(dialect, group)} AS {dialect.text})" if group else ""
    return " ".join(
        part
        for part in (
            "SELECT",
            ", ".join([*([grouped] if group else []), *answers]),
            f"FROM {source} AS scanned",
            *joins,
            f"WHERE {where}" if where else "",
            f"GROUP BY {grouped}" if group else "",
        )
        if part
    )


def _column(dialect: Dialect, name: str) -> str:
    return f"scanned.{dialect.quote(name)}"


def _join(dialect: Dialect, measure: Measure, number: int, table: str) -> str:
    """At most one row of the other table for each row, so that the other measures of the scan stay right."""
    keys = [dialect.quote(name) for name in measure.other_columns]
    named = ", ".join(f"{key} AS k{position}" for position, key in enumerate(keys))
    on = " AND ".join(
        f"{_column(dialect, name)} = looked{number}.k{position}" for position, name in enumerate(measure.columns)
    )
    return f"LEFT JOIN (SELECT DISTINCT {named} FROM {table}) AS looked{number} ON {on}"  # noqa: S608  # quoted names only


def _missed(dialect: Dialect, measure: Measure, number: int) -> str:
    given = " AND ".join(f"{_column(dialect, name)} IS NOT NULL" for name in measure.columns)
    return f"COUNT(CASE WHEN {given} AND looked{number}.k0 IS NULL THEN 1 END)"


def cannot_look_up(measure: Measure, known: Sequence[str]) -> Failed | None:
    """Why the table with the columns `known` cannot be looked into by this measure."""
    return next(iter(unknown_columns([Measure("lookup", measure.other_columns)], known).values()), None)


def unknown_columns(measures: Iterable[Measure], known: Sequence[str]) -> dict[Measure, Failed]:
    """The measures that name a column which the table lacks, each with the error."""
    return {
        measure: error(f"There is no column `{column}`.{did_you_mean(column, known)}")
        for measure in measures
        for column in measure.columns
        if column not in known
    }
