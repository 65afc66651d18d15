"""Whether a measure fits the columns it is about, and its values as those columns' own kind; before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeAlias

from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.measures import LATEST, Measure, Scalar
from quality.domain.language.values import Failed, error
from quality.engines.scans.column_types import ColumnType
from quality.engines.sql.portable_patterns import RE2, NotPortable, RegexFlavour, write_pattern

ColumnTypes: TypeAlias = Mapping[str, ColumnType]
"""The columns of a table by name."""
_Check: TypeAlias = Callable[[Measure, ColumnType], tuple[Scalar, ...]]


class _Misfit(ValueError):
    pass


def check_measure(measure: Measure, columns: ColumnTypes, flavour: RegexFlavour = RE2) -> tuple[Scalar, ...] | Failed:
    """The values to bind, or why the measure cannot be answered by a table with these columns."""
    unknown = next((column for column in measure.columns if column not in columns), None)
    if unknown is not None:
        return error(f"There is no column `{unknown}`.{did_you_mean(unknown, columns)}")
    nested = next((column for column in measure.columns if columns[column] is ColumnType.NESTED), None)
    if nested is not None and measure.kind not in _OF_ANY_VALUE:
        return error(
            f"`{nested}` is a {ColumnType.NESTED}, of which only nulls are counted: name a column with plain values"
        )
    check = _CHECKS.get(measure.kind)
    try:
        values = check(measure, columns[measure.columns[0]]) if check else measure.values
        if measure.kind == "mismatched":
            write_pattern(str(values[0]), flavour)
        return values
    except (_Misfit, NotPortable) as misfit:
        return error(str(misfit))


def lookup_failure(measure: Measure, columns: ColumnTypes) -> Failed | None:
    """Why the table with these columns cannot be looked into by this measure."""
    values_or_failure = check_measure(Measure("lookup", measure.other_columns), columns)
    return values_or_failure if isinstance(values_or_failure, Failed) else None


def _numbers_only(measure: Measure, kind: ColumnType) -> tuple[Scalar, ...]:
    """Spark adds up whatever it can cast and SQLite adds up texts as zeros; here all engines add up numbers only."""
    if not kind.is_number:
        raise _Misfit(f"`{measure.columns[0]}` is a {kind}, not a number")
    return measure.values


def _as_column_type(measure: Measure, kind: ColumnType) -> tuple[Scalar, ...]:
    return tuple(_convert(value, kind, measure.columns[0]) for value in measure.values)


def _pattern(measure: Measure, kind: ColumnType) -> tuple[Scalar, ...]:
    if kind is not ColumnType.TEXT:
        raise _Misfit(
            f"`{measure.columns[0]}` is a {kind}, and a pattern is for texts; bound numbers with outside(...)"
        )
    return measure.values


def _as_bound(measure: Measure, kind: ColumnType) -> tuple[Scalar, ...]:
    """The bound as a value of a column of times. Of days all that begin before it, of texts what is written before it.

    It comes twice: on the clocks of the partitions, which cut the days, and on those of the times without a zone.
    """
    bound, event_bound = measure.values
    if kind not in _BOUND_WRITERS:
        raise _Misfit(f"`{measure.columns[0]}` is a {kind}, not a time")
    assert isinstance(bound, datetime)
    assert isinstance(event_bound, datetime)
    return (_BOUND_WRITERS[kind](bound if kind is ColumnType.DATE else event_bound),)


def _wall_bound(bound: datetime) -> datetime:
    """What the clock shows at the bound. Within the time that it shows twice all of that may be before it."""
    shown = bound.replace(tzinfo=None, fold=0)
    first, second = bound.replace(fold=0).utcoffset(), bound.replace(fold=1).utcoffset()
    return shown + (first - second) if bound.fold and first and second else shown


def _text_bound(bound: datetime) -> str:
    """Texts may say a zone or none, which is not known before they are read: the later of both bounds. What the front of the
    data is cannot be later than now, whatever is found."""
    latest = max(_wall_bound(bound), bound.astimezone(UTC).replace(tzinfo=None))
    return latest.isoformat(sep=" ").removesuffix(" 00:00:00")


_BOUND_WRITERS: dict[ColumnType, Callable[[datetime], Scalar]] = {
    ColumnType.INSTANT: lambda bound: bound,
    ColumnType.LOCAL: _wall_bound,
    ColumnType.DATE: lambda bound: bound.date() if bound.time() == time() else bound.date() + timedelta(days=1),
    ColumnType.TEXT: _text_bound,
}


_OF_ANY_VALUE = frozenset({"rows", "nulls"})
"""Spark compares no maps, and the other engines compare them and structures each in an order of its own."""
_CHECKS: dict[str, _Check] = {
    "sum": _numbers_only,
    LATEST: _as_bound,
    "outside": _as_column_type,
    "unexpected": _as_column_type,
    "mismatched": _pattern,
}


def _convert(value: Scalar, kind: ColumnType, column: str) -> Scalar:
    """Compared as what it is: a number with numbers, a text with texts, a day or a time from its text."""
    try:
        if kind.is_number and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return _number(value, kind)
        if kind in _TEXT_PARSERS and isinstance(value, str):
            return _TEXT_PARSERS[kind](value)
    except (KeyError, ValueError):
        pass
    written_as = {ColumnType.TEXT: "'AA'", ColumnType.DATE: "'2026-11-16'", ColumnType.BOOLEAN: "'true'"}
    shown = f"'{value}'" if isinstance(value, str) else value
    if kind.is_number or kind in _TEXT_PARSERS:
        hint = "without quotes, such as 12.5" if kind.is_number else f"such as {written_as.get(kind, _A_TIME)}"
        raise _Misfit(f"`{column}` is a {kind} and is not compared with {shown}; write a {kind}, {hint}")
    raise _Misfit(f"`{column}` is of a type that is not compared with values")


_A_TIME = "'2026-11-16 09:00'"


def _number(value: float | Decimal, kind: ColumnType) -> int | float | Decimal:
    if kind is ColumnType.FLOAT:
        return float(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return int(exact) if kind is ColumnType.INTEGER and exact == exact.to_integral_value() else exact


def _instant(text: str) -> datetime:
    """A time without a zone is UTC."""
    instant = datetime.fromisoformat(text)
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)


_TEXT_PARSERS: dict[ColumnType, Callable[[str], Scalar]] = {
    ColumnType.TEXT: str,
    ColumnType.BOOLEAN: lambda text: {"true": True, "false": False}[text.lower()],
    ColumnType.DATE: date.fromisoformat,
    ColumnType.INSTANT: _instant,
    ColumnType.LOCAL: lambda text: _instant(text).replace(tzinfo=None),
}


_ANSWERED_BY_VALUE = ("sum", "minimum", "maximum", LATEST)


def answer_type(measure: Measure, columns: ColumnTypes) -> ColumnType:
    """What a measure answers: a value of its column, or a count."""
    return columns[measure.columns[0]] if measure.kind in _ANSWERED_BY_VALUE else ColumnType.INTEGER


def group_column_type(name: str, columns: ColumnTypes) -> ColumnType | Failed:
    """The kind of the column that rows are grouped by."""
    values_or_failure = check_measure(Measure("group", (name,)), columns)
    return values_or_failure if isinstance(values_or_failure, Failed) else columns[name]


def check_measures(
    measures: Sequence[Measure], columns: ColumnTypes, flavour: RegexFlavour
) -> tuple[dict[Measure, tuple[Scalar, ...]], dict[Measure, Failed]]:
    """The measures that fit with what they bind, and those that do not with the reason."""
    values_or_failures = {measure: check_measure(measure, columns, flavour) for measure in measures}
    good = {measure: values for measure, values in values_or_failures.items() if not isinstance(values, Failed)}
    return good, {measure: why for measure, why in values_or_failures.items() if isinstance(why, Failed)}
