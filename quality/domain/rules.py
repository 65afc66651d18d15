"""Rules of columns: each kind is one line in KINDS, with the parameters that it takes and the expression that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any
from urllib.parse import quote
from zlib import crc32

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.amounts import decimal_text, duration_text, literal_text, text_literal
from quality.domain.expression.errors import ExpressionError
from quality.domain.expression.kinds import Kind
from quality.domain.expression.nodes import Name
from quality.domain.expression.parser import parse_literal
from quality.domain.expression.printer import formula

_MOST_VALUES = 200
_LONGEST = 100


class BadRule(ValueError):
    """A rule that makes no sense: `field` is the parameter that is wrong, the message says what would do."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True)
class Rule:
    """`parameters` are as people give them: shares `1%`, durations `7d`, numbers and texts."""

    kind: str
    column: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""

    @property
    def key(self) -> str:
        """Names it among the tests of its dataset; what an address cannot hold is written with %."""
        parts = [part for part in (self.column, self.kind, f"by.{self.by}" if self.by else "") if part]
        key = f"rule:{quote('.'.join(parts), safe='')}"
        return key if len(key) <= _LONGEST else f"{key[: _LONGEST - 9]}~{crc32(key.encode()):08x}"

    @property
    def check(self) -> str:
        """The check that makes its test."""
        return "dimension" if self.by else self._known_kind().check

    @property
    def expression(self) -> str:
        """What is tested, in the readable form. Raises BadRule."""
        kind = self._known_kind()
        text = kind.expression(Name("this", column=self.column), self._read(kind))
        if not self.by:
            return text
        groups = [f"{name}={value}" for name in GROUPING if (value := self._group(name))]
        return f"{text} with {', '.join([f'by={formula(Name(self.by))}', *groups])}"

    @property
    def title(self) -> str:
        title = self._known_kind().title.format(column=self.column)
        return f"{title} by {self.by}" if self.by else title

    def _known_kind(self) -> RuleKind:
        if self.kind not in KINDS:
            raise BadRule("kind", f"There is no kind of rule `{self.kind}`.{did_you_mean(self.kind, KINDS)}")
        kind = KINDS[self.kind]
        if kind.of_column and not self.column:
            raise BadRule("column", f"A rule of {self.kind} is about a column: name one.")
        if not kind.of_column and self.column:
            raise BadRule("column", f"A rule of {self.kind} is about rows: leave the column away.")
        return kind

    def _read(self, kind: RuleKind) -> dict[str, Any]:
        known = {**kind.parameters, **(GROUPING if self.by else {})}
        for name in self.parameters:
            if name not in known:
                hint = did_you_mean(name, known) or f" It takes {', '.join(known)}."
                raise BadRule(name, f"A rule of {self.kind} has no parameter `{name}`.{hint}")
        return {name: parameter.value(name, self.parameters) for name, parameter in kind.parameters.items()}

    def _group(self, name: str) -> int | None:
        value: int | None = GROUPING[name].value(name, self.parameters)
        return value


@dataclass(frozen=True)
class Parameter:
    """`read` takes what was given and the name; `default` None: it must be given, `...`: it may be left away."""

    read: Callable[[str, Any], Any]
    default: Any = None

    def value(self, name: str, given: Mapping[str, Any]) -> Any:
        value = given.get(name, self.default)
        if value is ...:
            return None
        if value is None or value == "":
            raise BadRule(name, f"`{name}` is missing.")
        return self.read(name, value)


@dataclass(frozen=True)
class RuleKind:
    title: str
    parameters: Mapping[str, Parameter]
    expression: Callable[[Name, Mapping[str, Any]], str]
    of_column: bool = True
    check: str = "column"


# Reading parameters


def _literal(name: str, value: Any, kind: Kind, wanted: str) -> Any:
    try:
        literal = parse_literal(str(value))
    except ExpressionError:
        raise BadRule(name, f"{name}={value!r} cannot be read: {wanted}.") from None
    if literal.kind is not kind:
        raise BadRule(name, f"{name}={value!r} will not do: {wanted}.")
    return literal.value


def _share(name: str, value: Any) -> Fraction:
    share: Fraction = _literal(name, value, Kind.RATIO, "write a share in percent, such as 1%")
    return share


def _before(name: str, value: Any) -> timedelta:
    length: timedelta = _literal(name, value, Kind.DURATION, "write a length of time, such as 7d")
    if not length or length % timedelta(hours=1):
        raise BadRule(name, f"{name}={value!r} will not do: whole hours or days, such as 7d.")
    return length


def _number(name: str, value: Any) -> Fraction:
    if isinstance(value, bool):
        raise BadRule(name, f"{name}={value!r} is no number.")
    sign, digits = (-1, str(value)[1:]) if str(value).startswith("-") else (1, str(value))
    number: Fraction = _literal(name, digits, Kind.NUMBER, "write a number, such as -5 or 0.5")
    return sign * number


