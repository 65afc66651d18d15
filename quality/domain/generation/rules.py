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
from quality.domain.language.parser import parse_literal
from quality.domain.language.printer import formula
from quality.domain.language.tree.errors import ExpressionError
from quality.domain.language.tree.literals import format_decimal, format_duration, format_literal, quote_text
from quality.domain.language.tree.nodes import Name
from quality.domain.value_types import ValueType

_MAX_VALUES = 200
_MAX_KEY_LENGTH = 100


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
        return key if len(key) <= _MAX_KEY_LENGTH else f"{key[: _MAX_KEY_LENGTH - 9]}~{crc32(key.encode()):08x}"

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
        groups = [f"{name}={value}" for name in GROUP_PARAMETERS if (value := self._group(name))]
        return f"{text} with {', '.join([f'by={formula(Name(self.by))}', *groups])}"

    @property
    def title(self) -> str:
        title = self._known_kind().title.format(column=self.column)
        return f"{title} by {self.by}" if self.by else title

    def _known_kind(self) -> RuleKind:
        if self.kind not in RULE_KINDS:
            raise BadRule("kind", f"There is no kind of rule `{self.kind}`.{did_you_mean(self.kind, RULE_KINDS)}")
        kind = RULE_KINDS[self.kind]
        if kind.needs_column and not self.column:
            raise BadRule("column", f"A rule of {self.kind} is about a column: name one.")
        if not kind.needs_column and self.column:
            raise BadRule("column", f"A rule of {self.kind} is about rows: leave the column away.")
        return kind

    def _read(self, kind: RuleKind) -> dict[str, Any]:
        known_parameters = {**kind.parameters, **(GROUP_PARAMETERS if self.by else {})}
        for name in self.parameters:
            if name not in known_parameters:
                hint = did_you_mean(name, known_parameters) or f" It takes {', '.join(known_parameters)}."
                raise BadRule(name, f"A rule of {self.kind} has no parameter `{name}`.{hint}")
        return {name: parameter.value(name, self.parameters) for name, parameter in kind.parameters.items()}

    def _group(self, name: str) -> int | None:
        value: int | None = GROUP_PARAMETERS[name].value(name, self.parameters)
        return value


@dataclass(frozen=True)
class RuleParameter:
    """`parse` takes the name and what was given; `default` None: it must be given, `...`: it may be left away."""

    parse: Callable[[str, Any], Any]
    default: Any = None

    def value(self, name: str, given: Mapping[str, Any]) -> Any:
        value = given.get(name, self.default)
        if value is ...:
            return None
        if value is None or value == "":
            raise BadRule(name, f"`{name}` is missing.")
        return self.parse(name, value)


@dataclass(frozen=True)
class RuleKind:
    title: str
    parameters: Mapping[str, RuleParameter]
    expression: Callable[[Name, Mapping[str, Any]], str]
    needs_column: bool = True
    check: str = "column"


# Reading parameters


def _literal(name: str, value: Any, kind: ValueType, expected: str) -> Any:
    try:
        literal = parse_literal(str(value))
    except ExpressionError:
        raise BadRule(name, f"{name}={value!r} cannot be read: {expected}.") from None
    if literal.value_type is not kind:
        raise BadRule(name, f"{name}={value!r} will not do: {expected}.")
    return literal.value


def _share(name: str, value: Any) -> Fraction:
    share: Fraction = _literal(name, value, ValueType.RATIO, "write a share in percent, such as 1%")
    return share


def _before(name: str, value: Any) -> timedelta:
    length: timedelta = _literal(name, value, ValueType.DURATION, "write a length of time, such as 7d")
    if not length or length % timedelta(hours=1):
        raise BadRule(name, f"{name}={value!r} will not do: whole hours or days, such as 7d.")
    return length


def _number(name: str, value: Any) -> Fraction:
    if isinstance(value, bool):
        raise BadRule(name, f"{name}={value!r} is no number.")
    sign, digits = (-1, str(value)[1:]) if str(value).startswith("-") else (1, str(value))
    number: Fraction = _literal(name, digits, ValueType.NUMBER, "write a number, such as -5 or 0.5")
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
    if not isinstance(value, list) or not 1 <= len(value) <= _MAX_VALUES:
        raise BadRule(name, f"`{name}` is a list of 1 to {_MAX_VALUES} values.")
    return [item if isinstance(item, str) else _number(name, item) for item in value]


# Writing expressions


def format_signed(value: Fraction) -> str:
    return f"-{format_decimal(-value)}" if value < 0 else format_decimal(value)


def _at_most(share: Fraction) -> str:
    """No more than a share; none at all is a share too."""
    return f"< {format_literal(share, ValueType.RATIO)}" if share else "<= 0%"


