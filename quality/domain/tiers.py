"""What each tier promises: one visible table. A dataset may override any value of its tier by the names of `Slas`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.amounts import duration_text, literal_text
from quality.domain.expression.errors import ExpressionError
from quality.domain.expression.kinds import Kind
from quality.domain.expression.nodes import Literal
from quality.domain.expression.parameters import SHORTEST_WAIT
from quality.domain.expression.parser import parse_literal


def _min(count: int) -> timedelta:
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
    0: Slas(_hours(1),  _percent("99.99"), _percent("0"),    _percent("99.99"), _percent("100"), _min(15),   _min(5),    _min(1),  _min(15),  _min(1),    _days(1),  "page"),
    1: Slas(_hours(2),  _percent("99.9"),  _percent("0"),    _percent("99.9"),  _percent("100"), _min(30),   _min(15),   _min(2),  _min(30),  _min(2),    _days(1),  "page"),
    2: Slas(_hours(4),  _percent("99.9"),  _percent("0.1"),  _percent("99.9"),  _percent("10"),  _hours(1),  _min(30),   _min(5),  _hours(1), _min(5),    _days(2),  "message"),
    3: Slas(_hours(12), _percent("99.5"),  _percent("0.5"),  _percent("99.5"),  _percent("10"),  _hours(2),  _hours(1),  _min(10), _hours(2), _min(10),   _days(3),  "message"),
    4: Slas(_days(1),   _percent("99"),    _percent("1"),    _percent("99"),    _percent("10"),  _hours(6),  _hours(6),  _min(30), _hours(6), _min(30),   _days(7),  "mail"),
    5: Slas(_days(3),   _percent("95"),    _percent("5"),    _percent("95"),    _percent("10"),  _days(1),   _days(1),   _hours(1), _days(1), _hours(1),  _days(7),  "mail"),
}  # fmt: skip


WAITS = ("cadence", "rerun_base", "rerun_cap")
"""What decides when a unit is due again: 30 seconds at least."""
PRODUCTION = ("calendar", "holidays")
"""What a dataset may override besides: when it is produced (quality.domain.production)."""


class BadOverride(ValueError):
    """A dataset asks for something that its tier cannot give; names the SLA and the value."""


def slas_of(tier: int, overrides: Mapping[str, Any] | None = None, *, freshness: timedelta | None = None) -> Slas:
    """The SLAs of a dataset of `tier`. Overrides are texts such as `30m` and `99.5%`. Raises BadOverride."""
    if tier not in TIERS:
        raise BadOverride(f"There is no tier {tier!r}: choose 0 (highest) to {max(TIERS)}.")
    given = {name: _value(name, value) for name, value in (overrides or {}).items() if name not in PRODUCTION}
    if freshness is not None:
        given["freshness"] = freshness
    return replace(TIERS[tier], **given)


def _value(name: str, text: object) -> Any:
    known = {field.name for field in fields(Slas)}
    if name not in known:
        raise BadOverride(f"There is no SLA `{name}`.{did_you_mean(name, {*known, *PRODUCTION})}")
    return _READ[type(getattr(TIERS[0], name))](name, str(text))


def _duration(name: str, text: str) -> timedelta:
    literal = _literal(text)
    if literal is None or not isinstance(literal.value, timedelta):
        raise BadOverride(f"{name}={text!r} is not a duration: write 30m, 2h or 1d.")
    if name in WAITS and literal.value < SHORTEST_WAIT:
        raise BadOverride(f"{name}={text!r} is too short: write {duration_text(SHORTEST_WAIT)} or longer.")
    return literal.value


def _share(name: str, text: str) -> Fraction:
    literal = _literal(text)
    if (
        literal is None
        or literal.kind is not Kind.RATIO
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


def _word(name: str, text: str) -> str:
    if text not in (words := sorted({slas.severity for slas in TIERS.values()})):
        raise BadOverride(f"{name}={text!r} is not known.{did_you_mean(text, words)}")
    return text


_READ: dict[type, Callable[[str, str], Any]] = {timedelta: _duration, Fraction: _share, str: _word}


def shown(value: timedelta | Fraction | str) -> str:
    """An SLA as people and overrides write it."""
    if isinstance(value, timedelta):
        return duration_text(value)
    return literal_text(value, Kind.RATIO) if isinstance(value, Fraction) else value


def told(slas: Slas) -> dict[str, str]:
    """All of them by name, as people and overrides write them."""
    return {field.name: shown(getattr(slas, field.name)) for field in fields(Slas)}
