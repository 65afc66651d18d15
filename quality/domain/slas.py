"""What each tier promises: one visible table. A dataset may override any value of its tier by the names of `Slas`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from lakehub.kernel.partitions.zones import UnknownZone, zone_named
from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.parameters import MIN_RUN_INTERVAL
from quality.domain.language.parser import parse_literal
from quality.domain.language.tree.errors import ExpressionError
from quality.domain.language.tree.literals import format_duration, format_literal, is_duration
from quality.domain.language.tree.nodes import Literal
from quality.domain.periods import MAX_PERIOD
from quality.domain.timeliness.production_calendar import CALENDAR_OVERRIDES
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
    sampled: int
    """How many records of an upstream outside the lake each run looks up here, drawn at random."""
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
    #        freshness   completeness        duplicates        consistency         keys compared    sampled sustain     cadence     rerun base, cap       debounce    grace      severity
    0: Slas(_hours(1),  _percent("99.99"), _percent("0"),    _percent("99.99"), _percent("100"),  1_000,  _minutes(15),   _minutes(5),    _minutes(1),  _minutes(15),  _minutes(1),    _days(1),  "page"),
    1: Slas(_hours(2),  _percent("99.9"),  _percent("0"),    _percent("99.9"),  _percent("100"),  1_000,  _minutes(30),   _minutes(15),   _minutes(2),  _minutes(30),  _minutes(2),    _days(1),  "page"),
    2: Slas(_hours(4),  _percent("99.9"),  _percent("0.1"),  _percent("99.9"),  _percent("10"),   1_000,  _hours(1),  _minutes(30),   _minutes(5),  _hours(1), _minutes(5),    _days(2),  "message"),
    3: Slas(_hours(12), _percent("99.5"),  _percent("0.5"),  _percent("99.5"),  _percent("10"),   1_000,  _hours(2),  _hours(1),  _minutes(10), _hours(2), _minutes(10),   _days(3),  "message"),
    4: Slas(_days(1),   _percent("99"),    _percent("1"),    _percent("99"),    _percent("10"),   1_000,  _hours(6),  _hours(6),  _minutes(30), _hours(6), _minutes(30),   _days(7),  "mail"),
    5: Slas(_days(3),   _percent("95"),    _percent("5"),    _percent("95"),    _percent("10"),   1_000,  _days(1),   _days(1),   _hours(1), _days(1), _hours(1),  _days(7),  "mail"),
}  # fmt: skip


RUN_INTERVALS = ("cadence", "rerun_base", "rerun_cap")
"""What decides when a unit is due again: 30 seconds at least."""
NOT_COMPARED = "not_compared"
"""The override that names columns which each data center writes for itself, as in `loaded_at, host`."""
SCHEMA_POLICIES = ("incident", "breaking", "show")
"""Which changes of columns open an incident (`schema_changes`): all, those that break readers, none (ingestion.lake.schema_changes)."""
UNIQUE_WITHIN = "unique_within"
"""The override that says where a primary key comes once: in the whole table, or in each partition, which is a snapshot then."""
UNIQUE_RANGES = ("table", "partition")
EVENT_TIME_ZONE = "event_time_zone"
"""The override that names the time zone of event times that are written without one; else it is that of the partitions."""
_NO_SLAS = (*CALENDAR_OVERRIDES, NOT_COMPARED, UNIQUE_WITHIN, EVENT_TIME_ZONE, "schema_changes")


class BadOverride(ValueError):
    """A dataset asks for something that its tier cannot give; names the SLA and the value."""


def slas_for_tier(tier: int, overrides: Mapping[str, Any] | None = None, *, freshness: timedelta | None = None) -> Slas:
    """The SLAs of a dataset of `tier`. Overrides are texts such as `30m` and `99.5%`. Raises BadOverride."""
    if tier not in TIERS:
        raise BadOverride(f"There is no tier {tier!r}: choose 0 (highest) to {max(TIERS)}.")
    given = {name: _value(name, value) for name, value in (overrides or {}).items() if name not in _NO_SLAS}
    if freshness is not None:
        given["freshness"] = freshness
    return replace(TIERS[tier], **given)


def columns_not_compared(overrides: Mapping[str, Any]) -> tuple[str, ...]:
    """A text with commas between the names, or a list of them. Raises BadOverride."""
    given = overrides.get(NOT_COMPARED, "")
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadOverride(
            f"{NOT_COMPARED}={given!r} cannot be read: write the names of columns, as in loaded_at, host."
        )
    return tuple(stripped for name in names if (stripped := name.strip()))


def keys_unique_within(overrides: Mapping[str, Any]) -> str:
    """One of UNIQUE_RANGES. Raises BadOverride."""
    given = overrides.get(UNIQUE_WITHIN, UNIQUE_RANGES[0])
    if given not in UNIQUE_RANGES:
        raise BadOverride(f"{UNIQUE_WITHIN}={given!r} is not known: write {' or '.join(UNIQUE_RANGES)}.")
    return str(given)


def event_time_zone(overrides: Mapping[str, Any]) -> ZoneInfo | None:
    """None: the overrides name none. Raises BadOverride."""
    given = overrides.get(EVENT_TIME_ZONE)
    try:
        return zone_named(str(given)) if given else None
    except UnknownZone as problem:
        raise BadOverride(
            f"{EVENT_TIME_ZONE}={given!r} is not a time zone: write one such as UTC or Europe/Berlin."
        ) from problem


def _value(name: str, text: object) -> Any:
    sla_names = {field.name for field in fields(Slas)}
    if name not in sla_names:
        raise BadOverride(f"There is no SLA `{name}`.{did_you_mean(name, {*sla_names, *_NO_SLAS})}")
    return _PARSERS[type(getattr(TIERS[0], name))](name, str(text))


def _duration(name: str, text: str) -> timedelta:
    literal = _literal(text)
    if literal is None and is_duration(text.strip()):
        raise BadOverride(f"{name}={text[:60]!r} is too long: write {MAX_PERIOD.days}d or shorter.")
    if literal is None or not isinstance(literal.value, timedelta):
        raise BadOverride(f"{name}={text[:60]!r} is not a duration: write 30m, 2h or 1d.")
    if name in RUN_INTERVALS and literal.value < MIN_RUN_INTERVAL:
        raise BadOverride(f"{name}={text!r} is too short: write {format_duration(MIN_RUN_INTERVAL)} or longer.")
    if literal.value > MAX_PERIOD:
        raise BadOverride(f"{name}={text!r} is too long: write {MAX_PERIOD.days}d or shorter.")
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


MAX_SAMPLED = 100_000


def _count(name: str, text: str) -> int:
    count = int(text) if text.isdecimal() and len(text) <= len(str(MAX_SAMPLED)) else 0
    if not 0 < count <= MAX_SAMPLED:
        raise BadOverride(f"{name}={text[:60]!r} is not a number of rows: write 1 to {MAX_SAMPLED:,}, without a comma.")
    return count


def _severity(name: str, text: str) -> str:
    if text not in (words := sorted({slas.severity for slas in TIERS.values()})):
        raise BadOverride(f"{name}={text!r} is not known.{did_you_mean(text, words)}")
    return text


_PARSERS: dict[type, Callable[[str, str], Any]] = {timedelta: _duration, Fraction: _share, int: _count, str: _severity}


def format_sla(value: timedelta | Fraction | int | str) -> str:
    """An SLA as people and overrides write it."""
    if isinstance(value, timedelta):
        return format_duration(value)
    return format_literal(value, ValueType.RATIO) if isinstance(value, Fraction) else str(value)


def above(sla: Fraction) -> str:
    """The rest of a comparison for a share that is above the SLA: `> 99.9%`. Nothing is above all: `== 100%`."""
    return f"{'==' if sla == 1 else '>'} {format_sla(sla)}"


def format_slas(slas: Slas) -> dict[str, str]:
    """All of them by name, as people and overrides write them."""
    return {field.name: format_sla(getattr(slas, field.name)) for field in fields(Slas)}
