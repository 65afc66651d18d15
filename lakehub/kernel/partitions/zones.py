"""Time zones by the names that people write."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


class UnknownZone(ValueError):
    """No time zone has this name."""


def zone_named(name: str) -> ZoneInfo:
    """Raises UnknownZone, also for `Europe`, which is a folder of zones, and for a name that no file can have."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(f"There is no time zone `{name[:100]}`.") from None