def _share_at_most(measure: str, share: Fraction) -> str:
    return f"{measure} / rows(this) {_at_most(share)}"


def _accepted(column: Name, given: Mapping[str, Any]) -> str:
    values = ", ".join(
        quote_text(value) if isinstance(value, str) else format_signed(value) for value in given["values"]
    )
    return _share_at_most(f"unexpected({formula(column)}, {values})", given["share"])


def _referential(column: Name, given: Mapping[str, Any]) -> str:
    other = formula(Name(given["dataset"], column=given["other_column"] or column.column))
    return _share_at_most(f"unmatched({formula(column)}, {other})", given["share"])


def _drift(column: Name, given: Mapping[str, Any]) -> str:
    before = Name("this", column=column.column, shift=-given["before"])
    return f"drift({formula(column)}, {formula(before)}) {_at_most(given['distance'])}"


def _volume(rows: Name, given: Mapping[str, Any]) -> str:
    before = Name("this", shift=-given["before"])
    return f"rows(this) / rows({formula(before)}) > {format_literal(given['share'], ValueType.RATIO)}"


def _variety(column: Name, given: Mapping[str, Any]) -> str:
    """A group that is gone is no group any more, so no test by group sees it."""
    name, before = formula(Name(column.column)), formula(Name("this", shift=-given["before"]))
    share = format_literal(given["share"], ValueType.RATIO)
    return f"distinct(this, {name}) / distinct({before}, {name}) > {share}"


def deviation_expression(series: str, given: Mapping[str, Any]) -> str:
    return f"deviation({series}, {format_duration(given['window'])}) < {format_signed(given['score'])}"


_SHARE = RuleParameter(_share, "0%")
_WINDOW = {"window": RuleParameter(_before, "8w"), "score": RuleParameter(_number, 4)}
GROUP_PARAMETERS = {"least": RuleParameter(_count, ...), "most": RuleParameter(_count, ...)}
"""Of rules with `by`: the fewest rows of a group that is judged, and how many groups, the largest, are."""

RULE_KINDS: dict[str, RuleKind] = {
    "nulls": RuleKind(
        "Nulls in {column}",
        {"share": _SHARE},
        lambda column, given: _share_at_most(f"nulls({formula(column)})", given["share"]),
    ),
    "range": RuleKind(
        "Range of {column}",
        {"low": RuleParameter(_number), "high": RuleParameter(_number), "share": _SHARE},
        lambda column, given: _share_at_most(
            f"outside({formula(column)}, {format_signed(given['low'])}, {format_signed(given['high'])})", given["share"]
        ),
    ),
    "pattern": RuleKind(
        "Pattern of {column}",
        {"pattern": RuleParameter(_text), "share": _SHARE},
        lambda column, given: _share_at_most(
            f"mismatched({formula(column)}, {quote_text(given['pattern'])})", given["share"]
        ),
    ),
    "accepted": RuleKind("Values of {column}", {"values": RuleParameter(_values), "share": _SHARE}, _accepted),
    "referential": RuleKind(
        "{column} is known",
        {"dataset": RuleParameter(_text), "other_column": RuleParameter(_text, ...), "share": _SHARE},
        _referential,
    ),
    "drift": RuleKind(
        "Drift of {column}", {"before": RuleParameter(_before, "7d"), "distance": RuleParameter(_share, "10%")}, _drift
    ),
    "volume": RuleKind(
        "Rows against before",
        {"before": RuleParameter(_before, "7d"), "share": RuleParameter(_share, "50%")},
        _volume,
        needs_column=False,
    ),
    "variety": RuleKind(
        "Different values of {column} against before",
        {"before": RuleParameter(_before, "7d"), "share": RuleParameter(_share, "90%")},
        _variety,
    ),
    "rows_anomaly": RuleKind(
        "Rows out of the ordinary",
        _WINDOW,
        lambda column, given: deviation_expression("rows(this)", given),
        needs_column=False,
        check="anomaly",
    ),
    "delay_anomaly": RuleKind(
        "Delay out of the ordinary",
        _WINDOW,
        lambda column, given: deviation_expression("delay(this)", given),
        needs_column=False,
        check="anomaly",
    ),
    "nulls_anomaly": RuleKind(
        "Nulls in {column} out of the ordinary",
        _WINDOW,
        lambda column, given: deviation_expression(f"nulls({formula(column)}) / rows(this)", given),
        check="anomaly",
    ),
    "mean_anomaly": RuleKind(
        "Mean of {column} out of the ordinary",
        _WINDOW,
        lambda column, given: deviation_expression(f"mean({formula(column)})", given),
        check="anomaly",
    ),
}
