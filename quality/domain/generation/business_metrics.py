"""Business metrics: the standard tests of a registered one, each a line in STANDARD_TESTS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction

from quality.domain.generation.rules import format_signed
from quality.domain.language.parser import parse_literal
from quality.domain.language.printer import formula
from quality.domain.language.tree.errors import ExpressionError
from quality.domain.language.tree.literals import format_duration, format_literal, quote_text
from quality.domain.language.tree.nodes import Name
from quality.domain.value_types import ValueType


@dataclass(frozen=True)
class BusinessMetric:
    """`sql` gives one number for one partition, called `this`; shares are texts such as 20%."""

    name: str
    sql: str
    second_sql: str = ""
    low: float | None = None
    high: float | None = None
    week_over_week: str = ""
    agreement: str = "0.1%"
    anomaly: bool = False
    inputs: Mapping[str, timedelta] = field(default_factory=dict)
    """What else the queries read, with the freshness SLA of each."""
    freshness: timedelta | None = None
    """That of the dataset itself; None: it is not tested."""

    @property
    def value(self) -> str:
        return f"metric({formula(Name(self.name))})"

    def key(self, standard: str) -> str:
        return f"metric:{self.name}.{standard}"

    def expressions(self) -> dict[str, str]:
        """The standard tests that it has, by name. Raises BadShare."""
        texts = {name: write(self) for name, write in STANDARD_TESTS.items()}
        return {name: text for name, text in texts.items() if text}


class BadShare(ValueError):
    """What should be a share is none; `field` is which."""

    def __init__(self, field: str, given: str) -> None:
        super().__init__(f"{field}={given!r} is no share above zero: write it in percent, such as 20%.")
        self.field = field


def parse_share(field: str, given: str) -> Fraction:
    """`20%`. Raises BadShare."""
    try:
        literal = parse_literal(given)
    except ExpressionError:
        raise BadShare(field, given) from None
    if literal.value_type is not ValueType.RATIO or not isinstance(literal.value, Fraction) or not literal.value:
        raise BadShare(field, given)
    return literal.value


def _format_share(field: str, given: str) -> str:
    return format_literal(parse_share(field, given), ValueType.RATIO)


def _freshness(metric: BusinessMetric) -> str:
    """All that it is made from has to be there in time."""
    if metric.freshness is None:
        return ""
    tables = {"this": metric.freshness, **metric.inputs}
    return " and ".join(f"freshness({formula(Name(name))}) < {format_duration(sla)}" for name, sla in tables.items())


def _bounds(metric: BusinessMetric) -> str:
    sides = [
        f"{metric.value} {sign} {format_signed(Fraction(str(bound)))}"
        for sign, bound in ((">=", metric.low), ("<=", metric.high))
        if bound is not None
    ]
    return " and ".join(sides)


def _week_over_week(metric: BusinessMetric) -> str:
    if not metric.week_over_week:
        return ""
    before = f"metric({formula(Name(metric.name))}, 7d)"
    return f"abs({metric.value} - {before}) / abs({before}) < {_format_share('week_over_week', metric.week_over_week)}"


def _agreement(metric: BusinessMetric) -> str:
    if not metric.second_sql:
        return ""
    second = f"query(this, {quote_text(metric.second_sql)})"
    return f"abs({metric.value} - {second}) / abs({metric.value}) < {_format_share('agreement', metric.agreement)}"


STANDARD_TESTS: dict[str, Callable[[BusinessMetric], str]] = {
    "freshness": _freshness,
    "bounds": _bounds,
    "week_over_week": _week_over_week,
    "agreement": _agreement,
}
TITLES = {
    "freshness": "{name} can be worked out in time",
    "bounds": "{name} is within its bounds",
    "week_over_week": "{name} against last week",
    "agreement": "{name} by both definitions",
}
