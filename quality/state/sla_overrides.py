"""What a dataset may override, checked where it is written: the port `catalog.OverridesCheck`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC
from zoneinfo import ZoneInfo

from lakehub.kernel.partitions.zones import UnknownZone, zone_named
from lakehub.kernel.suggest import did_you_mean
from quality.domain.slas import (
    SCHEMA_POLICIES,
    TIERS,
    BadOverride,
    columns_not_compared,
    event_time_zone,
    keys_unique_within,
    slas_for_tier,
)
from quality.domain.timeliness.production_calendar import CALENDAR_OVERRIDES, BadCalendar, holidays_text, parse_calendar


def override_problems(overrides: Mapping[str, object], *, tier: int, zone: str) -> list[str]:
    """All of them at once. A tier or zone that there is not is a problem of its own field."""
    return list(_problems(overrides, tier if tier in TIERS else max(TIERS), zone))


def _problems(overrides: Mapping[str, object], tier: int, zone: str) -> Iterator[str]:
    for name, value in overrides.items():
        try:
            slas_for_tier(tier, {name: value})
        except BadOverride as problem:
            yield str(problem)
    for read in (columns_not_compared, keys_unique_within, event_time_zone):
        try:
            read(overrides)
        except BadOverride as problem:
            yield str(problem)
    policy = overrides.get("schema_changes", SCHEMA_POLICIES[0])
    if policy not in SCHEMA_POLICIES:
        yield f"schema_changes={policy!r} is not known.{did_you_mean(str(policy), SCHEMA_POLICIES)}"
    calendar, holidays = (holidays_text(overrides.get(name, "")) for name in CALENDAR_OVERRIDES)
    try:
        parse_calendar(calendar, holidays, _zone(zone))
    except BadCalendar as problem:
        yield str(problem)


def _zone(name: str) -> ZoneInfo:
    try:
        return zone_named(name)
    except UnknownZone:
        return ZoneInfo(str(UTC))
