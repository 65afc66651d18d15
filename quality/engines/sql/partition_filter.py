"""Partitions in SQL: which rows are of one, in the terms of each column's own type, and what rows are grouped by for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from lakehub.kernel.partitions.form import Condition, Equals, Within
from lakehub.kernel.suggest import did_you_mean
from quality.engines.scans.column_types import ColumnType
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition
from quality.engines.sql.measure_checks import ColumnTypes
from quality.engines.sql.measure_sql import SqlDialect, scanned_column

PartitionValue: TypeAlias = str | int | Decimal | date | datetime


@dataclass(frozen=True)
class Comparison:
    """`operator` is `=`, `>=` or `<`; the value has the type of the column, so that indexes and statistics of files serve."""

    column: str
    operator: str
    value: PartitionValue


def partition_comparisons(part: OnePartition, columns: ColumnTypes) -> list[list[Comparison]]:
    """Of the rows of the partition all comparisons of one of these hold.

    Raises CannotRead where a column is not there, or is of another type.
    """
    return [
        [
            comparison
            for condition in conditions
            for comparison in _comparisons(condition, _column_type(condition.column, columns))
        ]
        for conditions in part.alternatives
    ]


def any_of(alternatives: Sequence[str]) -> str:
    """Halved again and again: the hours of a year in one chain are an expression too deep for databases."""
    if len(alternatives) == 1:
        return alternatives[0]
    half = (len(alternatives) + 1) // 2
    return f"({any_of(alternatives[:half])}) OR ({any_of(alternatives[half:])})"


def partition_where(
    part: OnePartition, dialect: SqlDialect, columns: ColumnTypes
) -> tuple[str, dict[str, PartitionValue]]:
    """The condition on `scanned`, with the values that it binds."""
    bound: dict[str, PartitionValue] = {}

    def parameter(comparison: Comparison) -> str:
        name, value = f"part{len(bound) or ''}", comparison.value
        bound[name] = dialect.bound(value) if isinstance(value, datetime) else value
        return dialect.parameter(name)

    def column(comparison: Comparison) -> str:
        return f"scanned.{dialect.quote(comparison.column)}"

    alternatives = partition_comparisons(part, columns)
    if len(alternatives) > 1 and _are_values_of_one_column(alternatives):
        # Databases look values of a list up; a thousand alternatives they try one by one, for each row.
        values = ", ".join(parameter(comparison) for (comparison,) in alternatives)
        return f"{column(alternatives[0][0])} IN ({values})", bound
    texts = [
        " AND ".join(f"{column(each)} {each.operator} {parameter(each)}" for each in comparisons)
        for comparisons in alternatives
    ]
    return any_of(texts), bound


def _are_values_of_one_column(alternatives: Sequence[Sequence[Comparison]]) -> bool:
    compared = {(comparison.column, comparison.operator) for comparisons in alternatives for comparison in comparisons}
    return len(compared) == 1 and all(
        len(comparisons) == 1 and comparisons[0].operator == "=" for comparisons in alternatives
    )


def partition_group(part: EachPartition, dialect: SqlDialect, columns: ColumnTypes) -> tuple[str, ColumnType]:
    """What rows are grouped by, as PartitionForm.parse reads it, and its type."""
    kinds = [_column_type(column, columns) for column in part.columns]
    expressions = [scanned_column(dialect, column, columns) for column in part.columns]
    if part.form is not None and part.form.is_time:
        return _cut_time(part, expressions[0], kinds[0], dialect), ColumnType.TEXT
    if len(expressions) == 1:
        return expressions[0], kinds[0]
    return dialect.joined(expressions), ColumnType.TEXT


def _cut_time(part: EachPartition, column: str, kind: ColumnType, dialect: SqlDialect) -> str:
    assert part.form is not None
    if kind not in _TIMES:
        raise CannotRead(_not_a_time(part.column, kind))
    expression = dialect.cut_time(column, kind, part.form)
    if not expression:
        raise CannotRead(
            f"This database cannot cut `{part.column}` to the {part.form.grain} in {part.form.zone.key}. "
            "Add a column with the partition's name as text, and onboard the dataset with that."
        )
    return expression


_TIMES = (ColumnType.DATE, ColumnType.INSTANT, ColumnType.LOCAL)


def _not_a_time(column: str, kind: ColumnType) -> str:
    return (
        f"The partition column `{column}` is a {kind} and holds no times: write how it says them, such as %Y%m%d, in "
        "place of the form `time`."
    )


def _column_type(column: str, columns: ColumnTypes) -> ColumnType:
    if column not in columns:
        raise CannotRead(f"There is no partition column `{column}`.{did_you_mean(column, columns)}")
    return columns[column]


def _comparisons(condition: Condition, kind: ColumnType) -> list[Comparison]:
    if isinstance(condition, Equals):
        return [Comparison(condition.column, "=", _typed_value(condition, kind))]
    if kind not in _TIMES:
        raise CannotRead(_not_a_time(condition.column, kind))
    start, end = _bounds(condition, kind)
    return [Comparison(condition.column, ">=", start), Comparison(condition.column, "<", end)]


def _bounds(within: Within, kind: ColumnType) -> tuple[date, date]:
    """Instants for times with a zone, local times for those without, dates for dates."""
    if kind is ColumnType.INSTANT:
        return within.start, within.end
    if kind is ColumnType.LOCAL:
        return within.local_start, within.local_end
    return within.local_start.date(), within.local_end.date()


def _typed_value(condition: Equals, kind: ColumnType) -> PartitionValue:
    try:
        if kind is ColumnType.INTEGER:
            return int(condition.value)
        if kind in (ColumnType.DECIMAL, ColumnType.FLOAT):
            return Decimal(condition.value)
        if kind in (ColumnType.LOCAL, ColumnType.INSTANT):
            return datetime.fromisoformat(condition.value)
        return date.fromisoformat(condition.value) if kind is ColumnType.DATE else condition.value
    except (ValueError, ArithmeticError):
        raise CannotRead(
            f"{condition.value!r} cannot be a value of the partition column `{condition.column}`: {kind}."
        ) from None
