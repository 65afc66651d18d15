"""Instants in requests: ISO 8601, and only such as every time zone and every database can show.

9999-12-31T23:59Z has no date east of Greenwich, so a page that shows it to somebody there could not be made.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Any

from rest_framework import serializers

from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import BEGINNING, FOREVER

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}$")
_LOST_PLUS = re.compile(r"(\d) (\d{2}:?\d{2})$")
"""A `+` that was not percent-encoded arrives as a space."""


class InstantField(serializers.DateTimeField):
    """In the body of a request."""

    def to_internal_value(self, value: Any) -> datetime:
        try:
            instant = super().to_internal_value(value)
            if BEGINNING <= instant <= FOREVER:
                return instant
        except OverflowError:  # with its offset it lies outside of all calendars
            pass
        raise serializers.ValidationError(f"{value} lies outside the years 1900 to 9998.")


def parse_instant(text: str, *, name: str, zone: tzinfo) -> datetime:
    """Of an address: a time with an offset, or a date in `zone`. No earlier than BEGINNING and no later than FOREVER, which mean
    the same. Raises Refused, which names the parameter `name`."""
    try:
        instant = datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text.strip()))
        if _DATE.match(text.strip()):
            instant = instant.replace(tzinfo=zone)
        if instant.tzinfo is not None:
            return min(max(instant.astimezone(UTC), BEGINNING), FOREVER)
    except (ValueError, OverflowError):  # UTC does not reach beyond the years 1 to 9999
        raise _refused(name, f"`{text}` is no time. Write 2026-11-16, or 2026-11-16T05:00:00Z.") from None
    raise _refused(name, f"`{text}` has no offset, so it could be any zone's. Write {text.strip()}Z for UTC.")


def _refused(name: str, why: str) -> Refused:
    return Refused.for_fields({name: why})
