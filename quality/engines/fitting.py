"""Whether a measure fits the columns it is about, and its values as those columns' own kind; before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TypeAlias

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.measures import Measure, Scalar
from quality.domain.expression.values import Failed, error
from quality.engines.kinds import Kind
from quality.engines.patterns import RE2, Flavour, NotPortable, written

Columns: TypeAlias = Mapping[str, Kind]
"""The columns of a table by name."""
_Check: TypeAlias = Callable[[Measure, Kind], tuple[Scalar, ...]]


class _Misfit(ValueError):
    pass


def fitted(measure: Measure, columns: Columns, flavour: Flavour = RE2) -> tuple[Scalar, ...] | Failed:
    """The values to bind, or why the measure cannot be answered by a table with these columns."""
    unknown = next((one for one in measure.columns if one not in columns), None)
    if unknown is not None:
        return error(f"There is no column `{unknown}`.{did_you_mean(unknown, columns)}")
    check = _CHECKS.get(measure.kind)
    try:
        values = check(measure, columns[measure.columns[0]]) if check else measure.values
        if measure.kind == "mismatched":
            written(str(values[0]), flavour)
        return values
    except (_Misfit, NotPortable) as misfit:
        return error(str(misfit))


def cannot_look_up(measure: Measure, columns: Columns) -> Failed | None:
    """Why the table with these columns cannot be looked into by this measure."""
    found = fitted(Measure("lookup", measure.other_columns), columns)
    return found if isinstance(found, Failed) else None


def _numbers_only(measure: Measure, kind: Kind) -> tuple[Scalar, ...]:
    """Spark adds up whatever it can cast and SQLite adds up texts as zeros; here all engines add up numbers only."""
    if not kind.is_number:
        raise _Misfit(f"`{measure.columns[0]}` is a {kind}, not a number")
    return measure.values


def _of_that_kind(measure: Measure, kind: Kind) -> tuple[Scalar, ...]:
    return tuple(_as(value, kind, measure.columns[0]) for value in measure.values)


def _pattern(measure: Measure, kind: Kind) -> tuple[Scalar, ...]:
    if kind is not Kind.TEXT:
        raise _Misfit(
            f"`{measure.columns[0]}` is a {kind}, and a pattern is for texts; bound numbers with outside(...)"
        )
    return measure.values


_CHECKS: dict[str, _Check] = {
    "sum": _numbers_only,
    "outside": _of_that_kind,
    "unexpected": _of_that_kind,
    "mismatched": _pattern,
}


def _as(value: Scalar, kind: Kind, column: str) -> Scalar:
    """Compared as what it is: a number with numbers, a text with texts, a day or a time from its text."""
    try:
        if kind.is_number and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return _number(value, kind)
        if kind in _FROM_TEXT and isinstance(value, str):
            return _FROM_TEXT[kind](value)
    except (KeyError, ValueError):
        pass
    written_as = {Kind.TEXT: "'AA'", Kind.DATE: "'2026-11-16'", Kind.BOOLEAN: "'true'"}
    shown = f"'{value}'" if isinstance(value, str) else value
    if kind.is_number or kind in _FROM_TEXT:
        hint = "without quotes, such as 12.5" if kind.is_number else f"such as {written_as.get(kind, _A_TIME)}"
        raise _Misfit(f"`{column}` is a {kind} and is not compared with {shown}; write a {kind}, {hint}")
    raise _Misfit(f"`{column}` is of a type that is not compared with values")


_A_TIME = "'2026-11-16 09:00'"


def _number(value: float | Decimal, kind: Kind) -> int | float | Decimal:
    if kind is Kind.FLOAT:
        return float(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return int(exact) if kind is Kind.INTEGER and exact == exact.to_integral_value() else exact


def _instant(text: str) -> datetime:
    """A time without a zone is UTC."""
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


_FROM_TEXT: dict[Kind, Callable[[str], Scalar]] = {
    Kind.TEXT: str,
    Kind.BOOLEAN: lambda text: {"true": True, "false": False}[text.lower()],
    Kind.DATE: date.fromisoformat,
    Kind.INSTANT: _instant,
    Kind.LOCAL: lambda text: _instant(text).replace(tzinfo=None),
}


def answer_kind(measure: Measure, columns: Columns) -> Kind:
    """What a measure answers: a value of its column, or a count."""
    return columns[measure.columns[0]] if measure.kind in ("sum", "minimum", "maximum") else Kind.INTEGER


def group_kind(name: str, columns: Columns) -> Kind | Failed:
    """The kind of the column that rows are grouped by."""
    found = fitted(Measure("group", (name,)), columns)
    return found if isinstance(found, Failed) else columns[name]


def fits(
    measures: Sequence[Measure], columns: Columns, flavour: Flavour
) -> tuple[dict[Measure, tuple[Scalar, ...]], dict[Measure, Failed]]:
    """The measures that fit with what they bind, and those that do not with the reason."""
    found = {one: fitted(one, columns, flavour) for one in measures}
    good = {one: values for one, values in found.items() if not isinstance(values, Failed)}
    return good, {one: why for one, why in found.items() if isinstance(why, Failed)}