def _count(name: str, value: Any) -> int:
    number = _number(name, value)
    if number.denominator != 1 or number < 1:
        raise BadRule(name, f"{name}={value!r} will not do: a whole number from 1 on.")
    return int(number)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadRule(name, f"{name}={value!r} is no text.")
    return value


def _values(name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_VALUES:
        raise BadRule(name, f"`{name}` is a list of 1 to {_MOST_VALUES} values.")
    return [one if isinstance(one, str) else _number(name, one) for one in value]


# Writing expressions


def signed(value: Fraction) -> str:
    return f"-{decimal_text(-value)}" if value < 0 else decimal_text(value)


def _below(share: Fraction) -> str:
    """No more than a share; none at all is a share too."""
    return f"< {literal_text(share, Kind.RATIO)}" if share else "<= 0%"


def _few(measure: str, share: Fraction) -> str:
    return f"{measure} / rows(this) {_below(share)}"


def _accepted(column: Name, given: Mapping[str, Any]) -> str:
    values = ", ".join(text_literal(one) if isinstance(one, str) else signed(one) for one in given["values"])
    return _few(f"unexpected({formula(column)}, {values})", given["share"])


def _referential(column: Name, given: Mapping[str, Any]) -> str:
    other = formula(Name(given["dataset"], column=given["other_column"] or column.column))
    return _few(f"unmatched({formula(column)}, {other})", given["share"])


def _drift(column: Name, given: Mapping[str, Any]) -> str:
    before = Name("this", column=column.column, shift=-given["before"])
    return f"drift({formula(column)}, {formula(before)}) {_below(given['distance'])}"


def _volume(rows: Name, given: Mapping[str, Any]) -> str:
    before = Name("this", shift=-given["before"])
    return f"rows(this) / rows({formula(before)}) > {literal_text(given['share'], Kind.RATIO)}"


def _variety(column: Name, given: Mapping[str, Any]) -> str:
    """A group that is gone is no group any more, so no test by group sees it."""
    name, before = formula(Name(column.column)), formula(Name("this", shift=-given["before"]))
    share = literal_text(given["share"], Kind.RATIO)
    return f"distinct(this, {name}) / distinct({before}, {name}) > {share}"


def deviates(series: str, given: Mapping[str, Any]) -> str:
    return f"deviation({series}, {duration_text(given['window'])}) < {signed(given['score'])}"


_SHARE = Parameter(_share, "0%")
_WINDOW = {"window": Parameter(_before, "8w"), "score": Parameter(_number, 4)}
GROUPING = {"least": Parameter(_count, ...), "most": Parameter(_count, ...)}
"""Of rules with `by`: the fewest rows of a group that is judged, and how many groups, the largest, are."""

KINDS: dict[str, RuleKind] = {
    "nulls": RuleKind(
        "Nulls in {column}",
        {"share": _SHARE},
        lambda column, given: _few(f"nulls({formula(column)})", given["share"]),
    ),
    "range": RuleKind(
        "Range of {column}",
        {"low": Parameter(_number), "high": Parameter(_number), "share": _SHARE},
        lambda column, given: _few(
            f"outside({formula(column)}, {signed(given['low'])}, {signed(given['high'])})", given["share"]
        ),
    ),
    "pattern": RuleKind(
        "Pattern of {column}",
        {"pattern": Parameter(_text), "share": _SHARE},
        lambda column, given: _few(f"mismatched({formula(column)}, {text_literal(given['pattern'])})", given["share"]),
    ),
    "accepted": RuleKind("Values of {column}", {"values": Parameter(_values), "share": _SHARE}, _accepted),
    "referential": RuleKind(
        "{column} is known",
        {"dataset": Parameter(_text), "other_column": Parameter(_text, ...), "share": _SHARE},
        _referential,
    ),
    "drift": RuleKind(
        "Drift of {column}", {"before": Parameter(_before, "7d"), "distance": Parameter(_share, "10%")}, _drift
    ),
    "volume": RuleKind(
        "Rows against before",
        {"before": Parameter(_before, "7d"), "share": Parameter(_share, "50%")},
        _volume,
        of_column=False,
    ),
    "variety": RuleKind(
        "Different values of {column} against before",
        {"before": Parameter(_before, "7d"), "share": Parameter(_share, "90%")},
        _variety,
    ),
    "rows_anomaly": RuleKind(
        "Rows out of the ordinary",
        _WINDOW,
        lambda column, given: deviates("rows(this)", given),
        of_column=False,
        check="anomaly",
    ),
    "delay_anomaly": RuleKind(
        "Delay out of the ordinary",
        _WINDOW,
        lambda column, given: deviates("delay(this)", given),
        of_column=False,
        check="anomaly",
    ),
    "nulls_anomaly": RuleKind(
        "Nulls in {column} out of the ordinary",
        _WINDOW,
        lambda column, given: deviates(f"nulls({formula(column)}) / rows(this)", given),
        check="anomaly",
    ),
    "mean_anomaly": RuleKind(
        "Mean of {column} out of the ordinary",
        _WINDOW,
        lambda column, given: deviates(f"mean({formula(column)})", given),
        check="anomaly",
    ),
}
