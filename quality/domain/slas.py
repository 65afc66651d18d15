"""What each tier promises: one visible table. A dataset may override any value of its tier by the names of `Slas`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.parameters import MIN_RUN_INTERVAL
from quality.domain.language.parser import parse_literal
from quality.domain.language.tree.errors import ExpressionError
from quality.domain.language.tree.literals import format_duration, format_literal
from quality.domain.language.tree.nodes import Literal
from quality.domain.value_types import ValueType


def _minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def _hours(count: int) -> timedelta:
    return timedelta(hours=count)


def _days(count: int) -> timedelta:
    return timedelta(days=count)


def _percent(text: str) -> Fraction:
    return Fraction(text) / 100


@dataclass(frozen=True)
class Slas:
    """The promises to the readers of a dataset, and how closely they are watched."""

    freshness: timedelta
    """How long after its end a bucket must be complete."""
    completeness: Fraction
    """The share of upstream's rows that must be there."""
    duplicates: Fraction
    """The share of rows whose key another row has that is still good."""
    consistency: Fraction
    """The share of another data center's rows that must be there."""
    compared: Fraction
    """The share of the keys that are compared across data centers by Bloom filter; small tables are compared whole."""
    sustain: timedelta
    """How long a failure lasts before it is a FAIL; until then it is a WARN."""
    cadence: timedelta
    """How often tests of a whole table run."""
    rerun_base: timedelta
    rerun_cap: timedelta
    """Failing units are run again min(cap, base * 2^k) apart."""
    debounce: timedelta
    """How long changes of a partition are gathered before its tests run again."""
    grace: timedelta
    """No notifications for so long after onboarding."""
    severity: str


TIERS: dict[int, Slas] = {
    #        freshness   completeness        duplicates        consistency         keys compared    sustain     cadence     rerun base, cap       debounce    grace      severity
    0: Slas(_hours(1),  _percent("99.99"), _percent("0"),    _percent("99.99"), _percent("100"), _minutes(15),   _minutes(5),    _minutes(1),  _minutes(15),  _minutes(1),    _days(1),  "page"),
    1: Slas(_hours(2),  _percent("99.9"),  _percent("0"),    _percent("99.9"),  _percent("100"), _minutes(30),   _minutes(15),   _minutes(2),  _minutes(30),  _minutes(2),    _days(1),  "page"),
    2: Slas(_hours(4),  _percent("99.9"),  _percent("0.1"),  _percent("99.9"),  _percent("10"),  _hours(1),  _minutes(30),   _minutes(5),  _hours(1), _minutes(5),    _days(2),  "message"),
    3: Slas(_hours(12), _percent("99.5"),  _percent("0.5"),  _percent("99.5"),  _percent("10"),  _hours(2),  _hours(1),  _minutes(10), _hours(2), _minutes(10),   _days(3),  "message"),
    4: Slas(_days(1),   _percent("99"),    _percent("1"),    _percent("99"),    _percent("10"),  _hours(6),  _hours(6),  _minutes(30), _hours(6), _minutes(30),   _days(7),  "mail"),
    5: Slas(_days(3),   _percent("95"),    _percent("5"),    _percent("95"),    _percent("10"),  _days(1),   _days(1),   _hours(1), _days(1), _hours(1),  _days(7),  "mail"),
}  # fmt: skip


RUN_INTERVALS = ("cadence", "rerun_base", "rerun_cap")
"""What decides when a unit is due again: 30 seconds at least."""
CALENDAR_OVERRIDES = ("calendar", "holidays")
"""What a dataset may override besides: when it is produced (quality.domain.timeliness.production_calendar)."""


class BadOverride(ValueError):
    """A dataset asks for something that its tier cannot give; names the SLA and the value."""


def slas_for_tier(tier: int, overrides: Mapping[str, Any] | None = None, *, freshness: timedelta | None = None) -> Slas:
    """The SLAs of a dataset of `tier`. Overrides are texts such as `30m` and `99.5%`. Raises BadOverride."""
    if tier not in TIERS:
        raise BadOverride(f"There is no tier {tier!r}: choose 0 (highest) to {max(TIERS)}.")
    given = {name: _value(name, value) for name, value in (overrides or {}).items() if name not in CALENDAR_OVERRIDES}
    if freshness is not None:
        given["freshness"] = freshness
    return replace(TIERS[tier], **given)


def _value(name: str, text: object) -> Any:
    sla_names = {field.name for field in fields(Slas)}
    if name not in sla_names:
        raise BadOverride(f"There is no SLA `{name}`.{did_you_mean(name, {*sla_names, *CALENDAR_OVERRIDES})}")
    return _PARSERS[type(getattr(TIERS[0], name))](name, str(text))


def _duration(name: str, text: str) -> timedelta:
    literal = _literal(text)
    if literal is None or not isinstance(literal.value, timedelta):
        raise BadOverride(f"{name}={text!r} is not a duration: write 30m, 2h or 1d.")
    if name in RUN_INTERVALS and literal.value < MIN_RUN_INTERVAL:
        raise BadOverride(f"{name}={text!r} is too short: write {format_duration(MIN_RUN_INTERVAL)} or longer.")
    return literal.value


def _share(name: str, text: str) -> Fraction:
    literal = _literal(text)
    if (
        literal is None
        or literal.value_type is not ValueType.RATIO
        or not isinstance(literal.value, Fraction)
        or literal.value > 1
    ):
        raise BadOverride(f"{name}={text!r} is not a share: write it in percent, such as 99.9%.")
    if name == "compared" and not literal.value:
        raise BadOverride(f"{name}={text!r} compares nothing: write a share above 0%.")
    return literal.value


def _literal(text: str) -> Literal | None:
    try:
        return parse_literal(text)
    except ExpressionError:
        return None


def _severity(name: str, text: str) -> str:
    if text not in (words := sorted({slas.severity for slas in TIERS.values()})):
        raise BadOverride(f"{name}={text!r} is not known.{did_you_mean(text, words)}")
    return text


_PARSERS: dict[type, Callable[[str, str], Any]] = {timedelta: _duration, Fraction: _share, str: _severity}


def format_sla(value: timedelta | Fraction | str) -> str:
    """An SLA as people and overrides write it."""
    if isinstance(value, timedelta):
        return format_duration(value)
    return format_literal(value, ValueType.RATIO) if isinstance(value, Fraction) else value


def format_slas(slas: Slas) -> dict[str, str]:
    """All of them by name, as people and overrides write them."""
    return {field.name: format_sla(getattr(slas, field.name)) for field in fields(Slas)}
